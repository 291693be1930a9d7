"""Every module of ``sememekit.nn`` at a size that can be reasoned about, with ids in no order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sememekit import nn as modules

WIDTH = 6
WORDS = 7
COUNTS = [1, 5, 3, 9, 0, 2, 4]
"""No order: word 3 is the most frequent."""
SENSES: list[list[list[int]]] = [[[0, 1], [2]], [[1]], [], [[3], [2, 0]], [[2, 3]], [[5]], [[1, 2, 3]]]
"""A word without senses, two words of two senses, a sememe (4) that no word has."""


@dataclass(frozen=True)
class Case:
    """A module and what it is called with.

    Attributes:
        make: builds it; ``call`` gives its arguments; ``value`` makes one tensor of its answer.
    """

    name: str
    make: Callable[[], nn.Module]
    call: Callable[[], tuple[Any, ...]]
    value: Callable[[Any], Tensor]

    def __str__(self) -> str:
        return self.name

    def build(self, seed: int = 3) -> nn.Module:
        """The module with every parameter moved away from where it starts."""
        torch.manual_seed(seed)
        module = self.make()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
        return module


def contexts(*shape: int, width: int = WIDTH) -> Tensor:
    return torch.randn(*shape, width, generator=torch.Generator().manual_seed(11))


def targets(*shape: int) -> Tensor:
    return (torch.arange(torch.Size(shape).numel()) % WORDS).reshape(shape)


def _layer(kind: Any, *given: Any, name: str = "", **settings: Any) -> Case:
    def call() -> tuple[Any, ...]:
        return contexts(5, 3), targets(5, 3)

    return Case(name or kind.__name__, lambda: kind(WIDTH, *given, **settings), call, lambda answer: answer.loss)


def _encoder(kind: Any, *given: Any, words: bool = True, name: str = "", **settings: Any) -> Case:
    def call() -> tuple[Any, ...]:
        return contexts(4, 3, width=5), *((targets(4, 3),) if words else ())

    made = lambda: kind(5, WIDTH, *given, **settings)  # noqa: E731
    return Case(name or kind.__name__, made, call, lambda answer: answer[0].square().mean())


LAYERS = [
    _layer(modules.FullSoftmax, COUNTS),
    _layer(modules.SampledSoftmax, COUNTS, samples=4),
    _layer(modules.AdaptiveSoftmax, COUNTS, cutoffs=(2, 4), shrink=2.0),
    _layer(modules.DifferentiatedSoftmax, COUNTS, cutoffs=(2,), widths=(4, 2)),
    _layer(modules.ClassSoftmax, COUNTS, num_classes=3),
    _layer(modules.ClassSoftmax, COUNTS, SENSES, name="ClassSoftmax-sememes"),
    _layer(modules.TreeSoftmax, COUNTS),
    _layer(modules.TreeSoftmax, COUNTS, SENSES, name="TreeSoftmax-sememes"),
    _layer(modules.MixtureOfSoftmaxes, COUNTS, num_components=2),
    _layer(modules.MixtureOfContexts, COUNTS, num_components=2),
    _layer(modules.SememeSoftmax, SENSES, num_bases=2),
    _layer(modules.MixtureOfSememeSoftmaxes, SENSES, num_components=2, num_bases=2),
    _layer(modules.SelfOrganizedSoftmax, COUNTS, update_every=2, gamma=3.0, frequency_budget=0.5),
]
ENCODERS = [
    _encoder(modules.SememeLSTM, SENSES),
    _encoder(modules.SememeLSTM, SENSES, injection="gate", name="SememeLSTM-gate"),
    _encoder(modules.SememeGRU, SENSES),
    _encoder(modules.SememeGRU, SENSES, injection="gate", name="SememeGRU-gate"),
    _encoder(modules.SememeGRU, SENSES, bidirectional=True, candidate="release", name="SememeGRU-both-directions"),
    _encoder(modules.MogrifierLSTM, SENSES, rounds=3, rank=2),
    _encoder(modules.AWDLSTM, num_layers=2, words=False),
]


def _lattice() -> Case:
    def call() -> tuple[Any, ...]:
        scores = contexts(2, 5, 2, width=1).log_softmax(dim=2).requires_grad_(True)
        start = torch.ones(5, 2, 1, dtype=torch.bool)
        start[0, 1] = False  # no edge begins before the first token
        return scores.where(start, -torch.inf), torch.tensor([5, 3])

    return Case("LatticeLoss", modules.LatticeLoss, call, lambda answer: answer)


ALL = [*LAYERS, *ENCODERS, _lattice()]
