"""The plain softmax over words, also trained with sampled words."""

from collections.abc import Callable
from typing import Final, final

import torch
from pydantic import Field
from torch import Tensor, nn

from sememekit.decoders.base import Resources, spelled, word_vectors
from sememekit.decoders.bias_start import BiasStartSettings
from sememekit.decoders.sampling import NormalisedScores, SamplingSettings, linear_scores
from sememekit.layers import ChosenLogits, linear_cross_entropy

_LARGEST_SCORES: Final = 1 << 28  # of a batch, one for each context and word; more are computed in blocks
_BLOCK: Final = 1 << 25  # scores in a block


class Softmax(NormalisedScores):
    """Probability of a word: softmax over the vocabulary of the inner product of context and word vector, plus a bias.

    log p(w | g) = g . x_w + b_w - log sum_v exp(g . x_v + b_v); tied as Inan et al. 2017 and Press and Wolf 2017."""

    words: nn.Embedding

    class Settings(SamplingSettings, BiasStartSettings):
        tied: bool = True
        """Share the word vectors with the input embedding; needs an embedding as wide as the contexts."""
        bias: bool = True
        """A bias for each word."""

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        self.words = word_vectors(resources, spelled(self), tied=settings.tied)
        self.bias = nn.Parameter(torch.zeros(len(resources.vocabulary))) if settings.bias else None
        self.bias_start = settings.bias_start

    def scores(self, hidden: Tensor, words: Tensor | None = None) -> Tensor:
        return linear_scores(hidden, self.words.weight, self.bias, words, sparse=self.words.sparse)

    def exact_nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        num_words = len(self.words.weight)
        if target.numel() * num_words <= _LARGEST_SCORES:
            return super().exact_nll(hidden, target)
        rows, block = hidden.reshape(-1, hidden.shape[-1]), max(1, _BLOCK // num_words)
        return linear_cross_entropy(rows, self.words.weight, self.bias, target.reshape(-1), block).view(target.shape)

    def chosen_log_probs(self) -> Callable[[Tensor, Tensor], Tensor]:
        """Return a function that computes one product for each call, and one backward product for many calls."""
        return ChosenLogits(self.words.weight, self.bias).log_probs


@final
class Sampled(Softmax):
    """``softmax`` with ``samples`` = 1000 by default: see ``sememekit.decoders.sampling`` for the estimate and its sources."""

    class Settings(Softmax.Settings):
        samples: int = Field(default=1000, ge=1)
        """S, words drawn for each training batch to estimate the normaliser."""
