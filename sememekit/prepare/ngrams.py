"""Exact counts of n-grams in bounded memory, and the most frequent of them.

Length by length. An n-gram that is counted often begins with an (n-1)-gram that is counted as often, so each place of the text
carries the rank of the (n-1)-gram that begins there, and ``rank * V + next word`` is a key of one integer whatever V and n are.
Blocks of keys are sorted and counted in memory and go to the disk as runs; the runs are then added up one range of keys at a
time. Ranks, runs and sums are files; what is in memory is one block, one range, and the best so far.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.int64]

BLOCK: Final = 1 << 22
"""Words of a block, and keys of a range."""

LEAST: Final = 2
"""An n-gram that is met only once is never taken."""


class Counted(NamedTuple):
    """The n-grams of one length, as tuples of word ids, and their counts: by falling count, then by ids."""

    ngrams: list[tuple[int, ...]]
    counts: list[int]


def frequent_ngrams(
    tokens: npt.NDArray[np.integer],
    num_words: int,
    *,
    longest: int,
    most: int,
    never: Sequence[int] = (),
    only_last: Sequence[int] = (),
    folder: Path,
    block: int = BLOCK,
) -> Counted:
    """The most frequent n-grams of 2 to ``longest`` words.

    Args:
        tokens: (N,) word ids, such as a memory-mapped file.
        num_words: V.
        longest: L.
        most: how many to take; ties go to the shorter n-gram, then to the smaller ids from the left.
        never: word ids that no n-gram may hold.
        only_last: word ids that can only be the last of an n-gram.
        folder: where work files may lie while this runs.
        block: see :data:`BLOCK`.
    """
    forbidden, closing = np.zeros(num_words, dtype=bool), np.zeros(num_words, dtype=bool)
    forbidden[list(never)] = True
    closing[list(only_last)] = True
    best: list[tuple[int, int, tuple[int, ...]]] = []  # (-count, n, ids): sorts as ids are given out
    if most < 1 or longest < 2 or len(tokens) < 2:
        return Counted([], [])
    with tempfile.TemporaryDirectory(dir=folder, prefix="ngrams-") as name:
        work = Path(name)
        ranks = _first_ranks(tokens, forbidden | closing, work / "ranks-1", block)
        prefixes: Keys | None = None  # key of each rank at the length before; the rank of a single word is its id
        levels: list[Keys] = []
        for length in range(2, longest + 1):
            runs = work / f"runs-{length}"
            runs.mkdir()
            for number, begin in enumerate(range(0, len(tokens) - length + 1, block)):
                keys = _keys(tokens, ranks, begin, length, num_words, forbidden, block)
                _write_run(runs / str(number), keys[keys >= 0])
            least = max(LEAST, -best[-1][0]) if len(best) == most else LEAST
            prefixes, counts = _add_up(runs, least, block, work / f"sums-{length}")
            shutil.rmtree(runs)
            levels.append(prefixes)
            best = sorted([*best, *_best(counts, levels, num_words, length, most, block)])[:most]
            if length < longest:
                ranks = _next_ranks(tokens, ranks, prefixes, length, num_words, forbidden, closing, work, block)
        del ranks, prefixes, levels
    return Counted([ngram for _, _, ngram in best], [-count for count, _, _ in best])


def _first_ranks(tokens: npt.NDArray[np.integer], barred: npt.NDArray[np.bool_], path: Path, block: int) -> Keys:
    """(N,) the word at each place, or -1 where no n-gram can begin or go on."""
    with path.open("wb") as file:
        for begin in range(0, len(tokens), block):
            part = np.asarray(tokens[begin : begin + block], dtype=np.int64)
            np.where(barred[part], -1, part).tofile(file)
    return np.memmap(path, dtype=np.int64, mode="r")


def _keys(
    tokens: npt.NDArray[np.integer],
    ranks: Keys,
    begin: int,
    length: int,
    num_words: int,
    forbidden: npt.NDArray[np.bool_],
    block: int,
) -> Keys:
    """Keys of the n-grams that begin in a block, -1 where there is none."""
    end = min(begin + block, len(tokens) - length + 1)
    last = np.asarray(tokens[begin + length - 1 : end + length - 1], dtype=np.int64)
    before = np.asarray(ranks[begin:end])
    return np.where((before < 0) | forbidden[last], -1, before * num_words + last)


def _write_run(path: Path, keys: Keys) -> None:
    if len(keys):
        found, counts = np.unique(keys, return_counts=True)
        np.stack([found, counts.astype(np.int64)]).tofile(path)


def _add_up(runs: Path, least: int, block: int, path: Path) -> tuple[Keys, Keys]:
    """Sorted keys and counts over all runs, of those with ``least`` or more; as files."""
    files = sorted(runs.iterdir(), key=lambda each: int(each.name))
    opened: list[Keys] = [np.memmap(file, dtype=np.int64, mode="r").reshape(2, -1) for file in files]
    keys_path, counts_path = path.with_suffix(".keys"), path.with_suffix(".counts")
    with keys_path.open("wb") as keys_file, counts_path.open("wb") as counts_file:
        places = [0] * len(opened)
        while any(place < run.shape[1] for place, run in zip(places, opened, strict=True)):
            bound = _bound(opened, places, block)
            parts, weights = [], []
            for number, run in enumerate(opened):
                end = int(np.searchsorted(run[0], bound, side="right"))
                parts.append(np.asarray(run[0, places[number] : end]))
                weights.append(np.asarray(run[1, places[number] : end]))
                places[number] = end
            keys, inverse = np.unique(np.concatenate(parts), return_inverse=True)
            counts = np.zeros(len(keys), dtype=np.int64)
            np.add.at(counts, inverse, np.concatenate(weights))
            kept = counts >= least
            keys[kept].tofile(keys_file)
            counts[kept].tofile(counts_file)
    return _open(keys_path), _open(counts_path)


def _bound(runs: Sequence[Keys], places: Sequence[int], block: int) -> int:
    """A key such that every run has at most its share of a block up to it, and one run all of its share."""
    share = max(1, block // max(1, len(runs)))
    ends = [
        int(run[0, min(place + share, run.shape[1]) - 1])
        for run, place in zip(runs, places, strict=True)
        if place < run.shape[1]
    ]
    return min(ends)


def _open(path: Path) -> Keys:
    if path.stat().st_size == 0:
        return np.zeros(0, dtype=np.int64)
    return np.memmap(path, dtype=np.int64, mode="r")


def _best(
    counts: Keys, levels: Sequence[Keys], num_words: int, length: int, most: int, block: int
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """The ``most`` most frequent n-grams of one length; of equal ones the first, which is the order of their ids."""
    kept, kept_counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for begin in range(0, len(counts), block):
        part = np.asarray(counts[begin : begin + block])
        kept = np.concatenate([kept, np.arange(begin, begin + len(part))])
        kept_counts = np.concatenate([kept_counts, part])
        order = np.argsort(-kept_counts, kind="stable")[:most]
        kept, kept_counts = kept[order], kept_counts[order]
    for rank, count in zip(kept.tolist(), kept_counts.tolist(), strict=True):
        words: list[int] = []
        for keys in reversed(levels):
            rank, last = divmod(int(keys[rank]), num_words)
            words.insert(0, last)
        yield -count, length, (rank, *words)


def _next_ranks(
    tokens: npt.NDArray[np.integer],
    ranks: Keys,
    keys: Keys,
    length: int,
    num_words: int,
    forbidden: npt.NDArray[np.bool_],
    closing: npt.NDArray[np.bool_],
    work: Path,
    block: int,
) -> Keys:
    """(N - n + 1,) the rank of the n-gram that begins at each place, -1 where it is rare or ends a sentence."""
    path = work / f"ranks-{length}"
    with path.open("wb") as file:
        for begin in range(0, len(tokens) - length + 1, block):
            wanted = _keys(tokens, ranks, begin, length, num_words, forbidden | closing, block)
            index = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
            found = keys[index] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
            np.where(found, index, -1).tofile(file)
    return _open(path)
