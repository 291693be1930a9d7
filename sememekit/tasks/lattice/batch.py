"""Sentences as lattices of tensors: their edges, the softmax row of each edge, and its tokens."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sememekit.data.batching import bucketed_batches, sentence_bounds
from sememekit.data.prepared import PreparedData
from sememekit.errors import DataError
from sememekit.figures import percent
from sememekit.tasks.lattice.entries import Entries
from sememekit.tasks.lattice.settings import LONG, LatticeSettings


@dataclass(frozen=True)
class Windows:
    """The D distinct windows of 1 .. L tokens in a batch, sorted by length, so that each is encoded once."""

    # prefix, suffix: for l = 2 .. L and each window of l tokens, the windows of its first and of its last l - 1 tokens
    prefix: tuple[Tensor, ...]
    suffix: tuple[Tensor, ...]
    # first, last: (D,) first and last token of each window, as indices of the distinct tokens
    first: Tensor
    last: Tensor
    rows: Tensor  # (D, C) rows of the copies of each window; the sentinel's row (or 0) for absent copies
    index: Tensor  # (T, L, B) the window that begins at each node; arbitrary without a window


@dataclass(frozen=True)
class LatticeBatch:
    """Padded sentences. Edges are listed by the node where they begin: [i, b, l - 1, c] has the tokens i .. i + l - 1.

    Legend: T tokens of the longest sentence, B sentences, L longest chunk (no longer than T), C copies."""

    tokens: Tensor  # (T, B) word ids, padded with the end mark
    lengths: Tensor  # (B,) tokens of each sentence, its end mark included
    rows: Tensor  # (T, B, L, C) row of each edge in the main softmax, -1 outside the chunk vocabulary
    exists: Tensor  # (T, B, L, C) mask of the existing edges. Padding has edges of one token, so that all values are defined
    log_copies: Tensor  # (T, B, L) the logarithm of the number of copies of each chunk
    closes: Tensor  # (T, B, L) whether the chunk ends with the end mark, which nothing can follow
    chunks: Tensor  # (B, T, L) chunk ids by their last token, -1 outside the vocabulary
    words: Tensor  # (W,) the distinct word ids of the tokens in rising order, with end mark and start mark
    windows: Windows | None  # the distinct windows, or None if the model uses none
    count: int

    @property
    def num_tokens(self) -> int:
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
    """Pad B sentences, arrays of word ids with the end mark at the end, and lay out their lattices. ``opening`` is the word
    that is read before every sentence; with ``windows`` the distinct windows are found."""
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
        return _tensor(array.swapaxes(0, 1), device)

    return LatticeBatch(
        tokens=give(ids),
        lengths=_tensor(lengths, device),
        rows=give(rows),
        exists=give(exists),
        log_copies=give(np.log(copies)),
        closes=give(behind == lengths[:, None, None]),
        chunks=_tensor(np.where(behind[:, :, :1] > lengths[:, None, None], -1, chunks), device),
        words=_tensor(words, device),
        windows=_windows(words, single, leaving.transpose(1, 2, 0), entries, device) if windows else None,
        count=int(lengths.sum()),
    )


def _tensor(array: npt.NDArray[np.generic], device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)


def _windows(
    words: npt.NDArray[np.int64],
    single: npt.NDArray[np.int64],
    leaving: npt.NDArray[np.int64],
    entries: Entries,
    device: torch.device,
) -> Windows:
    """Return the distinct windows of tokens ``words[single]`` (T, B); ``leaving``: (T, L, B) chunks that begin at a node."""
    tokens, longest, _ = leaving.shape
    index = np.zeros(leaving.shape, dtype=np.int64)
    index[:, 0] = shorter = single
    first = [np.arange(len(words))]
    last, prefix, suffix, chunks = list(first), [], [], [words]
    offset = len(words)
    for length in range(2, longest + 1):
        nodes = tokens - length + 1
        keys = shorter[:nodes] * len(words) + single[length - 1 :]
        distinct, where, inverse = np.unique(keys, return_index=True, return_inverse=True)
        inverse = inverse.reshape(keys.shape)
        prefix.append(distinct // len(words))
        last.append(distinct % len(words))
        first.append(first[-1][prefix[-1]])
        suffix.append(shorter[1:].reshape(-1)[where])
        chunks.append(leaving[:nodes, length - 1].reshape(-1)[where])
        index[:nodes, length - 1] = inverse + offset
        offset += len(distinct)
        shorter = inverse
    of_windows, none = np.concatenate(chunks), entries.sentinel or 0
    rows = np.where((of_windows >= 0)[:, None], entries.rows[of_windows], none)
    return Windows(
        prefix=tuple(_tensor(each, device) for each in prefix),
        suffix=tuple(_tensor(each, device) for each in suffix),
        first=_tensor(np.concatenate(first), device),
        last=_tensor(np.concatenate(last), device),
        rows=_tensor(np.where(rows < 0, none, rows), device),
        index=_tensor(index, device),
    )


Numbers = npt.NDArray[np.int64]


def split_sentences(data: PreparedData, split: str, end: int) -> tuple[npt.NDArray[np.integer], Numbers]:
    """Return the stream of a split and the bounds (n + 1,) of its n sentences; DataError if there is no sentence."""
    tokens = data.tokens(split)
    bounds = sentence_bounds(tokens, end)
    if len(bounds) < 2 or bounds[-1] != len(tokens):
        raise DataError(
            f"{data.folder}: the split {split!r} has {len(bounds) - 1} sentences with an end mark and {len(tokens):,} "
            "tokens; every sentence has to end with <eos>: write the data with 'sememekit preprocess ... --end-of-sentence'"
        )
    return tokens, bounds


def training_batches(data: PreparedData, lengths: Numbers, settings: LatticeSettings, order: int) -> list[Numbers]:
    """Return the batches of an epoch as sentence indices, without sentences above ``max_length`` tokens."""
    limit = settings.max_length
    kept = np.flatnonzero(lengths <= limit + 1) if limit else np.arange(len(lengths))
    if not len(kept):
        raise DataError(
            f"{data.folder}: all {len(lengths):,} training sentences are longer than task.max_length={limit}; the shortest "
            f"has {int(lengths.min()) - 1} tokens: raise it, or set 0 to take all"
        )
    return [kept[chosen] for chosen in bucketed_batches(lengths[kept], settings.batch_size, order)]


def length_remarks(lengths: Numbers, limit: int) -> list[str]:
    """Return the remark on training sentences that ``max_length`` skips, or that need much memory without ``max_length``."""
    long = lengths[lengths > (limit or LONG) + 1]
    if not len(long):
        return []
    if limit:
        return [
            f"{len(long):,} of {len(lengths):,} training sentences have more than task.max_length={limit} tokens and are "
            f"left out, {percent(long.sum() / lengths.sum())} of the training text; break its lines at the ends of sentences, "
            "or set task.max_length=0 to train on all of them"
        ]
    return [
        f"{len(long):,} of {len(lengths):,} training sentences have more than {LONG} tokens, the longest "
        f"{int(long.max()) - 1:,}, and memory grows with the longest of a batch; task.max_length={LONG} leaves them out"
    ]


def limit_places(batches: Iterable[Numbers], lengths: Numbers, most: int) -> Iterator[Numbers]:
    """Divide batches until each has at most ``most`` positions (padding included), or one sentence."""
    for chosen in batches:
        while len(chosen):
            size = max(1, most // max(1, int(lengths[chosen[0]])))
            yield chosen[:size]
            chosen = chosen[size:]
