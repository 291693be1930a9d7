"""Words, senses and sememes as index arrays, and senses in blocks of ranges that stay in the cache."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sememekit.layers import FixedTables, Incidence
from sememekit.sememes import SememeGraph

SENSES_PER_BLOCK = 2560
"""Senses of a block on a CPU: times 64 tokens they are an array of 0.7 MB."""

RANKS = 4
"""The first so many senses of a word are stored as ranges; the few further senses have an index."""

Views = tuple[Tensor, ...]
"""Parts of an array, one for each rank of the senses in a block."""


@final
class SenseBlock(NamedTuple):
    """The senses of some words, which are sorted by falling number of senses.

    The order is: the first sense of each word, then the second sense of each word that has two, and so on. The words with a
    j-th sense are the first words of the block, so that their scores are read in place. Senses after the first ``RANKS`` of a
    word are a tail in the order of words. s is the number of senses, v of words."""

    words: slice  # which words, as a slice of the order of all blocks
    places: slice  # which senses, as a slice of the order of all blocks
    # how many words have a first, a second ... sense
    ranks: tuple[int, ...]
    word_of_tail: Tensor  # the words of the tail, counted in the block
    tail_of_word: Incidence  # Incidence (words that have such senses x tail)
    sememes_of_sense: Incidence  # Incidence (s x K)
    # constant, back_constant: (edges,) C[k, s] of each edge of ``sememes_of_sense``, in its and in ``back``'s order
    constant: Tensor
    back_constant: Tensor

    def by_basis(self, of_words_Rvn: Tensor) -> list[tuple[Tensor, ...]]:
        """For each basis, the parts of (R, v, n) that belong to each rank. All views are made at once (a microsecond each)."""
        return list(zip(*(of_words_Rvn[:, :size].unbind(0) for size in self.ranks), strict=True))

    def by_rank(self, of_senses_sn: Tensor) -> tuple[Tensor, ...]:
        """The parts of (s, n) that belong to each rank, and the tail."""
        tail = len(self.word_of_tail)
        return of_senses_sn.split((*self.ranks, tail) if tail else self.ranks)

    def of_senses(self, of_words_vn: Tensor) -> Tensor:
        """(v, n) -> (s, n): repeat the row of a word for each of its senses."""
        return torch.cat([*(of_words_vn[:size] for size in self.ranks), of_words_vn.index_select(0, self.word_of_tail)])

    def add_products(self, totals: Views, scores: Views, factors: Views) -> None:
        """``totals`` += ``scores`` of each sense's word, times ``factors``."""
        for total, score, factor in zip(totals, self._with_tail(scores), factors, strict=True):
            total.addcmul_(score, factor)

    def products(self, scores: Views, factors: Views, out: Views) -> None:
        """``out`` = ``scores`` of each sense's word, times ``factors``."""
        for score, factor, product in zip(self._with_tail(scores), factors, out, strict=True):
            torch.mul(score, factor, out=product)

    def sum_products(self, left: Views, right: Views, out: Views) -> None:
        """``out`` = the sum of ``left * right`` over the senses of each word."""
        torch.mul(left[0], right[0], out=out[0])
        for total, one, other in zip(out[1:], left[1:], right[1:], strict=False):  # the tail has no place of its own
            total.addcmul_(one, other)
        if len(self.word_of_tail):
            out[0][: self.tail_of_word.num_rows] += self.tail_of_word(left[-1] * right[-1])

    def _with_tail(self, scores: Views) -> Views:
        return (*scores, scores[0].index_select(0, self.word_of_tail)) if len(self.word_of_tail) else scores


@final
class SenseBlocks(NamedTuple):
    """All senses in blocks."""

    blocks: tuple[SenseBlock, ...]
    word_at: Tensor  # (V,) the word at each place of the order of the blocks
    word_place: Tensor  # (V,) the place of each word
    sense_at: Tensor  # (S,) the sense at each place
    place_of: Tensor  # (S,) the place of each sense

    @property
    def most_words(self) -> int:
        """The largest number of words of a block."""
        return max(block.words.stop - block.words.start for block in self.blocks)

    @property
    def most_senses(self) -> int:
        """The largest number of senses of a block."""
        return max(block.places.stop - block.places.start for block in self.blocks)


@final
class SenseStructure(FixedTables):
    """Words, senses and sememes as index arrays on the device, without learned parameters.

    ``from_graph`` makes it from a sememe graph, and ``of_words`` restricts it to some words.

    >>> structure = SenseStructure.from_graph(graph, symmetric=False)
    >>> part, senses = structure.of_words(torch.tensor([3, 7]))
    >>> part.num_words, part.num_senses == len(senses)

    Attributes:
        sense_offsets: (V + 1,) bounds of the senses of each word.
        word_of_sense, set_of_sense: (S,).
        set_offsets, set_sememes: the sememes of each distinct set, one set after the other.
        squared_degree: (as set_sememes) 1 / C[k, s]^2, an integer: |E(s)|^2, or |E(s)| |D(k)| in the symmetric form.
        num_words, num_senses, num_sememes: V, S, K.
        most_senses: M, largest number of senses of a word in the graph."""

    sense_offsets: Tensor
    word_of_sense: Tensor
    set_of_sense: Tensor
    set_offsets: Tensor
    set_sememes: Tensor
    squared_degree: Tensor

    def __init__(
        self,
        sense_offsets: Tensor,
        set_of_sense: Tensor,
        set_offsets: Tensor,
        set_sememes: Tensor,
        squared_degree: Tensor,
        num_sememes: int,
        most_senses: int,
    ) -> None:
        super().__init__()
        self.num_words, self.num_senses, self.num_sememes = len(sense_offsets) - 1, len(set_of_sense), num_sememes
        self.most_senses = most_senses
        words = torch.arange(self.num_words, device=sense_offsets.device)
        word_of_sense = words.repeat_interleave(sense_offsets.diff(), output_size=self.num_senses)
        self.register_tables(sense_offsets=sense_offsets, word_of_sense=word_of_sense, set_of_sense=set_of_sense)
        self.register_tables(set_offsets=set_offsets, set_sememes=set_sememes, squared_degree=squared_degree)
        self._blocks: dict[tuple[torch.device, torch.dtype], SenseBlocks] = {}

    @classmethod
    def from_graph(cls, graph: SememeGraph, *, symmetric: bool) -> SenseStructure:
        """The whole graph, with C[k, s] in its left or its symmetric form."""
        set_sizes = np.diff(graph.set_offsets)
        own = np.repeat(set_sizes, set_sizes)
        squared_degree = own * (graph.senses_per_sememe[graph.set_sememes] if symmetric else own)
        arrays = (graph.sense_offsets, graph.sense_set, graph.set_offsets, graph.set_sememes, squared_degree)
        offsets, set_of_sense, set_offsets, members, degrees = (torch.from_numpy(array.astype(np.int64)) for array in arrays)
        most_senses = int(np.diff(graph.sense_offsets).max())
        return cls(offsets, set_of_sense, set_offsets, members, degrees, graph.num_sememes, most_senses)

    def of_words(self, words: Tensor) -> tuple[SenseStructure, Tensor]:
        """Return the structure of the distinct words (W,), and the numbers (S',) of their senses in the whole.

        Words and senses are renumbered; sets, sememes and C[k, s] (which counts the senses of the whole graph) stay."""
        sense_offsets, senses = ranges(self.sense_offsets, words)
        sets = (self.set_of_sense[senses], self.set_offsets, self.set_sememes, self.squared_degree)
        return SenseStructure(sense_offsets, *sets, self.num_sememes, self.most_senses), senses

    def senses_of(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Return all senses of ``words`` (N,), padded to M: (M, N) senses, and (M, N) which are real.

        A fixed M makes the shape known in advance, without waiting for the device."""
        first = self.sense_offsets[words]
        count = self.sense_offsets[words + 1] - first
        rank = torch.arange(self.most_senses, device=words.device)[:, None]
        return first + torch.minimum(rank, count - 1), rank < count

    def onto_sememes(self, of_sense_SN: Tensor) -> Tensor:
        """Sum (S, N) over the senses of each sememe: (K, N)."""
        blocks = self.blocks(of_sense_SN.dtype)
        of_sense_SN = of_sense_SN.index_select(0, blocks.sense_at)
        parts = [block.sememes_of_sense.back(of_sense_SN[block.places]) for block in blocks.blocks]
        return torch.stack(parts).sum(dim=0)

    def blocks(self, dtype: torch.dtype) -> SenseBlocks:
        """The senses in blocks, with C[k, s] in ``dtype``: of some thousand senses on CPU, elsewhere in one.

        Built at the first call on a device, as ordinary tensors even in inference mode, so that training can use them."""
        key = (self.sense_offsets.device, dtype)
        if key not in self._blocks:
            with torch.inference_mode(False):
                self._blocks = {key: make_blocks(self, dtype)}
        return self._blocks[key]


def make_blocks(structure: SenseStructure, dtype: torch.dtype) -> SenseBlocks:
    """All senses in blocks, with C[k, s] in ``dtype``: of some thousand senses on CPU, elsewhere in one."""
    num_senses, device = structure.num_senses, structure.sense_offsets.device
    count_V, word_at = structure.sense_offsets.diff().sort(descending=True, stable=True)
    number = max(1, round(num_senses / SENSES_PER_BLOCK)) if device.type == "cpu" else 1
    cuts = torch.arange(1, number, device=device) * num_senses // number
    bounds = sorted({0, *torch.searchsorted(count_V.cumsum(0), cuts).tolist(), len(word_at)})
    blocks, order, done = [], [], 0
    for begin, end in pairwise(bounds):
        block, sense_s = _make_block(structure, dtype, slice(begin, end), word_at[begin:end], done)
        blocks.append(block)
        order.append(sense_s)
        done += len(sense_s)
    sense_at = torch.cat(order)
    return SenseBlocks(tuple(blocks), word_at, inverse(word_at), sense_at, inverse(sense_at))


def inverse(order: Tensor) -> Tensor:
    """Invert a permutation."""
    return torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))


def _make_block(
    structure: SenseStructure, dtype: torch.dtype, words: slice, word_v: Tensor, place: int
) -> tuple[SenseBlock, Tensor]:
    """The block of the words ``word_v`` (v,), whose senses begin at ``place`` of the order, and these senses (s,)."""
    first_v = structure.sense_offsets[word_v]
    count_v = structure.sense_offsets[word_v + 1] - first_v
    words_of_count = count_v.bincount().tolist()
    having = [size for rank in range(RANKS) if (size := sum(words_of_count[rank + 1 :]))]
    left = (count_v - RANKS).clamp(min=0)[: sum(words_of_count[RANKS + 1 :])]
    tail_offsets = functional.pad(left.cumsum(0), (1, 0))
    word_of_tail = torch.arange(len(left), device=left.device).repeat_interleave(left)
    tail = torch.arange(len(word_of_tail), device=left.device)
    last = first_v[word_of_tail] + RANKS + tail - tail_offsets[word_of_tail]
    sense_s = torch.cat([*(first_v[:size] + rank for rank, size in enumerate(having)), last])
    offsets, edges = ranges(structure.set_offsets, structure.set_of_sense[sense_s])
    sememes_of_sense = Incidence(offsets, structure.set_sememes[edges], structure.num_sememes)
    # Squares above 65,504 are infinite in half precision, and their inverse root would be 0.
    constant = structure.squared_degree[edges].to(torch.promote_types(dtype, torch.float32)).rsqrt().to(dtype)
    block = SenseBlock(
        words=words,
        places=slice(place, place + len(sense_s)),
        ranks=tuple(having),
        word_of_tail=word_of_tail,
        tail_of_word=Incidence(tail_offsets, tail, len(tail)),
        sememes_of_sense=sememes_of_sense,
        constant=constant,
        back_constant=constant[sememes_of_sense.back_edges],
    )
    return block, sense_s


def ranges(offsets: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The members offsets[r] to offsets[r + 1] of some rows (n,), one after the other: new offsets (n + 1,), and members."""
    first, count = offsets[rows], offsets[rows + 1] - offsets[rows]
    new = functional.pad(count.cumsum(0), (1, 0))
    members = torch.arange(int(new[-1]), device=offsets.device)
    return new, members + (first - new[:-1]).repeat_interleave(count)
