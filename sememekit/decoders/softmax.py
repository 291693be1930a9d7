"""The plain softmax over words."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sememekit import config
from sememekit.decoders.base import BiasStart, Decoder, Resources, log_frequencies, word_vectors
from sememekit.layers import ChosenLogits


@final
class Softmax(Decoder):
    """Probability of a word: softmax over the vocabulary of the inner product of context and word vector, plus a bias.

    log p(w | g) = g . x_w + b_w - log sum_v exp(g . x_v + b_v); tied as Inan et al. 2017 and Press and Wolf 2017.

    Shapes: contexts (..., H), log-probabilities (..., V).
    """

    rehearses: ClassVar[bool] = True

    class Settings(config.Settings):
        """Settings of the softmax layer."""

        tied: bool = True
        """Share the word vectors with the input embedding; needs an embedding as wide as the contexts."""
        bias: bool = True
        """One free number for each word."""
        bias_start: BiasStart = "zero"
        """Where it starts: "zero", or "log_frequency", which helps under Adam and costs a little under SGD at rates of 20."""

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        self.words = word_vectors(resources, "softmax", tied=settings.tied)
        self.bias = nn.Parameter(torch.zeros(len(resources.vocabulary))) if settings.bias else None
        self.bias_start = settings.bias_start

    def begin(self, counts: NDArray[np.integer]) -> None:
        """See ``Decoder.begin``: the bias of the words, unless it starts at 0."""
        if self.bias is not None and self.bias_start == "log_frequency":
            with torch.no_grad():
                self.bias.copy_(log_frequencies(counts))

    def _logits(self, hidden: Tensor) -> Tensor:
        return functional.linear(hidden, self.words.weight, self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """See ``Decoder.log_probs``."""
        return functional.log_softmax(self._logits(hidden), dim=-1)

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        """See ``Decoder.nll``."""
        logits = self._logits(hidden.reshape(-1, hidden.shape[-1]))
        return functional.cross_entropy(logits, target.reshape(-1), reduction="none").reshape(target.shape)

    def several(self) -> Callable[[Tensor, Tensor], Tensor]:
        """See ``Decoder.several``: one product a call, and the gradient of the words in one product for all calls."""
        return ChosenLogits(self.words.weight, self.bias).log_probs
