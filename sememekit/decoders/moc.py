"""Mixture of contexts (Yang et al. 2018), the control of the mixture of softmaxes."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from sememekit.decoders.base import Resources
from sememekit.decoders.bias_start import begin_bias
from sememekit.decoders.mixture import MixtureSettings, mixture_parts
from sememekit.decoders.sampling import NormalisedScores, SamplingSettings, linear_scores


@final
class MoC(NormalisedScores):
    """One softmax over the mean of K contexts: p(w | g) = softmax_w((sum_k pi_k h_k) . x + b), Eq. (2) of Yang et al. 2018.

    As many parameters as the mixture of softmaxes, but the rank of the log-probabilities stays bounded by E.

    Shapes: contexts (..., H), log-probabilities (..., V).
    """

    words: nn.Embedding

    class Settings(MixtureSettings, SamplingSettings):
        """Settings of the mixture of contexts."""

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        self.words, self.mixture, self.bias = mixture_parts(settings, resources, "moc")
        self.bias_start = settings.bias_start

    def begin_training(self, counts: NDArray[np.integer]) -> None:
        begin_bias(self.bias, self.bias_start, counts)

    def scores(self, hidden: Tensor, words: Tensor | None = None) -> Tensor:
        log_weights, contexts = self.mixture(hidden)
        mean = (log_weights.exp().unsqueeze(-1) * contexts).sum(dim=-2)
        return linear_scores(mean, self.words.weight, self.bias, words, sparse=self.words.sparse)
