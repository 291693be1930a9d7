"""The sememe graph of a vocabulary: words -> senses -> sememes, as immutable integer arrays.

Shapes: V words, S senses, K sememes, U distinct sememe sets, nnz entries in these sets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sememekit.errors import ConfigError, GraphError
from sememekit.files import GRAPH, write_output
from sememekit.sememes.graph_file import parse_graph, render_graph, render_structure
from sememekit.sememes.special_tokens import UNKNOWN
from sememekit.sememes.word_entry import LexiconSource, SenseEntry, Source, WordEntry

__all__ = ["LexiconSource", "SememeGraph", "SenseEntry", "Source", "WordEntry"]

Integers = NDArray[np.int64]


class HasTokens(Protocol):
    """The part of a vocabulary that a graph needs."""

    @property
    def tokens(self) -> tuple[str, ...]: ...

    @property
    def fingerprint(self) -> str: ...


class SememeGraph:
    """Senses and sememes of every word of a vocabulary (Sec. 3.1, Gu et al. 2018); ``build_graph`` makes one.

    >>> graph = build_graph(words, [open_lexicon("open")])
    >>> graph.num_words, [sense.sememes for sense in graph.entry(words.id("工人")).senses]
    (3, [('worker|工人',)])

    Every word has at least one sense, every sense at least one sememe, and the senses of a word differ in their sememes. A word
    that no lexicon or rule knows has the one sense {``<unk>``} and ``annotated`` False.

    Attributes:
        words: V words in the order of the vocabulary.
        vocabulary_fingerprint: of the vocabulary that the graph was built for.
        sememes: K names, sorted; only those that some sense of this vocabulary has.
        num_words, num_senses, num_sememes, num_sets: V, S, K and U.
        sense_offsets: (V+1,) int64; the senses of word w are rows ``sense_offsets[w]:sense_offsets[w+1]``.
        sense_set: (S,) int64; which distinct sememe set a sense has.
        set_offsets: (U+1,) int64; the sememes of set u are ``set_sememes[set_offsets[u]:set_offsets[u+1]]``.
        set_sememes: (nnz,) int64 ids of sememes, rising within a set. Sets are numbered as they first occur.
        word_of_sense: (S,) int64, rising.
        annotated, from_lexicon: (V,) bool; whether a lexicon or a rule knows the word, and whether a lexicon does.
        senses_per_sememe: (K,) int64, |D(e)|: senses of words of this vocabulary that have the sememe.
        sense_labels: S short texts for people: part of speech and gloss where known, else the sememes.
        word_sources: V texts: the lexicon that gave the senses, or one of ``Source``.
        lexicons: name and hash of each lexicon, in order.
        history: changes since the graph was built, a line for each. fingerprint: SHA-256 over all of the above.
        structure_fingerprint: SHA-256 over the places of sememes in their definitions; empty without any."""

    def __init__(
        self,
        entries: Iterable[WordEntry],
        vocabulary_fingerprint: str,
        lexicons: Sequence[LexiconSource] = (),
        history: Sequence[str] = (),
        numbering: SememeGraph | None = None,
    ) -> None:
        """Number the senses, sets and sememes of ``entries``, which has one entry for each word in the order of the vocabulary.

        A graph ``numbering``, which has all sememes of ``entries``, gives ``sememes`` and ``senses_per_sememe``. Raises
        GraphError: no word, a word twice, a word without sense, a sense without sememe, or two equal senses of a word."""
        self._entries = tuple(entries)
        _check_entries(self._entries)
        self.words: tuple[str, ...] = tuple(entry.word for entry in self._entries)
        self.vocabulary_fingerprint = vocabulary_fingerprint
        self.lexicons = tuple(lexicons)
        self.history = tuple(history)
        own = sorted({name for entry in self._entries for name in entry.sememes()})
        self.sememes: tuple[str, ...] = tuple(own) if numbering is None else numbering.sememes
        self.sense_labels: tuple[str, ...] = tuple(sense.label for entry in self._entries for sense in entry.senses)
        self.word_sources: tuple[str, ...] = tuple(entry.source for entry in self._entries)
        self._number(numbering)
        self.num_sets = len(self.set_offsets) - 1
        self.fingerprint: str = _sha256(self._render())
        self._numbering = numbering
        structure = render_structure(self._entries)
        self.structure_fingerprint: str = _sha256(structure) if structure else ""

    def _number(self, numbering: SememeGraph | None) -> None:
        senses_of_word = [len(entry.senses) for entry in self._entries]
        bags = [sense.sememes for entry in self._entries for sense in entry.senses]
        self.sense_set, self.set_offsets, self.set_sememes = map(_frozen, self._sets(bags))
        self.num_words, self.num_senses, self.num_sememes = len(self.words), len(self.sense_set), len(self.sememes)
        self.sense_offsets: Integers = _frozen(_offsets(senses_of_word))
        self.word_of_sense: Integers = _frozen(np.repeat(np.arange(len(self.words), dtype=np.int64), senses_of_word))
        own = np.bincount(self.edges()[1], minlength=len(self.sememes))
        self.senses_per_sememe: Integers = _frozen(own) if numbering is None else numbering.senses_per_sememe
        known = [[entry.is_annotated, entry.is_from_lexicon] for entry in self._entries]
        self.annotated, self.from_lexicon = map(_frozen, np.array(known, dtype=np.bool_).T.copy())

    def entries(self) -> Iterator[WordEntry]:
        return iter(self._entries)

    def entry(self, word_id: int) -> WordEntry:
        """Return one word with its senses by name; its sense i is row ``sense_offsets[word_id] + i``."""
        return self._entries[word_id]

    def pooled_sets(self) -> tuple[Integers, Integers, Integers]:
        """The sememes of each word with all its senses taken together, an unordered set (Sec. II-A, Qin et al. 2020).

        Only sememes from a lexicon count: unknown words, special tokens and punctuation have the empty set. Equal sets are
        merged.

        Returns (V,) number of each word's set; (P+1,) offsets; (nnz,) ids of sememes, rising within a set: the sememes of word
        w are ``members[offsets[set_of_word[w]]:offsets[set_of_word[w] + 1]]``."""
        return self._sets(entry.sememes() if entry.is_from_lexicon else () for entry in self._entries)

    def _sets(self, bags: Iterable[Iterable[str]]) -> tuple[Integers, Integers, Integers]:
        """Return the distinct set of each bag of sememes, by first occurrence, and offsets and rising members of the sets."""
        number = {name: place for place, name in enumerate(self.sememes)}
        sets: dict[tuple[int, ...], int] = {}
        set_of_bag = [sets.setdefault(tuple(sorted(number[name] for name in bag)), len(sets)) for bag in bags]
        members = [one for ids in sets for one in ids]
        return np.array(set_of_bag, dtype=np.int64), _offsets([len(ids) for ids in sets]), np.array(members, dtype=np.int64)

    def edges(self) -> tuple[Integers, Integers]:
        """The sense and the sememe of each edge, (edges,) int64: sense by sense, within a sense by the number of the sememe."""
        sizes = np.diff(self.set_offsets)[self.sense_set]
        sense = np.repeat(np.arange(self.num_senses), sizes)
        within = np.arange(len(sense)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return sense, self.set_sememes[self.set_offsets[self.sense_set[sense]] + within]

    @property
    def has_structure(self) -> bool:
        """True if the place in the definition is known for any sememe."""
        return bool(self.structure_fingerprint)

    def drop_edges(self, rate: float, seed: int) -> SememeGraph:
        """A graph without ``round(rate * edges)`` annotations, drawn uniformly without replacement.

        An edge is a pair of a sense and a sememe, of a word that a lexicon knows. Sememes given by a rule (special tokens,
        punctuation) and the one sense of unannotated words stay. A sense without sememes is removed; a word without senses
        counts as not annotated, with the one sense {``<unk>``}. Senses of a word that become equal are merged, so more edges
        can vanish than were drawn. Labels stay. Raises GraphError: a rate outside 0 to 1."""
        if not 0.0 <= rate <= 1.0:
            raise GraphError(f"drop_edges: the rate must lie between 0 and 1, given {rate}; 0.1 drops a tenth")
        edges = [
            (word, sense, sememe)
            for word, entry in enumerate(self._entries)
            if entry.is_from_lexicon
            for sense, kept in enumerate(entry.senses)
            for sememe in kept.sememes
        ]
        num_dropped = round(rate * len(edges))
        chosen = np.random.default_rng(seed).permutation(len(edges))[:num_dropped]
        dropped = {edges[index] for index in chosen.tolist()}
        result: list[WordEntry] = []
        lost_senses = merged_senses = lost_words = 0
        for word, entry in enumerate(self._entries):
            if not entry.is_from_lexicon:
                result.append(entry)
                continue
            remaining: dict[tuple[str, ...], SenseEntry] = {}
            for sense, old in enumerate(entry.senses):
                sememes = tuple(name for name in old.sememes if (word, sense, name) not in dropped)
                if not sememes:
                    lost_senses += 1
                elif sememes in remaining:
                    merged_senses += 1
                else:
                    remaining[sememes] = old.with_sememes(sememes, old.label)
            lost_words += not remaining
            source = entry.source if remaining else Source.NONE
            result.append(WordEntry(entry.word, source, tuple(remaining.values()) or (SenseEntry((UNKNOWN,), UNKNOWN),)))
        record = (
            f"drop_edges(rate={rate}, seed={seed}): {num_dropped} of {len(edges)} annotations removed; {lost_senses} senses "
            f"without any left, {merged_senses} merged with an equal one, {lost_words} words left without annotation"
        )
        return SememeGraph(result, self.vocabulary_fingerprint, self.lexicons, (*self.history, record))

    def with_senses(self, entries: Iterable[WordEntry], record: str) -> SememeGraph:
        """Return a graph with other sememes of this graph in some senses; sememes and senses keep their numbers.

        A model that was trained with this graph can read the new graph with its weights; |D(e)| stays, so other senses score as
        before. ``entries`` are the V words, each with its number of senses unchanged; ``record`` is a line of the history.
        Raises GraphError: as for a new graph."""
        first = self._numbering or self
        return SememeGraph(entries, self.vocabulary_fingerprint, self.lexicons, (*self.history, record), numbering=first)

    def check_vocabulary(self, vocabulary: HasTokens) -> None:
        """Check that ids of this graph and of the vocabulary mean the same words. Raises GraphError with both fingerprints and
        the command that builds the graph again."""
        if vocabulary.fingerprint == self.vocabulary_fingerprint and vocabulary.tokens == self.words:
            return
        raise GraphError(
            f"the sememe graph was built for the vocabulary {self.vocabulary_fingerprint} ({self.num_words} words), but the "
            f"data have the vocabulary {vocabulary.fingerprint} ({len(vocabulary.tokens)} words); build it again: "
            "sememekit build-sememe-graph --source FORMAT:PATH --data DIR --out FILE"
        )

    def save(self, path: Path | str) -> None:
        """Write one JSON file, a word a line, atomically; the same graph gives the same bytes. Raises ConfigError and OSError
        as ``write_output``."""
        structure = render_structure(self._entries)
        last = f',\n{structure}\n"structure_fingerprint": "{self.structure_fingerprint}"\n}}\n' if structure else "\n}\n"
        write_output(path, (self._render() + f'"fingerprint": "{self.fingerprint}"{last}').encode(), GRAPH)

    @classmethod
    def load(cls, path: Path | str, data: str = "") -> SememeGraph:
        """Read what ``save`` wrote; messages name the ``data`` of the graph. Raises GraphError: absent, torn, edited, newer
        than this program, or another kind of file."""
        path = Path(path)
        records, *stated = parse_graph(path, data)
        try:
            graph = cls(*records)
        except GraphError as error:
            raise GraphError(f"sememe graph {path}: {error}") from None
        for named, own in zip(stated, (graph.fingerprint, graph.structure_fingerprint), strict=True):
            if named != own:
                raise GraphError(
                    f"sememe graph {path}: its content has the fingerprint {own}, but it names {named!r}; it "
                    "was changed after it was written. Change the lexicon instead and run: sememekit build-sememe-graph"
                )
        return graph

    def _render(self) -> str:
        return render_graph(self._entries, self.vocabulary_fingerprint, self.lexicons, self.history)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SememeGraph):
            return False
        return (self.fingerprint, self.structure_fingerprint) == (other.fingerprint, other.structure_fingerprint)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        sizes = f"{self.num_words} words, {self.num_senses} senses, {self.num_sememes} sememes, {self.num_sets} sets"
        return f"SememeGraph({sizes})"


def graph_at(path: Path) -> SememeGraph:
    """Read the graph of a file or of a run folder. ConfigError: the folder has none. GraphError: as ``SememeGraph.load``."""
    file = path / "graph.json" if path.is_dir() else path
    if path.is_dir() and not file.exists():
        raise ConfigError(f"--graph {path}: this folder keeps no graph.json; give a run with a graph, or a graph file")
    return SememeGraph.load(file)


def _check_entries(entries: Sequence[WordEntry]) -> None:
    if not entries:
        raise GraphError("a sememe graph needs at least one word, and was given none")
    seen: set[str] = set()
    for entry in entries:
        if entry.word in seen:
            raise GraphError(f"word {entry.word!r} occurs twice")
        seen.add(entry.word)
        if not entry.senses:
            raise GraphError(f"word {entry.word!r} has no sense; a word without annotation has the one sense {{{UNKNOWN}}}")
        if not all(sense.sememes for sense in entry.senses):
            raise GraphError(f"word {entry.word!r} has a sense without a sememe")
        if len({sense.sememes for sense in entry.senses}) < len(entry.senses):
            raise GraphError(f"word {entry.word!r} has two senses with the same sememes; merge them")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _offsets(lengths: Sequence[int]) -> Integers:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.asarray(lengths, dtype=np.int64))])


def _frozen(array: NDArray) -> NDArray:
    array.setflags(write=False)
    return array
