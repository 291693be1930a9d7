"""Batches of a running text (columns, and segments of columns) and of examples (of similar length, in a random order)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sememekit.errors import DataError

Ids = npt.NDArray[np.integer]


def training_columns(tokens: Ids, batch_size: int) -> Ids:
    """Cut a stream (n,) into B equal columns of contiguous text, (n // B, B); the remainder, at most B - 1 tokens, is dropped.

    Returns a view whose row t has word t of every column. Raises DataError: columns of fewer than two words."""
    rows = len(tokens) // batch_size
    if rows < 2:
        raise DataError(
            f"{len(tokens):,} tokens make no batch of {batch_size} columns with two words each; "
            f"use more text or a smaller batch (--set task.batch_size={max(1, len(tokens) // 2)})"
        )
    return tokens[: rows * batch_size].reshape(batch_size, rows).T


def sentence_bounds(tokens: Ids, end: int, block: int = 1 << 24) -> npt.NDArray[np.int64]:
    """Return the bounds (n + 1,) of the n complete sentences in ``tokens`` (N,), rising from 0.

    Every sentence ends with the id ``end``; ``block`` tokens are processed at once."""
    found = [np.flatnonzero(tokens[begin : begin + block] == end) + begin + 1 for begin in range(0, len(tokens), block)]
    return np.concatenate([np.zeros(1, dtype=np.int64), *found]).astype(np.int64)


def random_segments(
    rows: int,
    length: int,
    source: np.random.Generator,
    *,
    halving: float = 0.05,
    spread: float = 5.0,
    shortest: int = 5,
    excess: int | None = None,
) -> list[int]:
    """Return bounds of segments of random length, so that segment edges vary (Merity et al. 2018, Sec. 4.1).

    Each length is max(``shortest``, int(Normal(base, ``spread``))), at most ``length + excess`` (None: no bound). The base is
    ``length`` or, with probability ``halving``, half of ``length``. The last segment is the rest. Two random numbers are drawn
    for each segment. The bounds rise from 0 to ``rows``, the number of words to predict in each column: segment i predicts the
    rows bounds[i] to bounds[i + 1] - 1."""
    bounds = [0]
    while bounds[-1] < rows:
        base = length / 2 if source.random() < halving else length
        drawn = max(shortest, int(source.normal(base, spread)))
        drawn = drawn if excess is None else min(drawn, length + excess)
        bounds.append(min(bounds[-1] + drawn, rows))
    return bounds


def evaluation_columns(
    tokens: Ids, batch_size: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Cut a stream (n,), n >= 2, so that every token but the first is predicted exactly once for any batch size.

    Column b begins with the last word of column b - 1 as its first input; the tail of the last columns is masked. There are at
    most as many columns as predicted tokens. Returns inputs, targets (T, B) word ids and the mask (T, B) of targets that count;
    the mask sums to n - 1. Raises DataError: for fewer than two tokens."""
    predicted = len(tokens) - 1
    if predicted < 1:
        raise DataError(f"a text of {len(tokens)} tokens has nothing to predict; at least 2 are needed")
    batch_size = min(batch_size, predicted)
    rows = -(-predicted // batch_size)
    position = np.arange(rows)[:, None] + np.arange(batch_size)[None, :] * rows
    mask = position < predicted
    position = np.minimum(position, predicted - 1)
    return tokens[position].astype(np.int64), tokens[position + 1].astype(np.int64), mask


_POOL = 50  # batches of a pool that is sorted by length; larger pools mean less padding and less mixing


def bucketed_batches(lengths: npt.NDArray[np.int64], batch_size: int, order: int) -> list[npt.NDArray[np.int64]]:
    """Cut the examples of an epoch, with ``lengths`` (n,), into ceil(n / B) batches with little padding; ``order`` is the seed.

    Examples are shuffled, cut into pools of 50 batches, sorted by length inside each pool, cut into batches, and the batches
    are shuffled. All batches have B examples, except for the last batch of the last pool."""
    generator = np.random.default_rng(order)
    shuffled = generator.permutation(len(lengths))
    batches = []
    for first in range(0, len(shuffled), _POOL * batch_size):
        pool = shuffled[first : first + _POOL * batch_size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[begin : begin + batch_size] for begin in range(0, len(pool), batch_size)]
    return [batches[index] for index in generator.permutation(len(batches))]


def sorted_batches(lengths: npt.NDArray[np.int64], batch_size: int) -> list[npt.NDArray[np.int64]]:
    """Return batches of all examples, the longest first, so that memory errors appear at once."""
    order = np.argsort(-lengths, kind="stable")
    return [order[begin : begin + batch_size] for begin in range(0, len(order), batch_size)]


def padded(
    rows: Sequence[Ids], begin: Sequence[int] = (), end: Sequence[int] = ()
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Ids (T, B), each row between ``begin`` and ``end`` and then padded with 0, and the lengths (B,)."""
    before, around = len(begin), len(begin) + len(end)
    lengths = np.array([len(row) + around for row in rows], dtype=np.int64)
    ids = np.zeros((int(lengths.max()), len(rows)), dtype=np.int64)
    ids[:before] = np.array(begin, dtype=np.int64)[:, None]
    for column, row in enumerate(rows):
        ids[before : before + len(row), column] = row
        ids[before + len(row) : len(row) + around, column] = end
    return ids, lengths
