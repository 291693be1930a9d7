"""Scores of rankings of sememes against the next words: the arithmetic of ``eval --explanations``, without a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from sememekit.analysis.word_groups import COUNT_BANDS, band_names
from sememekit.config import Record
from sememekit.measure.intervals import Interval, from_draws, resampled_ratios
from sememekit.sememes import SememeGraph
from sememekit.sememes.statistics import sememe_counts, word_sememes

RANDOM: Final = "random"
FREQUENCY: Final = "frequency"
Integers = NDArray[np.int64]
Reals = NDArray[np.float64]


class RankingScore(Record):
    """The fit of the first k sememes of a ranking to the next words."""

    ranking: str
    top: int
    """k, the number of first sememes."""
    any: Interval
    """Share of positions where a sememe of the gold word is among the k."""
    recall: Interval
    """Mean over positions of (gold sememes among the k) / min(k, number of gold sememes)."""
    information: Interval
    """Nats of the gold sememes among the k / nats of all gold sememes; -log(count / text) nats a sememe."""
    overlap: float | None = None
    """Share of the k sememes that are the same for two contexts half the text apart; None for one band of positions."""
    above_frequency: Interval | None = None
    """``information`` minus its value for the ranking by training frequency, paired."""
    any_above_frequency: Interval | None = None
    """``any`` minus its value for the ranking by training frequency, paired."""


class BandScores(Record):
    """The scores of positions with gold words in one band of training counts, such as "10 to 99"."""

    name: str
    positions: int
    scores: tuple[RankingScore, ...]


class SememeRecall(Record):
    """Recall of a ranking at k over the gold sememes of one band of training counts."""

    ranking: str
    top: int
    found: Interval


class SememeBand(Record):
    """A band of sememes by training count: number of pairs (position, gold sememe), and of the pairs that are found."""

    name: str
    pairs: int
    scores: tuple[SememeRecall, ...]


@final
@dataclass(frozen=True)
class Gold:
    """The gold sememes: the sememes of the next words."""

    keys: Integers  # sorted numbers word * K + sememe, one for each pair of a word and a sememe of any of its senses
    num_sememes: int  # K
    possible_K: NDArray[np.bool_]  # whether the sememe can be gold; only such sememes are ranked and drawn
    size_V: Integers  # sememes of each word
    count_K: Integers  # tokens that have each sememe, by the counts of the vocabulary
    nats_K: Reals  # -log(``count_K`` / all tokens), 0 at least
    nats_V: Reals  # sum of ``nats_K`` over the sememes of each word

    @classmethod
    def of(cls, graph: SememeGraph, counts: NDArray[np.integer]) -> Self:
        """Return the gold of a graph and the counts (V,) of its words. Words with sememes by rule, such as ``<unk>``, are never
        gold and are not counted. Sememes of such words alone are not ranked."""
        words, sememes = word_sememes(graph)
        count_K = sememe_counts(graph, np.where(graph.from_lexicon, counts, 0))
        nats_K = -np.log(np.maximum(count_K, 1) / max(counts.sum(), 1))
        return cls(
            keys=words * graph.num_sememes + sememes,
            num_sememes=graph.num_sememes,
            possible_K=np.bincount(sememes[graph.from_lexicon[words]], minlength=graph.num_sememes) > 0,
            size_V=np.bincount(words, minlength=graph.num_words),
            count_K=count_K,
            nats_K=np.maximum(nats_K, 0.0),
            nats_V=np.bincount(words, np.maximum(nats_K, 0.0)[sememes], minlength=graph.num_words).astype(np.float64),
        )


class Found(NamedTuple):
    """Hits among the first k sememes of a ranking at each of P positions: number (in all and by band) and nats."""

    number_P: Reals
    nats_P: Reals
    by_band_PB: Reals
    any_P: Reals


def found_in(gold: Gold, words: Integers, tops: NDArray[np.integer]) -> Found:
    """Count the hits among the first k sememes ``tops`` (P, k) at each position, with the gold ``words`` (P,)."""
    wanted = words[:, None] * gold.num_sememes + tops
    hits = gold.keys[np.minimum(np.searchsorted(gold.keys, wanted), len(gold.keys) - 1)] == wanted  # (P, k)
    band = np.digitize(gold.count_K, COUNT_BANDS)
    by_band = [(hits & (band[tops] == number)).sum(axis=1) for number in range(len(COUNT_BANDS) + 1)]
    number = hits.sum(axis=1).astype(np.float64)
    nats = np.where(hits, gold.nats_K[tops], 0.0).sum(axis=1)
    return Found(number, nats, np.stack(by_band, axis=1).astype(np.float64), (number > 0).astype(np.float64))


def expected_of_random(gold: Gold, words: Integers, top: int, sizes_PB: Reals) -> Found:
    """Compute the exact expected hits of k sememes drawn at random without replacement."""
    total, size = int(gold.possible_K.sum()), gold.size_V[words].astype(np.float64)
    top = min(top, total)
    none = np.ones(len(words))
    for drawn in range(top):
        none *= np.maximum(total - size - drawn, 0.0) / (total - drawn)
    share = top / total
    return Found(size * share, gold.nats_V[words] * share, sizes_PB * share, 1.0 - none)


def gold_by_band(gold: Gold, words: Integers) -> Reals:
    """(P, bands) number of gold sememes of the words (P,) in each band."""
    band = np.digitize(gold.count_K, COUNT_BANDS)
    owner, sememe = gold.keys // gold.num_sememes, gold.keys % gold.num_sememes
    table = np.zeros((len(gold.size_V), len(COUNT_BANDS) + 1))
    np.add.at(table, (owner, band[sememe]), 1.0)
    return np.asarray(table[words])


class Scores(Record):
    """The scores of rankings."""

    rankings: tuple[RankingScore, ...]
    """Scores over all positions, for each ranking and each k."""
    words: tuple[BandScores, ...]
    """Scores by the training count of the gold word."""
    sememes: tuple[SememeBand, ...]
    """Recall by the training count of the gold sememe."""


def score_rankings(
    gold: Gold,
    words: Integers,
    word_counts: NDArray[np.integer],
    units: Integers,
    ranked: Mapping[str, NDArray[np.integer]],
    tops: Sequence[int],
    seed: int = 0,
) -> Scores:
    """Score rankings against the gold ``words`` (P,), beside sememes drawn at random; ``word_counts`` are (V,). The
    bootstrap draws ``units`` (P,), the sentence of each position. ``ranked`` has the first sememes of each ranking (P, k),
    best first; k is the largest of ``tops``, at most K."""
    sizes_PB, sizes = gold_by_band(gold, words), gold.size_V[words].astype(np.float64)
    band_P = np.digitize(word_counts[words], COUNT_BANDS)
    of_band = [np.ones(len(words)), *((band_P == number).astype(np.float64) for number in range(len(COUNT_BANDS) + 1))]
    unit = np.unique(units, return_inverse=True)[1].reshape(-1)
    sums: dict[tuple[str, int, int, str], tuple[Reals, Reals]] = {}  # of each sentence, of which there are fewer

    def add(name: tuple[str, int, int, str], top_P: Reals, bottom_P: Reals) -> None:
        sums[name] = np.bincount(unit, top_P).astype(np.float64), np.bincount(unit, bottom_P).astype(np.float64)

    names = [(name, top) for name in (*ranked, RANDOM) for top in tops]
    for name, top in names:
        random = name == RANDOM
        found = expected_of_random(gold, words, top, sizes_PB) if random else found_in(gold, words, ranked[name][:, :top])
        recall = found.number_P / np.minimum(top, sizes)
        for number, here in enumerate(of_band):
            add((name, top, number, "any"), found.any_P * here, here)
            add((name, top, number, "recall"), recall * here, here)
            add((name, top, number, "information"), found.nats_P * here, gold.nats_V[words] * here)
        for number in range(len(COUNT_BANDS) + 1):
            add((name, top, number, "sememes"), found.by_band_PB[:, number], sizes_PB[:, number])
    values, draws = resampled_ratios(*(np.stack(side, axis=1) for side in zip(*sums.values(), strict=True)), seed=seed)
    column = {name: place for place, name in enumerate(sums)}

    def rate(*name: Any) -> Interval:
        return from_draws(float(values[column[name]]), draws[:, column[name]])

    def score(name: str, top: int, number: int) -> RankingScore:
        rates = {measure: rate(name, top, number, measure) for measure in ("any", "recall", "information")}
        above = {}
        for key, measure in (("above_frequency", "information"), ("any_above_frequency", "any")):
            if name != FREQUENCY and FREQUENCY in ranked:
                one, other = (column[which, top, number, measure] for which in (name, FREQUENCY))
                above[key] = from_draws(float(values[one] - values[other]), draws[:, one] - draws[:, other])
        possible = int(gold.possible_K.sum())
        by_chance = min(top, possible) / possible
        common = by_chance if name == RANDOM else _overlap(ranked[name][:, :top])
        overlap = None if number else common
        return RankingScore(ranking=name, top=top, **rates, overlap=overlap, **above)

    of_words, of_sememes = [], []
    for number, band in enumerate(band_names()):
        scores = tuple(score(*one, number + 1) for one in names)
        of_words.append(BandScores(name=band, positions=int(of_band[number + 1].sum()), scores=scores))
        recalls = tuple(SememeRecall(ranking=name, top=top, found=rate(name, top, number, "sememes")) for name, top in names)
        of_sememes.append(SememeBand(name=band, pairs=int(sizes_PB[:, number].sum()), scores=recalls))
    return Scores(rankings=tuple(score(*one, 0) for one in names), words=tuple(of_words), sememes=tuple(of_sememes))


def _overlap(tops: NDArray[np.integer]) -> float | None:
    """Return the mean share of the sememes ``tops`` (P, k) that positions P / 2 apart have in common."""
    half = len(tops) // 2
    if not half:
        return None
    first, second = tops[:half], tops[half : 2 * half]
    common = [(first == second[:, [place]]).any(axis=1) for place in range(second.shape[1])]
    return float(np.stack(common).mean())
