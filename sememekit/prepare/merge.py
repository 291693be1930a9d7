"""One vocabulary from the sorted word lists of all shards, in bounded memory."""

import heapq
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, groupby, repeat
from operator import call, itemgetter
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from sememekit.corpora.base import Predicted
from sememekit.corpora.division import StratifiedDivision
from sememekit.corpora.units import ShardResult
from sememekit.engines.base import Engine
from sememekit.errors import ConfigError
from sememekit.text.vocabulary import UNKNOWN, Vocabulary

HELD_OUT_COUNTS: Final = (20, 200)  # least and largest count of a word that ``hold_out`` draws
_OPEN_AT_ONCE: Final = 128
_SENTENCES: Final = 1 << 16


def merge_vocabulary(
    engine: Engine,
    shards: Sequence[ShardResult],
    *,
    is_known: Callable[[str], bool] | None,
    min_count: int,
    max_vocabulary: int | None,
    specials: tuple[str, ...],
    folder: Path,
) -> tuple[Vocabulary, float | None]:
    """Sum all counts and choose the vocabulary; return it, and the share of tokens that the lexicon knows before ``<unk>``.

    A word is kept if it ``is_known`` (if given), occurs ``min_count`` times, and is among the ``max_vocabulary`` most frequent.
    All other counts go to ``<unk>``. Specials are always kept. Raises ConfigError for an impossible minimum count or size."""
    if min_count < 1:
        raise ConfigError(f"--min-count {min_count}: 1 or more is needed")
    if max_vocabulary is not None and max_vocabulary <= len(specials):
        raise ConfigError(
            f"--max-vocabulary {max_vocabulary}: must be above {len(specials)}, the number of special words "
            f"({', '.join(specials)})"
        )
    counts = dict.fromkeys(specials, 0)
    total = covered = 0

    def candidates() -> Iterator[tuple[str, int]]:
        nonlocal total, covered
        for word, count in _add_up(_word_counts(engine, shards, folder)):
            if word in specials and word != UNKNOWN:
                counts[word] += count
                continue
            known = is_known is None or is_known(word)
            total += count
            covered += count * known
            if word != UNKNOWN and count >= min_count and known:
                yield word, count

    if max_vocabulary is None:
        kept = list(candidates())
    else:
        kept = heapq.nsmallest(max_vocabulary - len(specials), candidates(), key=lambda each: (-each[1], each[0]))
    counts.update(kept)
    if UNKNOWN in counts:
        counts[UNKNOWN] = total - sum(count for _, count in kept)
    coverage = None if is_known is None or total == 0 else round(covered / total, 6)
    return Vocabulary.from_counts(counts), coverage


def _count_training(shard: ShardResult, division: StratifiedDivision, stem: Path) -> ShardResult:
    """Return a shard of which only ``.types`` may be read: the words of train of one undivided shard, with their counts."""
    found_counts = _counts(shard, lambda first, size: division.take(size) == 0)
    counts = found_counts.tolist()  # numbers of Python: looked up and written in half the time
    with stem.with_suffix(".types").open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{word}\t{counts[index]}\t{index}\n" for word, _, index in shard.types() if counts[index])
    return ShardResult(stem, int(found_counts.sum()), 0, {})


def of_training(
    engine: Engine, shards: Sequence[ShardResult], proportions: Sequence[int], seed: int, folder: Path
) -> list[ShardResult]:
    """Return the words of train from undivided shards, by the same split labels that the encoder will use.

    Only the words of the result may be read; they lie in ``folder``. Memory grows with the distinct words of one shard."""
    firsts = accumulate((shard.sentences for shard in shards), initial=0)
    tasks = [
        partial(_count_training, shard, StratifiedDivision(proportions, seed, first), folder / f"train-{number}")
        for number, (shard, first) in enumerate(zip(shards, firsts, strict=False))
    ]
    return list(engine.in_order(call, tasks))


def hold_out(vocabulary: Vocabulary, share: float, seed: int) -> tuple[Vocabulary, dict[str, int]]:
    """Draw a share of the words of 20 to 200 occurrences; return the vocabulary without them, and the words with their counts,
    which go to ``<unk>``. Raises ConfigError: no share, too few such words, or no ``<unk>``."""
    counts = dict(zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True))
    least, most = HELD_OUT_COUNTS
    known = [word for word, count in counts.items() if least <= count <= most and word[0] != "<"]
    fitting = sorted(word for word in known if any(map(str.isalpha, word)))
    number = round(share * len(fitting))
    if not 0.0 < share < 1.0 or number == 0 or UNKNOWN not in counts:
        has = f"the text has {len(fitting):,}" if UNKNOWN in counts else f"this data set has no {UNKNOWN}"
        raise ConfigError(
            f"--hold-out {share}: give a share, above 0 and below 1, of the words of {least} to {most} occurrences; {has}"
        )
    held = {word: counts.pop(word) for word in sorted(random.Random(seed).sample(fitting, number))}
    counts[UNKNOWN] += sum(held.values())
    return Vocabulary.from_counts(counts), held


def count_predicted(vocabulary: Vocabulary, shards: Sequence[ShardResult], predicted: Predicted) -> Vocabulary:
    """Recount the words as targets: how often each occurs in the texts that a model predicts, with one end word for each text.

    Sampling, grouping and sorting words by frequency need these counts. A word that occurs only in other texts has count 0."""
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


def _merge_some(shards: Sequence[ShardResult], path: Path) -> None:
    """Write the words of some shards as one list, in a process of an engine."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{word}\t{count}\n" for word, count in _add_up(heapq.merge(*map(_pairs, shards))))


def _word_counts(engine: Engine, shards: Sequence[ShardResult], folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the words of all shards in order, a word once for each list that has it; at most 128 files are open."""
    if len(shards) <= _OPEN_AT_ONCE and engine.num_workers == 1:
        return heapq.merge(*map(_pairs, shards))
    size = min(_OPEN_AT_ONCE, max(2, -(-len(shards) // engine.num_workers)))
    groups = [shards[first : first + size] for first in range(0, len(shards), size)]
    paths = [folder / f"merged-{number}.types" for number in range(len(groups))]
    list(engine.map(call, list(map(partial, repeat(_merge_some), groups, paths))))
    return heapq.merge(*map(_read_merged, paths))


def _pairs(shard: ShardResult) -> Iterator[tuple[str, int]]:
    return ((word, count) for word, count, _ in shard.types())


def _read_merged(path: Path) -> Iterator[tuple[str, int]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for word, count in (line[:-1].split("\t") for line in file):
            yield word, int(count)


def _add_up(pairs: Iterator[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    for word, group in groupby(pairs, key=itemgetter(0)):
        yield word, sum(count for _, count in group)
