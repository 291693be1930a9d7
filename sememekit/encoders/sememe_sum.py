"""pi, the sum of the sememe vectors of a word, and recurrent layers that may read pi."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememekit.encoders.base import State
from sememekit.layers import FixedTables
from sememekit.sememes import SememeGraph


@dataclass(frozen=True)
class Pi:
    """pi of every position; positions with equal sememes share one stored row."""

    rows: Tensor  # (N, P), one row for each distinct set of sememes
    where: Tensor  # (...) the row of each position

    def to_positions(self, values: Tensor) -> Tensor:
        """Values computed from the rows, (N, X), at every position: (..., X)."""
        return values.index_select(0, self.where.flatten()).view(*self.where.shape, values.shape[-1])


class SememeSum(FixedTables):
    """pi(w) = sum of the vectors of the sememes of w, all its senses pooled (Eq. (4), Qin et al. 2020): a sum, not a mean.

    An unannotated word has pi = 0. Distinct sets are padded lists of ids: shapes are known, and no device waits.

    Shapes: K sememes, P their size; ``tokens`` (...) have pi (..., P)."""

    set_of_word: Tensor
    lists: Tensor

    def __init__(self, graph: SememeGraph, size: int, deviation: float, dropout: float) -> None:
        """Normal(0, ``deviation``) vectors of ``size``; ``dropout`` zeroes elements of the matrix, for all positions alike."""
        super().__init__()
        self.dropout = dropout
        self.vectors = nn.Parameter(torch.randn(graph.num_sememes, size) * deviation)
        set_of_word, offsets, members = graph.pooled_sets()
        lengths = np.diff(offsets)
        lists = np.full((len(lengths), max(1, lengths.max())), graph.num_sememes, dtype=np.int64)
        lists[np.arange(lists.shape[1]) < lengths[:, None]] = members
        self.register_tables(set_of_word=torch.from_numpy(set_of_word), lists=torch.from_numpy(lists))

    def forward(self, tokens: Tensor) -> Pi:
        """pi of each of ``tokens``.

        On a CPU, where this needs no synchronisation, repeated sets of a batch are summed once, which saves about half."""
        sets = self.set_of_word[tokens]
        if sets.device.type == "cpu" and not torch.compiler.is_compiling():
            sets, where = torch.unique(sets, return_inverse=True)
            return Pi(self._sum_lists(self.lists[sets]), where)
        return self.of_lists(self.lists[sets])

    def of_lists(self, lists: Tensor) -> Pi:
        """pi of positions with the sememes ``lists`` (..., M), padded with K."""
        return Pi(self._sum_lists(lists.flatten(0, -2)), _positions(lists))

    def of_weights(self, weights: Tensor) -> Pi:
        """pi of positions with the ``weights`` (..., K) of all sememes, such as ones and zeros."""
        vectors = functional.dropout(self.vectors, self.dropout, self.training)
        return Pi(weights.flatten(0, -2).to(vectors.dtype) @ vectors, _positions(weights))

    def _sum_lists(self, lists: Tensor) -> Tensor:
        """(N, P) sums of the vectors of lists (N, M)."""
        vectors = functional.dropout(self.vectors, self.dropout, self.training)
        with_nothing = functional.pad(vectors, (0, 0, 0, 1))
        return functional.embedding_bag(lists, with_nothing, mode="sum", padding_idx=len(vectors))

    def sememes_of(self, word: int) -> list[int]:
        """Return the ids of the sememes of a word, rising; empty for an unannotated word."""
        return [number for number in self.lists[self.set_of_word[word]].tolist() if number < len(self.vectors)]


def _positions(x: Tensor) -> Tensor:
    """(...) the number of each position of ``x`` (..., M)."""
    return torch.arange(x[..., 0].numel(), device=x.device).view(x.shape[:-1])


@contextmanager
def further_words(module: nn.Module, sets: Sequence[Sequence[int]]) -> Iterator[int]:
    """Give every ``SememeSum`` of ``module`` further words inside the block: ids V, V + 1, ... with the sememes in ``sets``.

    This answers questions such as: what is the effect of a word without one of its sememes? Yields V, the first new id; 0 if no
    part of the module reads sememes."""
    sums = [part for part in module.modules() if isinstance(part, SememeSum)]
    before = [(part, part.set_of_word, part.lists) for part in sums]
    try:
        for part, set_of_word, lists in before:
            width = max([lists.shape[1], *(len(one) for one in sets)])
            longer = functional.pad(lists, (0, width - lists.shape[1]), value=len(part.vectors))
            rows = [[*one, *[len(part.vectors)] * (width - len(one))] for one in sets]
            added = torch.tensor(rows, dtype=lists.dtype, device=lists.device).view(len(sets), width)
            new = torch.arange(len(lists), len(lists) + len(sets), device=set_of_word.device)
            part.register_tables(set_of_word=torch.cat([set_of_word, new]), lists=torch.cat([longer, added]))
        yield len(before[0][1]) if before else 0
    finally:
        for part, set_of_word, lists in before:
            part.register_tables(set_of_word=set_of_word, lists=lists)


Initialisation = Literal["uniform", "kaiming"]


class CustomRecurrentLayer(nn.Module, ABC):
    """A recurrent layer that may read pi beside its input. Every linear map has its own bias.

    Shapes: T time, B batch, E input, P size of pi, H output."""

    @abstractmethod
    def forward(self, x: Tensor, pi: Any, state: State) -> State:
        """Return every state of the sequence, outputs first: (T, B, H) each, in the order of the tensors (B, H) of ``state``.

        ``x`` is (T, B, E); ``pi`` is a ``Pi`` of (T, B), the sum of each word's sememes, or None where it is unused."""


def initialise(module: nn.Module, way: Initialisation, size: int) -> None:
    """Initialise the linear maps and torch's own recurrent modules inside ``module``.

    ``uniform`` in +-1 / sqrt(H), biases too, as torch's recurrent modules; ``kaiming`` is Normal with variance 2 / fan-in and
    biases 0, as the released sememe cells."""
    for name, parameter in module.named_parameters():
        if way == "uniform":
            nn.init.uniform_(parameter, -(size**-0.5), size**-0.5)
        elif "bias" in name:
            nn.init.zeros_(parameter)
        else:
            nn.init.kaiming_normal_(parameter)
