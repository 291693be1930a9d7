"""Initial biases of words and classes."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.config import Settings

BiasStart = Literal["log_frequency", "zero"]
"""Start of the free number of each word: the logarithm of its frequency in the training text, or 0."""

STARTS: Mapping[str, BiasStart] = {"adagrad": "log_frequency", "adam": "log_frequency"}
"""Optimiser -> where the biases of most layers start; see docs/training.md."""


class BiasStartSettings(Settings):
    """Settings of an output layer with a free number for each word, class, sense or node."""

    bias_start: BiasStart | None = None
    """Start of the biases: "log_frequency", so that an untrained layer knows how frequent words are, or "zero". Unset: what
    the layer has for the optimiser, as measured in docs/training.md; the plan of a run holds the answer."""

    starts: ClassVar[Mapping[str, BiasStart]] = STARTS
    """Optimiser -> where biases start with it; "zero" where it is not listed."""

    def settled(self, optimizer: str, unit_contexts: bool) -> Self:
        if self.bias_start is not None:
            return self
        return self.model_copy(update={"bias_start": self.starts.get(optimizer, "zero")})


def log_frequencies(counts: NDArray[np.integer]) -> Tensor:
    """(V,) log(count + 1) of each word, minus the mean over all words, in float64.

    As word biases these make a layer whose contexts are 0 the add-one unigram model. A constant common to all words changes no
    softmax; with the mean at 0 weight decay moves the numbers least.

    Args:
        counts: (V,) how often each word is predicted in the training text.
    """
    logs = np.log(np.asarray(counts, dtype=np.float64) + 1.0)
    return torch.from_numpy(logs - logs.mean())


@torch.no_grad()
def begin_bias(bias: Tensor | None, start: BiasStart | None, counts: NDArray[np.integer]) -> None:
    """Put the word biases (V,), where there are any, at ``log_frequencies`` if they are to start there."""
    if bias is not None and start == "log_frequency":
        bias.copy_(log_frequencies(counts))


@torch.no_grad()
def begin_class_bias(bias: Tensor | None, start: BiasStart | None, counts: NDArray[np.integer], group_of: Tensor) -> None:
    """Put the biases of classes (C,) at the logarithm of the mass that ``log_frequencies`` gives their words.

    Args:
        counts: (V,) how often each word is predicted in the training text.
        group_of: (V,) the class of each word. A class without words keeps its bias.
    """
    if bias is not None and start == "log_frequency":
        masses = torch.zeros(len(bias), dtype=torch.float64).index_add(0, group_of.cpu(), log_frequencies(counts).exp())
        bias.copy_(torch.where(masses > 0, masses.log(), bias.cpu().double()))
