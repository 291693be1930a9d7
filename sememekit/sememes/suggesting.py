"""Ranked sememes for words without annotation, by their parts, neighbours and length, with a verbal explanation."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sememekit.config import Record
from sememekit.errors import ConfigError, DataError
from sememekit.files import OVERLAY, SUGGESTIONS, check_output, write_output
from sememekit.files.tables import tsv_text
from sememekit.sememes import Side, open_lexicons
from sememekit.sememes.graph import SememeGraph
from sememekit.sememes.overlay import Change, write_overlay
from sememekit.sememes.searching import senses_of
from sememekit.sememes.special_tokens import UNKNOWN
from sememekit.text.vectors import WordVectors

Scores = NDArray[np.float64]

KINDS: Final = {
    "first": (1.0, "at the beginning"),
    "middle": (0.7, "inside"),
    "last": (1.0, "at the end"),
    "any": (0.3, "anywhere"),
    "pair": (1.0, "in it"),
    "begins": (1.5, "at the beginning"),
    "ends": (2.5, "at the end"),
}
"""Kinds of parts, their places in the word, and their weights (chosen on held-out words of the list of Jin et al. 2018)."""
_SEEN: Final = 1.0
_NEIGHBOURS: Final = 100
_DECAY: Final = 0.8  # c of Eq. (1), Xie et al. 2017: factor of a neighbour's weight for each rank
NEIGHBOURS_WEIGHT: Final = 0.1
"""Weight of neighbours beside parts in the ensemble, chosen on the same words with vectors of a small run."""
KEPT: Final = 0.5  # a sememe is suggested if its score is at least this share of the best score
_EXAMPLES: Final = 3
_LONGEST: Final = 4  # words of so many characters or more are of one length


class Suggestion(Record):
    """A sememe for a word: its score as a share of the best score, and the evidence."""

    sememe: str
    """The suggested sememe."""
    score: float
    """Its score as a share of the best score."""
    evidence: tuple[str, ...]
    """The evidence for the sememe."""


class WordSuggestions(Record):
    """A word and its suggested sememes, best first; its count if a vocabulary has it, and its first context in a text."""

    word: str
    """The word."""
    count: int | None
    """Its count in the vocabulary; None without one."""
    context: str
    """Its first context in a text; empty without a text."""
    sememes: tuple[Suggestion, ...]
    """Suggested sememes, best first."""
    by_frequency: bool = False
    """True if nothing is known about the word but its length."""

    @property
    def kept(self) -> tuple[str, ...]:
        """The sememes that are written into files."""
        return tuple(one.sememe for one in self.sememes if one.score >= KEPT)


class SuggestReport(Record):
    """Suggestions for each word from the sum of ``methods``."""

    sources: tuple[str, ...]
    methods: tuple[str, ...]
    words: tuple[WordSuggestions, ...]

    @property
    def without(self) -> tuple[str, ...]:
        """The words without any suggestion."""
        return tuple(one.word for one in self.words if not one.sememes)

    @property
    def by_frequency(self) -> tuple[str, ...]:
        """The words of which nothing is known but their length."""
        return tuple(one.word for one in self.words if one.by_frequency)


@dataclass
class _Part:
    """The lexicon words that have a certain part: their number, some examples, and their sememes."""

    words: int = 0
    sememes: Counter[int] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)


class Suggester:
    """Score all sememes for some words on the evidence of all other lexicon words.

    >>> suggester = Suggester({"店员": {"人"}, "船员": {"人"}}, ["海员"])
    >>> suggester.names[suggester.by_parts("海员").argmax()]
    '人'

    - by characters (SPWCF, Jin et al. 2018): P(s | w) ~ sum over characters c of P(s | c at its place: first, middle, last);
    - by parts: the same with pairs, beginnings and ends of two and three characters, and words inside the word; a part of n
      words counts n / (n + 1);
    - by neighbours (SPWE, Xie et al. 2017): P(s | w) ~ sum over the nearest words w' of cos(w, w') 0.8^rank [s of w'];
    - by frequency: the share of the words of this length that have s. It breaks ties, and is the score of a word of which the
      others know nothing."""

    def __init__(
        self, sememes_of: Mapping[str, Iterable[str]], words: Sequence[str], vectors: WordVectors | None = None
    ) -> None:
        self.names = tuple(sorted({name for names in sememes_of.values() for name in names}))
        number, asked = {name: place for place, name in enumerate(self.names)}, set(words)
        self._sememes = {
            word: [number[name] for name in names] for word, names in sememes_of.items() if word not in asked and names
        }
        wanted = {part for word in words for part in _parts(word)}
        self._parts: defaultdict[tuple[str, str], _Part] = defaultdict(_Part)
        self._of_length: defaultdict[int, _Part] = defaultdict(_Part)
        for word, ids in self._sememes.items():
            self._of_length[_length(word)].words += 1
            self._of_length[_length(word)].sememes.update(ids)
            for part in set(_parts(word)) & wanted:
                found = self._parts[part]
                found.words += 1
                found.sememes.update(ids)
                if len(found.examples) < _EXAMPLES:
                    found.examples.append(word)
        self.vectors = vectors
        if vectors is not None:
            self._rows = np.array([vectors.row_of[word] for word in self._sememes if word in vectors.row_of], dtype=np.int64)
            lengths = np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
            self._unit = vectors.matrix / np.maximum(lengths, 1e-12)

    def by_characters(self, word: str) -> Scores:
        scores = np.zeros(len(self.names))
        for kind, part in _parts(word):
            if kind in ("first", "middle", "last") and (found := self._parts.get((kind, part))) is not None:
                _add(scores, found.sememes, 1.0 / found.sememes.total())
        return scores

    def by_parts(self, word: str) -> Scores:
        scores = np.zeros(len(self.names))
        for kind, part in _parts(word):
            if (found := self._parts.get((kind, part))) is not None:
                _add(scores, found.sememes, _weight(kind, part) / (found.words + _SEEN))
        for part, weight in self._inner_words(word):
            scores[self._sememes[part]] += weight
        return scores

    def by_neighbours(self, word: str) -> Scores:
        scores = np.zeros(len(self.names))
        for rank, (other, similarity) in enumerate(self.neighbours(word)):
            scores[self._sememes[other]] += similarity * _DECAY**rank
        return scores

    def by_frequency(self, word: str) -> Scores:
        scores, alike = np.zeros(len(self.names)), self._of_length[_length(word)]
        _add(scores, alike.sememes, 1.0 / max(alike.words, 1))
        return scores

    def neighbours(self, word: str) -> list[tuple[str, float]]:
        """The nearest words with sememes, by the cosine; none of a word without a vector."""
        if self.vectors is None or word not in self.vectors.row_of or not len(self._rows):
            return []
        cosines = self._unit[self._rows] @ self._unit[self.vectors.row_of[word]]
        best = np.argsort(-cosines, kind="stable")[:_NEIGHBOURS]
        return [(self.vectors.words[self._rows[place]], float(cosines[place])) for place in best if cosines[place] > 0.0]

    def suggestions(self, word: str, top: int, count: int | None = None, context: str = "") -> WordSuggestions:
        """The best suggestions of a word, ``top`` at most."""
        known = self.ensemble(word)
        scores = known if known.any() else self.by_frequency(word)
        places = [
            place for place in np.argsort(-self.ranking(word, known), kind="stable")[:top].tolist() if scores[place] > 0.0
        ]
        found = (
            Suggestion(
                sememe=self.names[place],
                score=float(scores[place] / scores[places[0]]),
                evidence=tuple(self.evidence(word, place)),
            )
            for place in places
        )
        by_frequency = bool(places) and not known.any()
        return WordSuggestions(word=word, count=count, context=context, sememes=tuple(found), by_frequency=by_frequency)

    def ensemble(self, word: str) -> Scores:
        """Return the weighted sum of parts and neighbours, each divided by its best score; zeros if both know nothing."""
        every = [(1.0, self.by_parts(word)), (NEIGHBOURS_WEIGHT, self.by_neighbours(word))]
        return sum((weight * one / one.max() for weight, one in every if one.max() > 0.0), np.zeros(len(self.names)))

    def ranking(self, word: str, scores: Scores) -> Scores:
        """Return numbers in the order of ``scores``, by frequency among equal ones."""
        return np.unique(scores, return_inverse=True)[1] + 0.5 * self.by_frequency(word)

    def evidence(self, word: str, sememe: int) -> Iterator[str]:
        """Return the evidence for a sememe in words, strongest first."""
        told: list[tuple[float, str]] = []
        for kind, part in dict.fromkeys(_parts(word)):
            found = self._parts.get((kind, part))
            if found is None or not found.sememes[sememe] or (kind == "any" and told):
                continue
            having = [other for other in found.examples if sememe in self._sememes[other]]
            like = f", as in {' '.join(having)}" if having else ""
            share = _weight(kind, part) * found.sememes[sememe] / (found.words + _SEEN)
            told.append((share, f"{part} {KINDS[kind][1]}: {found.sememes[sememe]:,} of {found.words:,} words{like}"))
        told += [(weight, f"{part} has it") for part, weight in self._inner_words(word) if sememe in self._sememes[part]]
        near = [f"{other} ({cosine:.2f})" for other, cosine in self.neighbours(word) if sememe in self._sememes[other]]
        told += [(1.0, f"near {' '.join(near[:_EXAMPLES])}")] if near else []
        if not told and (alike := self._of_length[_length(word)]).sememes[sememe]:
            size = "1 character" if len(word) == 1 else f"{len(word)} characters"
            size = size if len(word) < _LONGEST else f"{_LONGEST} or more characters"
            told = [(1.0, f"frequent among words of {size}: {alike.sememes[sememe]:,} of {alike.words:,}")]
        yield from (text for _, text in sorted(told, key=lambda one: -one[0])[:_EXAMPLES])

    def _inner_words(self, word: str) -> Iterator[tuple[str, float]]:
        """Return words of two characters or more inside the word with their weights; long and final ones count more."""
        for begin in range(len(word)):
            for end in range(begin + 2, len(word) + 1):
                if word[begin:end] in self._sememes:
                    yield word[begin:end], (end - begin) / len(word) * (2.0 if end == len(word) else 1.0)


def _add(scores: Scores, sememes: Counter[int], weight: float) -> None:
    scores[np.fromiter(sememes.keys(), dtype=np.int64, count=len(sememes))] += weight * np.fromiter(
        sememes.values(), dtype=np.float64, count=len(sememes)
    )


def _weight(kind: str, part: str) -> float:
    return KINDS[kind][0] * (1.2 if len(part) > 2 else 1.0)


def _length(word: str) -> int:
    return min(len(word), _LONGEST)


def _parts(word: str) -> Iterator[tuple[str, str]]:
    """Return characters with their places, and longer parts, each with its kind of ``KINDS``."""
    yield "first", word[0]
    yield "last", word[-1]
    yield from (("middle", character) for character in word[1:-1])
    yield from (("any", character) for character in word)
    yield from (("pair", word[begin : begin + 2]) for begin in range(len(word) - 1) if len(word) > 2)
    for size in (2, 3):
        if len(word) > size:
            yield "begins", word[:size]
            yield "ends", word[-size:]


def sememes_by_word(sources: Sequence[str], side: Side) -> dict[str, set[str]]:
    """Return every word with the sememes of all its senses, from the first lexicon that has any."""
    found: dict[str, set[str]] = {}
    for _, sense in senses_of(open_lexicons(sources, side)):
        if sense.word:
            found.setdefault(sense.word, set()).update(sense.sememes)
    return found


def suggest(
    words: Sequence[str],
    sources: Sequence[str] = ("open",),
    *,
    side: Side = "chinese",
    vectors: WordVectors | None = None,
    counts: Mapping[str, int] | None = None,
    contexts: Mapping[str, str] | None = None,
    top: int = 5,
) -> SuggestReport:
    """Suggest sememes for words; lexicon entries of these words are ignored.

    Word ``vectors`` add the evidence of neighbours. ``counts`` and ``contexts`` have occurrences and an example of each word. A
    word has ``top`` sememes at most. Raises ConfigError: no word. Raises ConfigError, DataError: as ``open_lexicon``."""
    asked = list(dict.fromkeys(word.strip() for word in words if word.strip()))
    if not asked:
        raise ConfigError("give words to suggest sememes for: sememekit lookup --suggest WORD...")
    suggester = Suggester(sememes_by_word(sources, side), asked, vectors)
    found = tuple(
        suggester.suggestions(word, top, None if counts is None else counts.get(word, 0), (contexts or {}).get(word, ""))
        for word in asked
    )
    used = {"parts": True, "neighbours": vectors is not None, "frequency": any(one.by_frequency for one in found)}
    return SuggestReport(sources=tuple(sources), methods=tuple(name for name, is_used in used.items() if is_used), words=found)


def write_suggestions(path: Path, report: SuggestReport) -> None:
    """Write the suggested sememes as a table. Accept a row by leaving it, refuse it by deleting it.

    ``table:FILE`` and ``extend --words FILE`` read it. Raises ConfigError and OSError as ``write_output``."""
    rows = [("word", "count", "sememes", "evidence", "context")]
    for one in report.words:
        names = " ".join("_".join(name.split()) for name in one.kept)
        evidence = "; ".join(one.sememes[0].evidence) if one.sememes else ""
        rows.append((one.word, "" if one.count is None else str(one.count), names, evidence, one.context))
    write_output(path, tsv_text(rows).encode(), SUGGESTIONS)


def write_changes(path: Path, report: SuggestReport, graph: SememeGraph) -> int:
    """Write the suggestions as an overlay for the unannotated words of a graph; return the number of changed words.

    Suggestions by frequency alone are left out. Raises DataError: no word is left, none is an unannotated word of the graph, or
    the graph knows none of their sememes."""
    check_output(path, OVERLAY)
    open_words = {entry.word for entry in graph.entries() if not entry.is_annotated}
    known, changes = set(graph.sememes), []
    for one in report.words:
        names = tuple(name for name in one.kept if name in known)
        if one.word in open_words and names and not one.by_frequency:
            changes.append(Change(one.word, names, (), UNKNOWN, str(path)))
    if not changes:
        raise DataError(
            f"--overlay {path}: no unannotated word of the graph has a suggested sememe that the graph knows, other than by "
            "frequency; words outside of its vocabulary are added by: sememekit extend RUN --words FILE"
        )
    write_overlay(path, changes)
    return len(changes)
