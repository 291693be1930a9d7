"""Initial biases of words and classes."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.config import Settings

BiasStart = Literal["log_frequency", "zero"]
"""Start of the word biases: the logarithm of the frequency in the training text, or 0."""

STARTS: Mapping[str, BiasStart] = {"adagrad": "log_frequency", "adam": "log_frequency"}
"""Optimiser -> start of the biases of most layers; see docs/training.md."""


class BiasStartSettings(Settings):
    """Settings of an output layer with a bias for each word, class, sense or node."""

    bias_start: BiasStart | None = None
    """Start of the biases: "log_frequency", so that an untrained layer predicts word frequencies, or "zero". Unset: by
    optimiser (docs/training.md); the plan of a run has the resolved value."""

    starts: ClassVar[Mapping[str, BiasStart]] = STARTS
    """Optimiser -> start of the biases; "zero" if not listed."""

    def settled(self, optimizer: str, unit_contexts: bool) -> Self:
        if self.bias_start is not None:
            return self
        return self.model_copy(update={"bias_start": self.starts.get(optimizer, "zero")})


def log_frequencies(counts: NDArray[np.integer]) -> Tensor:
    """(V,) log(count + 1) of each word, minus the mean over all words, in float64; ``counts`` (V,) are of predictions in the
    training text. With these values as word biases, a layer whose contexts are 0 is the add-one unigram model. Subtracting the
    mean does not change a softmax, and weight decay then changes the biases least."""
    logs = np.log(np.asarray(counts, dtype=np.float64) + 1.0)
    return torch.from_numpy(logs - logs.mean())


@torch.no_grad()
def begin_bias(bias: Tensor | None, start: BiasStart | None, counts: NDArray[np.integer]) -> None:
    """Set word biases (V,), if any, to ``log_frequencies`` if ``start`` says so."""
    if bias is not None and start == "log_frequency":
        bias.copy_(log_frequencies(counts))


@torch.no_grad()
def begin_class_bias(bias: Tensor | None, start: BiasStart | None, counts: NDArray[np.integer], group_of: Tensor) -> None:
    """Set class biases (C,) to the log-sum-exp of the ``log_frequencies`` of their words, by the counts of predictions (V,) and
    the class (V,) of each word; a class without words keeps its bias."""
    if bias is not None and start == "log_frequency":
        masses = torch.zeros(len(bias), dtype=torch.float64).index_add(0, group_of.cpu(), log_frequencies(counts).exp())
        bias.copy_(torch.where(masses > 0, masses.log(), bias.cpu().double()))
