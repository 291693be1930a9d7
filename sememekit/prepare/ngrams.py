"""Exact counts of n-grams in bounded memory, and the most frequent n-grams.

Lengths are counted in rising order. The first n-1 words of a frequent n-gram are at least as frequent, so each position stores
the rank of its (n-1)-gram, and ``rank * V + next word`` is an integer key for any V and n. Blocks of keys are sorted and
counted in memory, and written as runs, which are then merged by ranges of keys. Only one block, one range, and the best n-grams
so far are in memory; the rest is on disk."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sememekit.data.examples import mapped

Keys = npt.NDArray[np.int64]

BLOCK: Final = 1 << 22  # words of a block, and keys of a range

LEAST: Final = 2  # lower bound of the counts


class _Text(NamedTuple):
    """The text (N,) of V words, words that no n-gram contains, words that only end n-grams, and the size of a block."""

    tokens: npt.NDArray[np.integer]
    num_words: int
    forbidden: npt.NDArray[np.bool_]
    closing: npt.NDArray[np.bool_]
    block: int

    def begins(self, length: int) -> range:
        """Return the start positions of blocks of n-grams."""
        return range(0, len(self.tokens) - length + 1, self.block)

    def keys(self, ranks: Keys, begin: int, length: int, barred: npt.NDArray[np.bool_]) -> Keys:
        """Return the keys of the n-grams that begin in a block; -1 without an n-gram, or if its last word is ``barred``."""
        end = min(begin + self.block, len(self.tokens) - length + 1)
        last = np.asarray(self.tokens[begin + length - 1 : end + length - 1], dtype=np.int64)
        before = np.asarray(ranks[begin:end])
        return np.where((before < 0) | barred[last], -1, before * self.num_words + last)


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
) -> tuple[list[tuple[int, ...]], list[int]]:
    """Return the ``most`` most frequent n-grams of 2 to L = ``longest`` words with their counts, by falling count; of equal
    counts shorter n-grams come first, then smaller ids from the left.

    ``tokens`` (N,) are word ids below V = ``num_words``, such as a memory-mapped file. N-grams contain no word of ``never``,
    and words of ``only_last`` only as the last word. Temporary files lie in ``folder``."""
    forbidden, closing = np.zeros(num_words, dtype=bool), np.zeros(num_words, dtype=bool)
    forbidden[list(never)] = True
    closing[list(only_last)] = True
    best: list[tuple[int, int, tuple[int, ...]]] = []  # (-count, n, ids): sorts as ids are given out
    if most < 1 or longest < 2 or len(tokens) < 2:
        return [], []
    text = _Text(tokens, num_words, forbidden, closing, block)
    with tempfile.TemporaryDirectory(dir=folder, prefix="ngrams-") as name:
        work = Path(name)
        ranks = _first_ranks(text, work / "ranks-1")
        levels: list[Keys] = []  # of each length the key of each rank; the rank of a single word is its id
        for length in range(2, longest + 1):
            runs = work / f"runs-{length}"
            runs.mkdir()
            for number, begin in enumerate(text.begins(length)):
                keys = text.keys(ranks, begin, length, forbidden)
                if len(keys := keys[keys >= 0]):
                    np.stack(np.unique(keys, return_counts=True)).astype(np.int64).tofile(runs / str(number))
            least = max(LEAST, -best[-1][0]) if len(best) == most else LEAST
            keys, counts = _add_up(runs, least, block, work / f"sums-{length}")
            shutil.rmtree(runs)
            levels.append(keys)
            best = sorted([*best, *_best(counts, levels, num_words, length, most, block)])[:most]
            if length < longest:
                ranks = _next_ranks(text, ranks, keys, length, work / f"ranks-{length}")
        del ranks, keys, counts, levels  # they map files of the folder
    return [ngram for _, _, ngram in best], [-count for count, _, _ in best]


def _first_ranks(text: _Text, path: Path) -> Keys:
    """Return (N,) the word at each position, or -1 for words outside of n-grams."""
    barred = text.forbidden | text.closing
    with path.open("wb") as file:
        for begin in text.begins(1):
            part = np.asarray(text.tokens[begin : begin + text.block], dtype=np.int64)
            file.write(np.where(barred[part], -1, part).data)
    return mapped(path, np.int64)


def _add_up(runs: Path, least: int, block: int, path: Path) -> tuple[Keys, Keys]:
    """Merge all runs into files of sorted keys and counts of at least ``least``."""
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
            keys_file.write(keys[kept].data)
            counts_file.write(counts[kept].data)
    return mapped(keys_path, np.int64), mapped(counts_path, np.int64)


def _bound(runs: Sequence[Keys], places: Sequence[int], block: int) -> int:
    """Return a key up to which each run has at most its share of a block; one run has exactly its share."""
    share, rest = max(1, block // max(1, len(runs))), zip(runs, places, strict=True)
    return min(int(run[0, min(place + share, run.shape[1]) - 1]) for run, place in rest if place < run.shape[1])


def _best(
    counts: Keys, levels: Sequence[Keys], num_words: int, length: int, most: int, block: int
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Return the ``most`` most frequent n-grams of one length; ties in the order of their ids."""
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


def _next_ranks(text: _Text, ranks: Keys, keys: Keys, length: int, path: Path) -> Keys:
    """Return (N - n + 1,) the rank of the n-gram at each position, -1 if it is rare or ends a sentence."""
    barred = text.forbidden | text.closing
    with path.open("wb") as file:
        for begin in text.begins(length):
            wanted = text.keys(ranks, begin, length, barred)
            index = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
            found = keys[index] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
            file.write(np.where(found, index, -1).data)
    return mapped(path, np.int64)
