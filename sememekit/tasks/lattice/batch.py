"""Sentences as lattices of numbers: which edges there are, what each is called, and what each is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sememekit.tasks.lattice.entries import Entries


@dataclass(frozen=True)
class Grams:
    """The distinct windows of 1 .. L tokens of a batch, so that each is encoded once. D_l windows have l tokens.

    Attributes:
        prefix, suffix: for l = 2 .. L the windows of l - 1 tokens that those of l tokens begin and end with, (D_l,) each.
        first, last: for l = 1 .. L the first and the last token of each window, as numbers of distinct tokens, (D_l,) each.
        rows: (D, E) rows of the copies of each window, D = D_1 + .. + D_L, one length after the other; the row of the sentinel
            where there is no such copy (row 0 where there is no sentinel).
        index: (T, L, B) which of the D windows ends at each place; any where none does.
    """

    prefix: tuple[Tensor, ...]
    suffix: tuple[Tensor, ...]
    first: tuple[Tensor, ...]
    last: tuple[Tensor, ...]
    rows: Tensor
    index: Tensor


@dataclass(frozen=True)
class LatticeBatch:
    """Padded sentences. Edges are listed by the node where they begin: [i, b, l - 1, e] has the tokens i .. i + l - 1.

    Legend: T tokens of the longest sentence, B sentences, L longest chunk (no longer than T), E copies.

    Attributes:
        tokens: (T, B) word ids, the end mark where a sentence is over.
        lengths: (B,) tokens of each sentence, its end mark included.
        rows: (T, B, L, E) the row of each edge in the main softmax, -1 for one outside the chunk vocabulary.
        exists: (T, B, L, E) which edges there are. Padding has edges of one token, so that nothing there is undefined.
        log_copies: (T, B, L) the logarithm of the number of copies of each chunk.
        closes: (T, B, L) whether the chunk ends with the end mark, which nothing can follow.
        chunks: (B, T, L) chunk ids by the token where they end, -1 for one outside the vocabulary.
        words: (D_1,) the distinct word ids among the tokens, rising; the end mark and what opens a sentence are among them.
        grams: the distinct windows, or None where nothing is made of windows.
    """

    tokens: Tensor
    lengths: Tensor
    rows: Tensor
    exists: Tensor
    log_copies: Tensor
    closes: Tensor
    chunks: Tensor
    words: Tensor
    grams: Grams | None

    @property
    def num_tokens(self) -> int:
        """T."""
        return self.tokens.shape[0]


def make_batch(
    sentences: Sequence[npt.NDArray[np.integer]],
    entries: Entries,
    longest: int,
    end: int,
    *,
    opening: int,
    windows: bool,
    device: torch.device,
) -> LatticeBatch:
    """Pad sentences and lay out their lattices.

    Args:
        sentences: B arrays of word ids, the end mark at the end of each.
        entries: of the main softmax.
        longest: L.
        end: the id of the end mark.
        opening: the id of the word that is read before every sentence.
        windows: whether to find the distinct windows.
        device: where the numbers go.
    """
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    batch, tokens = len(sentences), int(lengths.max())
    longest = min(longest, tokens)
    ids = np.full((batch, tokens), end, dtype=np.int64)
    for number, sentence in enumerate(sentences):
        ids[number, : len(sentence)] = sentence
    found = entries.chunks.windows(ids)[:, :, :longest]
    chunks = np.full((batch, tokens, longest), -1, dtype=np.int64)
    chunks[:, :, : found.shape[2]] = found
    words, single = np.unique(np.append(ids.T, opening), return_inverse=True)
    single = single[:-1].reshape(tokens, batch)
    leaving = np.full_like(chunks, -1)
    for length in range(1, longest + 1):
        leaving[:, : tokens - length + 1, length - 1] = chunks[:, length - 1 :, length - 1]
    known = leaving >= 0
    rows = np.where(known[..., None], entries.rows[leaving], -1)
    copies = np.where(known, entries.num_copies[leaving], 1)
    behind = np.arange(tokens)[None, :, None] + np.arange(1, longest + 1)
    inside = behind <= lengths[:, None, None]
    inside[:, :, 0] = True
    exists = rows >= 0
    if entries.sentinel is not None:
        exists[..., 0] |= ~known
    exists &= inside[..., None]

    def give(array: npt.NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array.swapaxes(0, 1))).to(device, non_blocking=True)

    return LatticeBatch(
        tokens=give(ids),
        lengths=torch.from_numpy(lengths).to(device, non_blocking=True),
        rows=give(rows),
        exists=give(exists),
        log_copies=give(np.log(copies)),
        closes=give(behind == lengths[:, None, None]),
        chunks=torch.from_numpy(np.where(behind[:, :, :1] > lengths[:, None, None], -1, chunks)).to(device, non_blocking=True),
        words=torch.from_numpy(words).to(device, non_blocking=True),
        grams=_grams(words, single, chunks.transpose(1, 2, 0), entries, device) if windows else None,
    )


def _grams(
    words: npt.NDArray[np.int64],
    single: npt.NDArray[np.int64],
    chunks: npt.NDArray[np.int64],
    entries: Entries,
    device: torch.device,
) -> Grams:
    """The distinct windows of tokens that are ``words[single]`` (T, B); ``chunks`` (T, L, B) by the token where they end."""
    tokens, longest, _ = chunks.shape
    index = np.zeros(chunks.shape, dtype=np.int64)
    index[:, 0] = shorter = single
    first = [np.arange(len(words))]
    last, prefix, suffix, own = list(first), [], [], [words]
    offset = len(words)
    for length in range(2, longest + 1):
        keys = shorter[: tokens - length + 1] * len(words) + single[length - 1 :]
        distinct, where, inverse = np.unique(keys, return_index=True, return_inverse=True)
        inverse = inverse.reshape(keys.shape)
        prefix.append(distinct // len(words))
        last.append(distinct % len(words))
        first.append(first[-1][prefix[-1]])
        suffix.append(shorter[1:].reshape(-1)[where])
        own.append(chunks[length - 1 :, length - 1].reshape(-1)[where])
        index[length - 1 :, length - 1] = inverse + offset
        offset += len(distinct)
        shorter = inverse
    of_windows = np.concatenate(own)
    none = entries.sentinel or 0
    rows = np.where((of_windows >= 0)[:, None], entries.rows[of_windows], none)

    def give(array: npt.NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)

    return Grams(
        prefix=tuple(map(give, prefix)),
        suffix=tuple(map(give, suffix)),
        first=tuple(map(give, first)),
        last=tuple(map(give, last)),
        rows=give(np.where(rows < 0, none, rows)),
        index=give(index),
    )


def roomy(
    batches: Iterable[npt.NDArray[np.int64]], lengths: npt.NDArray[np.int64], most: int
) -> Iterator[npt.NDArray[np.int64]]:
    """Cut batches further, so that none has more than ``most`` places, padding included, but one of a single sentence.

    Args:
        batches: numbers of sentences, the longest first in each.
        lengths: of all sentences.
        most: places.
    """
    for chosen in batches:
        while len(chosen):
            size = max(1, most // max(1, int(lengths[chosen[0]])))
            yield chosen[:size]
            chosen = chosen[size:]
