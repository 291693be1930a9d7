"""Senses in blocks that fit the cache, ordered so that the senses of many words are ranges and need no index."""

from itertools import pairwise
from typing import NamedTuple, final

import torch
from torch import Tensor
from torch.nn import functional

from sememekit.layers import Incidence

SENSES_PER_BLOCK = 2560
"""Senses of a block on CPU: with 64 tokens an array of 0.7 MB."""

RANKS = 4
"""Senses of a word that are stored as ranges; further senses have an index."""

Views = tuple[Tensor, ...]
"""Parts of an array, one for each sense rank in a block."""


@final
class SenseBlock(NamedTuple):
    """The senses of some words, which are sorted by falling number of senses.

    The order is the first sense of each word, then the second senses, and so on. The words with a j-th sense are the first
    words of the block, so their scores are used in place. Senses after the first ``RANKS`` of a word form a tail in the order
    of words. s is the number of senses, v of words.

    Attributes:
        words: its words, as a slice of the order of all blocks.
        places: its senses, as a slice of the order of all blocks.
        ranks: number of words with a first, a second ... sense.
        word_of_tail: the words of the tail, counted in the block.
        tail_of_word: Incidence (words that have such senses x tail).
        sememes_of_sense: Incidence (s x K).
        constant, back_constant: (edges,) C[k, s] of each edge of ``sememes_of_sense``, in its order and in the order of
            ``back``.
    """

    words: slice
    places: slice
    ranks: tuple[int, ...]
    word_of_tail: Tensor
    tail_of_word: Incidence
    sememes_of_sense: Incidence
    constant: Tensor
    back_constant: Tensor

    @property
    def num_words(self) -> int:
        return self.words.stop - self.words.start

    @property
    def num_senses(self) -> int:
        return self.places.stop - self.places.start

    def by_basis(self, of_words_Rvn: Tensor) -> list[tuple[Tensor, ...]]:
        """Return the parts of (R, v, n) for each basis and rank; all views at once, since each costs a microsecond."""
        return list(zip(*(of_words_Rvn[:, :size].unbind(0) for size in self.ranks), strict=True))

    def by_rank(self, of_senses_sn: Tensor) -> tuple[Tensor, ...]:
        """Return the parts of (s, n) for each rank, and the tail."""
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
    """All senses in blocks.

    Attributes:
        word_at: (V,) the word at each place in the order of the blocks.
        word_place: (V,) the place of each word.
        sense_at: (S,) the sense at each place.
        place_of: (S,) the place of each sense.
    """

    blocks: tuple[SenseBlock, ...]
    word_at: Tensor
    word_place: Tensor
    sense_at: Tensor
    place_of: Tensor

    @property
    def most_words(self) -> int:
        """Largest number of words in a block."""
        return max(block.num_words for block in self.blocks)

    @property
    def most_senses(self) -> int:
        """Largest number of senses in a block."""
        return max(block.num_senses for block in self.blocks)


@final
class SenseArrays(NamedTuple):
    """The arrays of blocks, described in ``SenseStructure``."""

    sense_offsets: Tensor
    set_of_sense: Tensor
    set_offsets: Tensor
    set_sememes: Tensor
    squared_degree: Tensor
    num_sememes: int


def make_blocks(arrays: SenseArrays, dtype: torch.dtype) -> SenseBlocks:
    """Divide all senses into blocks of some thousand on CPU, otherwise into one, with C[k, s] in ``dtype``."""
    num_senses, device = len(arrays.set_of_sense), arrays.set_of_sense.device
    count_V, word_at = arrays.sense_offsets.diff().sort(descending=True, stable=True)
    number = max(1, round(num_senses / SENSES_PER_BLOCK)) if device.type == "cpu" else 1
    cuts = torch.arange(1, number, device=device) * num_senses // number
    bounds = sorted({0, *torch.searchsorted(count_V.cumsum(0), cuts).tolist(), len(word_at)})
    blocks, order, done = [], [], 0
    for begin, end in pairwise(bounds):
        block, sense_s = _make_block(arrays, dtype, slice(begin, end), word_at[begin:end], done)
        blocks.append(block)
        order.append(sense_s)
        done += len(sense_s)
    sense_at = torch.cat(order)
    return SenseBlocks(tuple(blocks), word_at, inverse(word_at), sense_at, inverse(sense_at))


def inverse(order: Tensor) -> Tensor:
    """Invert a permutation."""
    return torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))


def inverse_root(squares: Tensor, dtype: torch.dtype) -> Tensor:
    """Return 1 / sqrt of integers; above 65,504 they would be infinite in half precision, and the result 0."""
    return squares.to(torch.promote_types(dtype, torch.float32)).rsqrt().to(dtype)


def _make_block(arrays: SenseArrays, dtype: torch.dtype, words: slice, word_v: Tensor, place: int) -> tuple[SenseBlock, Tensor]:
    """Return the block of the words ``word_v`` (v,), whose senses begin at ``place``, and these senses (s,)."""
    first_v = arrays.sense_offsets[word_v]
    count_v = arrays.sense_offsets[word_v + 1] - first_v
    words_of_count = count_v.bincount().tolist()
    having = [size for rank in range(RANKS) if (size := sum(words_of_count[rank + 1 :]))]
    left = (count_v - RANKS).clamp(min=0)[: sum(words_of_count[RANKS + 1 :])]
    tail_offsets = functional.pad(left.cumsum(0), (1, 0))
    word_of_tail = torch.arange(len(left), device=left.device).repeat_interleave(left)
    tail = torch.arange(len(word_of_tail), device=left.device)
    last = first_v[word_of_tail] + RANKS + tail - tail_offsets[word_of_tail]
    sense_s = torch.cat([*(first_v[:size] + rank for rank, size in enumerate(having)), last])
    offsets, edges = ranges(arrays.set_offsets, arrays.set_of_sense[sense_s])
    sememes_of_sense = Incidence(offsets, arrays.set_sememes[edges], arrays.num_sememes)
    constant = inverse_root(arrays.squared_degree[edges], dtype)
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
    """Concatenate the members offsets[r] to offsets[r + 1] of some rows (n,): new offsets (n + 1,), and members."""
    first, count = offsets[rows], offsets[rows + 1] - offsets[rows]
    new = functional.pad(count.cumsum(0), (1, 0))
    members = torch.arange(int(new[-1]), device=offsets.device)
    return new, members + (first - new[:-1]).repeat_interleave(count)
