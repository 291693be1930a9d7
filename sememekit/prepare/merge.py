"""One vocabulary from the sorted word lists of all shards, in bounded memory."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sememekit.corpora.base import Predicted
from sememekit.corpora.division import StratifiedDivision
from sememekit.corpora.units import ShardResult
from sememekit.errors import ConfigError
from sememekit.text.vocabulary import UNKNOWN, Vocabulary

_OPEN_AT_ONCE: Final = 128
_SENTENCES: Final = 1 << 16


class Merged(NamedTuple):
    """The vocabulary, and the share of running words that the lexicon knows before ``<unk>`` replacement."""

    vocabulary: Vocabulary
    coverage: float | None


def merge_vocabulary(
    shards: Sequence[ShardResult],
    *,
    known: frozenset[str] | None,
    stands_alone: Callable[[str], bool],
    min_count: int,
    max_vocabulary: int | None,
    specials: tuple[str, ...],
    folder: Path,
) -> Merged:
    """Add up the counts of all shards and choose the words to keep.

    A word is kept when the lexicon knows it (or there is none, or it stands alone), it occurs ``min_count`` times, and it is
    among the ``max_vocabulary`` most frequent. The count of every other word goes to ``<unk>``. Specials are always kept.
    Raises ConfigError for an impossible minimum count or size.
    """
    if min_count < 1:
        raise ConfigError(f"--min-count {min_count}: 1 or more is needed")
    if max_vocabulary is not None and max_vocabulary <= len(specials):
        raise ConfigError(
            f"--max-vocabulary {max_vocabulary}: more than the {len(specials)} of {', '.join(specials)} is needed"
        )
    counts = dict.fromkeys(specials, 0)
    room = None if max_vocabulary is None else max_vocabulary - len(specials)
    kept: list[tuple[int, _Reversed]] = []  # the smallest first: the rarest word, the later in spelling among equals
    total = covered = 0
    for word, count in _add_up(_word_counts(shards, folder)):
        total += count
        covered += count if known is not None and (word in known or stands_alone(word)) else 0
        if word in counts:
            counts[word] += count
            continue
        allowed = count >= min_count and (known is None or word in known or stands_alone(word))
        if not allowed:
            counts[UNKNOWN] += count
        elif room is None or len(kept) < room:
            heapq.heappush(kept, (count, _Reversed(word)))
        else:
            dropped, _ = heapq.heappushpop(kept, (count, _Reversed(word)))
            counts[UNKNOWN] += dropped
    counts.update((word.text, count) for count, word in kept)
    coverage = None if known is None or total == 0 else round(covered / total, 6)
    return Merged(Vocabulary.from_counts(counts), coverage)


def of_training(shards: Sequence[ShardResult], division: StratifiedDivision, folder: Path) -> list[ShardResult]:
    """Shards of a text that is divided in its order, with the counts of the sentences of train only.

    ``division`` gives the labels that the encoder will give, from the first sentence on. Only the words of the result may be
    read; they lie in ``folder``. Memory grows with the distinct words of one shard.
    """
    found = []
    for number, shard in enumerate(shards):
        found_counts = _counts(shard, lambda first, size: division.take(size) == 0)
        counted = ShardResult(folder / f"train-{number}", int(found_counts.sum()), 0, {})
        counts = found_counts.tolist()  # numbers of Python: looked up and written in half the time
        with counted.stem.with_suffix(".types").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\t{counts[index]}\t{index}\n" for word, _, index in shard.types() if counts[index])
        found.append(counted)
    return found


def count_predicted(vocabulary: Vocabulary, shards: Sequence[ShardResult], predicted: Predicted) -> Vocabulary:
    """The same words by how often a model has to predict each: those of the predicted texts, and one end for each of them.

    Whatever draws, groups or orders words by frequency needs these counts. A word of other texts only has the count 0.
    """
    counts = np.zeros(len(vocabulary), dtype=np.int64)
    ends = 0
    for shard in shards:
        own = _counts(shard, lambda first, size: np.arange(first, first + size) % predicted.texts == predicted.text)
        for word, _, index in shard.types():
            counts[vocabulary.id(word)] += own[index]
        ends += shard.sentences // predicted.texts
    counts[vocabulary.id(predicted.end)] += ends
    return Vocabulary.from_counts(dict(zip(vocabulary.tokens, counts.tolist(), strict=True)))


def _counts(shard: ShardResult, chosen: Callable[[int, int], npt.NDArray[np.bool_]]) -> npt.NDArray[np.int64]:
    """(types,) counts of provisional ids in the sentences that ``chosen(first, number)`` selects."""
    units, ids, position = shard.units(), shard.ids(), 0
    counts = np.zeros(shard.num_types(), dtype=np.int64)
    for first in range(0, len(units), _SENTENCES):
        lengths = np.asarray(units[first : first + _SENTENCES, 0])
        words = int(lengths.sum(dtype=np.int64))
        mask = np.repeat(chosen(first, len(lengths)), lengths)
        counts += np.bincount(ids[position : position + words][mask], minlength=len(counts))
        position += words
    return counts


class _Reversed(NamedTuple):
    """A word that sorts in reverse."""

    text: str

    def __lt__(self, other: tuple[object, ...]) -> bool:
        return self.text > str(other[0])


def _word_counts(shards: Sequence[ShardResult], folder: Path) -> Iterator[tuple[str, int]]:
    """Words of all shards in order, once for each shard that has it; at most 128 files are open at a time."""
    streams: list[Iterator[tuple[str, int]]] = []
    for first in range(0, len(shards), _OPEN_AT_ONCE):
        group = [((word, count) for word, count, _ in shard.types()) for shard in shards[first : first + _OPEN_AT_ONCE]]
        if len(shards) <= _OPEN_AT_ONCE:
            streams = list(group)
        else:
            path = folder / f"merged-{first}.types"
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{word}\t{count}\n" for word, count in _add_up(heapq.merge(*group)))
            streams.append(_read_merged(path))
    return heapq.merge(*streams)


def _read_merged(path: Path) -> Iterator[tuple[str, int]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for word, count in (line[:-1].split("\t") for line in file):
            yield word, int(count)


def _add_up(pairs: Iterator[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    for word, group in groupby(pairs, key=itemgetter(0)):
        yield word, sum(count for _, count in group)
