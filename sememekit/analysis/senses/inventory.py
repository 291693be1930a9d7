"""Senses of words, with their substitute words and prior frequencies, from a lexicon and word counts."""

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sememekit.errors import ConfigError
from sememekit.runs.published import PublishedRun
from sememekit.runs.run import Run
from sememekit.sememes import SememeGraph
from sememekit.text.scripts import HAN

LEAST_OVERLAP: Final = 1 / 3  # least overlap of sememes (intersection over union) between a sense and a sense of its substitute
SMOOTHING: Final = 10.0  # pseudo-count of each sense in ``usual``, equal to the least count of a certain sememe in ``explain``

Reals = NDArray[np.float64]


class Substitutes(NamedTuple):
    """Words that can substitute for a sense, by falling weight, then by falling count."""

    words: NDArray[np.int64]  # (n,) ids
    weights: Reals  # (n,) squared overlap of the sememes, 0 to 1


@final
class SenseInventory:
    """The senses of the words of a vocabulary, with substitutes and prior probabilities.

    >>> inventory = SenseInventory(run.graph, run.train_counts)
    >>> inventory.substitutes(int(inventory.graph.sense_offsets[word]))
    >>> inventory.usual(word)

    ``lent`` (V,) is a mask of words that may be substitutes; None for all words of lexicons. ``counts`` (V,) are of the
    vocabulary; ``log_frequency`` (V,) is the log of a word's share in them, with one token for a word of count 0."""

    def __init__(self, graph: SememeGraph, counts: NDArray[np.integer], lent: NDArray[np.bool_] | None = None) -> None:
        self.graph, self.counts, self._lent = graph, np.asarray(counts, dtype=np.float64), lent
        self.log_frequency: Reals = np.log(np.maximum(self.counts, 1.0) / max(self.counts.sum(), 1.0))
        self._sets = [frozenset(part.tolist()) for part in np.split(graph.set_sememes, graph.set_offsets[1:-1])]
        self.substitutes, self.usual = cache(self._substitutes_of), cache(self._usual_of)

    @cached_property
    def _sets_of_sememe(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for number, sememes in enumerate(self._sets):
            for sememe in sememes:
                found.setdefault(sememe, []).append(number)
        return found

    @cached_property
    def _words_of_set(self) -> list[NDArray[np.int64]]:
        """Mask the words of lexicons; words with sememes by rule, such as ``<unk>``, cannot be substitutes."""
        lent = self.graph.from_lexicon & (True if self._lent is None else self._lent)
        senses = np.flatnonzero(lent[self.graph.word_of_sense])
        order = senses[np.argsort(self.graph.sense_set[senses], kind="stable")]
        bounds = np.cumsum(np.bincount(self.graph.sense_set[senses], minlength=self.graph.num_sets))
        return np.split(self.graph.word_of_sense[order], bounds[:-1])

    def senses(self, word: int) -> range:
        """The numbers of the senses of a word."""
        return range(int(self.graph.sense_offsets[word]), int(self.graph.sense_offsets[word + 1]))

    def names(self, word: int) -> list[frozenset[str]]:
        """The sememes of each sense of a word."""
        return [frozenset(sense.sememes) for sense in self.graph.entry(word).senses]

    def is_ambiguous(self, word: int) -> bool:
        """Return whether a lexicon gives the word several senses."""
        return len(self.senses(word)) > 1 and bool(self.graph.from_lexicon[word])

    def _substitutes_of(self, sense: int) -> Substitutes:
        """Return substitutes of a sense of sememes A: words with a sense B, |A ∩ B| / |A ∪ B| at least ``LEAST_OVERLAP``."""
        own, word = int(self.graph.sense_set[sense]), int(self.graph.word_of_sense[sense])
        best: dict[int, float] = {}
        sememes = self._sets[own]
        for other in {number for sememe in sememes for number in self._sets_of_sememe[sememe]}:
            overlap = len(sememes & self._sets[other]) / len(sememes | self._sets[other])
            if overlap >= LEAST_OVERLAP - 1e-9:
                for candidate in self._words_of_set[other].tolist():
                    best[candidate] = max(best.get(candidate, 0.0), overlap)
        best.pop(word, None)
        ranked = sorted(best, key=lambda candidate: (-best[candidate], -self.counts[candidate], candidate))
        return Substitutes(np.array(ranked, dtype=np.int64), np.array([best[one] ** 2 for one in ranked], dtype=np.float64))

    def _usual_of(self, word: int) -> Reals:
        """Return (n,) log p(sense | word) without any context, from the lexicon and the counts alone.

        p is proportional to ``SMOOTHING`` plus the sum of weight times count over the substitutes of the sense that share a
        Chinese character with the word. The reason: frequent senses occur in compounds, too (进 in 进入), which mostly have one
        sense. Words without Chinese characters have an even share for each sense."""
        own = set(HAN.findall(self.graph.words[word]))
        raw = np.full(len(self.senses(word)), SMOOTHING)
        for place, (words, weights) in enumerate(map(self.substitutes, self.senses(word))):
            shares = np.array([bool(own.intersection(self.graph.words[one])) for one in words.tolist()], dtype=np.bool_)
            raw[place] += (weights * self.counts[words])[shares].sum()
        return np.asarray(np.log(raw / raw.sum()))


def inventory_of(run: Run, sources: Sequence[str] = ()) -> SenseInventory:
    """Return the senses of a run from its graph, and from ``sources`` (``FORMAT:PATH``) for words without annotation there.

    Senses of the run keep their order. More annotated words give more substitutes. Without a graph all senses are from the
    sources. Raises ConfigError: the run has no graph, and no source is given. Raises DataError, GraphError: a bad source."""
    lent = run.in_text if isinstance(run, PublishedRun) else None
    if not sources:
        if run.graph is None:
            raise ConfigError(
                f"{run} keeps no sememe graph, so its words have no senses; name a lexicon: "
                "--source FORMAT:PATH or --source open"
            )
        return SenseInventory(run.graph, run.train_counts, lent)
    given = run.annotated(sources)
    if run.graph is not None:
        pairs = zip(run.graph.entries(), given.entries(), strict=True)
        entries = [own if own.is_annotated else more for own, more in pairs]
        given = SememeGraph(entries, run.graph.vocabulary_fingerprint, (*run.graph.lexicons, *given.lexicons))
    return SenseInventory(given, run.train_counts, lent)
