"""Sememes and words of a served run, suggestions for words without annotation, and saving of changes."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

import numpy as np

from sememekit.config import Record
from sememekit.errors import ConfigError, GraphError
from sememekit.files import write_folder
from sememekit.files.tables import tsv_text
from sememekit.sememes.graph import SememeGraph
from sememekit.sememes.lookup import GraphSense
from sememekit.sememes.overlay import ChangedSense, near
from sememekit.sememes.searching import DUMP_HEADER
from sememekit.sememes.statistics import sememe_counts
from sememekit.sememes.suggesting import Suggester, WordSuggestions
from sememekit.serve.questions import SaveQuestion, SememeQuestion, UnannotatedQuestion, WordQuestion
from sememekit.serve.runs import Bench, ServedRun

_MOST_WORDS, _MOST_NEIGHBOURS, _SUGGESTED = 60, 12, 5


class WordOfSememe(Record):
    """A word with a sense that has the sememe; ``count`` is its count in the vocabulary."""

    word: str
    """The word."""
    sense: int
    """Number of its sense with the sememe, from 1."""
    sememes: tuple[str, ...]
    """The sememes of that sense."""
    count: int
    """Count of the word in the vocabulary."""


class NeighbourSememe(Record):
    """A sememe that co-occurs with another in ``shared`` senses; ``similarity``: their share of all senses with either."""

    name: str
    """Name of the sememe."""
    shared: int
    """Number of senses with both sememes."""
    similarity: float
    """Share of these senses in all senses with either sememe."""


class SememeAnswer(Record):
    """A sememe."""

    sememe: str
    """Name of the sememe."""
    count: int
    """Number of tokens with the sememe, by the counts of the vocabulary."""
    num_words: int
    """Words that have it; ``words`` are the most frequent ones."""
    words: tuple[WordOfSememe, ...]
    """The most frequent of these words."""
    neighbours: tuple[NeighbourSememe, ...]
    """Co-occurring sememes, most similar first."""


class WordAnswer(Record):
    """The annotation of a word; ``source`` is its lexicon or rule, or "none"."""

    word: str
    """The word as the model reads it."""
    source: str
    """Its lexicon or rule, or ``none``."""
    annotated: bool
    """True if a lexicon or rule knows the word."""
    count: int
    """Its count in the vocabulary."""
    senses: tuple[GraphSense, ...]
    """Its senses in the order of the lexicon."""


class UnannotatedAnswer(Record):
    """Words without annotation, most frequent first, and their number."""

    total: int
    """Number of words without annotation."""
    words: tuple[WordSuggestions, ...]
    """The most frequent of them, with suggested sememes."""


class SaveAnswer(Record):
    """The folder that was written, and its files."""

    folder: str
    """The folder that was written."""
    files: tuple[str, ...]
    """Names of its files."""


def _graph(run: ServedRun) -> SememeGraph:
    if run.graph is None:
        raise ConfigError(f"{run} has no sememe graph; give a run that was trained with --graph")
    return run.graph


def sememe(bench: Bench, question: SememeQuestion) -> SememeAnswer:
    """The words and the neighbours of a sememe."""
    run = bench.changed(question.run, question.changes)
    graph, asked = _graph(run), question.sememe
    if asked not in graph.sememes:
        raise GraphError(f"no sememe {asked!r} in the graph of {run}{near(asked, graph.sememes)}")
    counts, number, found = run.vocabulary.counts, graph.sememes.index(asked), list[WordOfSememe]()
    beside, senses_with = Counter[str](), Counter[str]()
    for index, entry in enumerate(graph.entries()):
        for place, sense in enumerate(entry.senses, start=1):
            senses_with.update(sense.sememes)
            if asked in sense.sememes:
                beside.update(sense.sememes)
                found.append(WordOfSememe(word=entry.word, sense=place, sememes=sense.sememes, count=int(counts[index])))
    own = beside.pop(asked, 0)
    neighbours = [
        NeighbourSememe(name=name, shared=shared, similarity=shared / (own + senses_with[name] - shared))
        for name, shared in beside.items()
    ]
    return SememeAnswer(
        sememe=asked,
        count=int(sememe_counts(graph, counts)[number]),
        num_words=len({one.word for one in found}),
        words=tuple(sorted(found, key=lambda one: (-one.count, one.word))[:_MOST_WORDS]),
        neighbours=tuple(sorted(neighbours, key=lambda one: (-one.similarity, one.name))[:_MOST_NEIGHBOURS]),
    )


def word(bench: Bench, question: WordQuestion) -> WordAnswer:
    """The annotation of a word."""
    run = bench.changed(question.run, question.changes)
    graph, asked = _graph(run), run.form().word(question.word.strip())
    if asked not in run.vocabulary:
        raise GraphError(f"no word {asked!r} in the vocabulary of {run}{near(asked, graph.words)}; add it with: extend")
    number = run.vocabulary.id(asked)
    entry = graph.entry(number)
    senses = tuple(GraphSense(sense=at, label=one.label, sememes=one.sememes) for at, one in enumerate(entry.senses, start=1))
    count = int(run.vocabulary.counts[number])
    return WordAnswer(word=asked, source=entry.source, annotated=entry.is_annotated, count=count, senses=senses)


def unannotated(bench: Bench, question: UnannotatedQuestion) -> UnannotatedAnswer:
    """Return unannotated words with sememes suggested by their characters, from the annotation of the run."""
    run = bench.run(question.run)
    graph, counts = _graph(run), run.vocabulary.counts
    open_ids = np.flatnonzero(~graph.annotated)
    chosen = open_ids[np.argsort(-counts[open_ids], kind="stable")][: question.top]
    words = {graph.words[index]: int(counts[index]) for index in chosen.tolist()}
    suggester = Suggester({one.word: one.sememes() for one in graph.entries() if one.is_from_lexicon}, list(words))
    found = (suggester.suggestions(name, _SUGGESTED, count) for name, count in words.items())
    return UnannotatedAnswer(total=len(open_ids), words=tuple(found))


def save(bench: Bench, question: SaveQuestion) -> SaveAnswer:
    """Write changes into a new folder, atomically: an overlay for --overlay, the senses of the changed words for --source
    table:, and a table of differences."""
    run = bench.changed(question.run, question.changes)
    if not run.content:
        raise ConfigError("there is no change to save")
    contents = {
        "overlay.txt": run.content,
        "table.tsv": tsv_text(_table(_graph(run), {one.word for one in run.changed_senses})).encode(),
        "diff.tsv": tsv_text(_diff(run.changed_senses)).encode(),
    }
    with bench.saving() as below:
        folder = next(name for number in count(1) if not os.path.lexists(name := below / f"{run.name}-{number}"))
        write_folder(folder, contents, "manifest.json")
    return SaveAnswer(folder=str(folder), files=tuple(contents))


def _table(graph: SememeGraph, words: Iterable[str]) -> Iterator[Sequence[str]]:
    yield DUMP_HEADER.split("\t")
    for name in sorted(words):
        for sense in graph.entry(graph.words.index(name)).senses:
            yield name, "", sense.label, " ".join("_".join(one.split()) for one in sense.sememes), ""


def _diff(changed: Iterable[ChangedSense]) -> Iterator[Sequence[str]]:
    yield "word", "sense", "before", "after", "added", "removed"
    for one in changed:
        removed = [name for name in one.before if name not in one.after]
        yield one.word, str(one.sense), *map(" ".join, (one.before, one.after, one.added, removed))
