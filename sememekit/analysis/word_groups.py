"""Kinds of words: by senses, sememes (Tables 2 and 3, Gu et al. 2018) or count."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sememekit.analysis.groupings import Grouping
from sememekit.config import nearest
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError, GraphError
from sememekit.files import read_text
from sememekit.files.tables import split_lines
from sememekit.runs.run import Run
from sememekit.sememes import SememeGraph
from sememekit.sememes.overlay import ChangedSense
from sememekit.tasks.scoring import Scoring

SEMEME_BINS: Final = ((1, 2), (2, 4), (4, 7), (7, 14))  # [from, to) of Table 3, Gu et al. 2018, in sememes a sense

COUNT_BANDS: Final = (1, 10, 100, 1000, 10000)  # bounds of the bands of counts in the training text

Mask = npt.NDArray[np.bool_]

LABELS_NEED_A_FILE: Final = (
    "--by labels: the data have no labels of sentences, as preprocess --column keeps them of labelled texts; add --labels "
    "FILE, with a label for each sentence of the split, one a line"
)


class WordKind(NamedTuple):
    """Words of one kind."""

    grouping: str  # the grouping of the kind, such as "senses"
    name: str  # of the kind, such as "one sense"
    words: Mask  # (V,) mask of the words of this kind
    of_which: bool = False  # whether these words are also in other kinds of the grouping
    units: Mask | None = None  # (U,) mask of the units of the text, for a property of sentences


def band_names() -> tuple[str, ...]:
    """Name the bands of counts, from the rarest: "never", "1 to 9", "10 to 99", ..., "10,000 or more"."""
    middle = [f"{low:,} to {high - 1:,}" for low, high in pairwise(COUNT_BANDS)]
    return ("never", *middle, f"{COUNT_BANDS[-1]:,} or more")


def changed_kinds(changes: Sequence[ChangedSense], words: Sequence[str]) -> list[WordKind]:
    """Return a kind for each word that an overlay changes, for all of them if there are several, and for all others."""
    names = list(dict.fromkeys(change.word for change in changes))
    array = np.array(words, dtype=object)
    every = np.isin(array, names)
    kinds = [WordKind("change", name, array == name) for name in names]
    if len(names) > 1:
        kinds.append(WordKind("change", f"the {len(names)} changed words", every, True))
    return [*kinds, WordKind("change", "all other words", ~every)]


def reads_graph(by: str) -> bool:
    """Return whether a sememe graph is needed to sort words like this."""
    return by not in (Grouping.frequency, Grouping.labels)


def read_labels(path: Path | None, by: Sequence[str], data: PreparedData, split: str, scoring: Scoring) -> tuple[str, ...]:
    """Return the label of each unit of a split: of each line of a file, or as the data have them.

    Raises ConfigError: ``labels`` without labels in a file or the data, or a file alone. DataError: too few or many labels."""
    if Grouping.labels not in by:
        if path is not None:
            raise ConfigError(f"--labels {path}: labels make groups of sentences; add --by labels")
        return ()
    labels, place = data.sentence_labels(split), f"{data.folder}: --by labels"
    if path is not None:
        lines = split_lines(read_text(path, lambda why: DataError(f"--labels {why}")))
        labels, place = tuple(map(str.strip, lines)), f"--labels {path}"
    elif not labels:
        raise ConfigError(LABELS_NEED_A_FILE)
    if len(labels) != scoring.num_units:
        number, unit = f"{scoring.num_units:,}", scoring.unit
        raise DataError(f"{place}: {len(labels):,} labels, but the split has {number} {unit}; write a label a line")
    if "" in labels:
        raise DataError(f"{place}:{labels.index('') + 1}: the line is empty; write a label for each sentence")
    return labels


def kinds_of(by: Sequence[str], runs: Sequence[Run], graph: SememeGraph | None, labels: Sequence[str] = ()) -> list[WordKind]:
    """Return the kinds of words of each grouping, the same for all runs. Raises ConfigError: an unknown grouping, or one by
    different training counts. Raises GraphError: a graph is missing."""
    counts = runs[0].train_counts if by else np.zeros(0, dtype=np.int64)
    for one in by:
        if one not in (known := [grouping.value for grouping in Grouping]):
            raise ConfigError(f"--by {one!r}{nearest(one, known)}: allowed are {', '.join(known)}")
        if graph is None and reads_graph(one):
            raise GraphError(f"--by {one} needs a sememe graph, and {runs[0]} has none; give one with --graph FILE")
        for other in runs[1:] if one in (Grouping.frequency, Grouping.sememes_at_frequency) else ():
            if not np.array_equal(counts, other.train_counts):
                raise ConfigError(
                    f"--by {one}: {runs[0]} and {other} were trained on texts with other counts of words, so that their bands "
                    "are not the same words; measure each alone"
                )
    everywhere = np.ones(len(counts), dtype=np.bool_)
    of_sentences = [WordKind("labels", name, everywhere, False, np.array(labels) == name) for name in dict.fromkeys(labels)]
    return [kind for one in by for kind in (of_sentences if one == Grouping.labels else word_kinds(one, counts, graph))]


def word_kinds(by: str, trained: npt.NDArray[np.int64], graph: SememeGraph | None) -> Iterator[WordKind]:
    """The kinds of words of a grouping; ``frequency`` and ``sememes-at-frequency`` leave out empty kinds.

    By ``senses`` and ``sememes``: annotated words by bin (Tables 2 and 3), words without annotation, and the words of the bins
    that have sememes by rule. docs/perplexity.md has the others.

    ``trained`` (V,) are counts of the words in the training text. ``graph`` may be None where ``reads_graph`` says so."""
    band = np.digitize(trained, COUNT_BANDS)
    bands = [(name, band == number) for number, name in enumerate(band_names()) if (band == number).any()]
    if graph is None or not reads_graph(by):
        yield from (WordKind(by, name, words) for name, words in bands)
    elif by == Grouping.sememes_at_frequency:
        kinds = [kind for kind in _annotated(graph, Grouping.sememes) if not kind.of_which]
        for name, like in bands:
            for kind in kinds:
                if (kind.words & like).any():
                    yield WordKind(by, f"{name}: {kind.name}", kind.words & like)
    else:
        yield from _annotated(graph, by)


def _annotated(graph: SememeGraph, by: str) -> Iterator[WordKind]:
    annotated, num_senses = graph.annotated, np.diff(graph.sense_offsets)
    if by == Grouping.senses:
        yield WordKind(by, "one sense", annotated & (num_senses == 1))
        yield WordKind(by, "several senses", annotated & (num_senses > 1))
    else:
        sizes = np.diff(graph.set_offsets)[graph.sense_set]
        mean_sememes = np.add.reduceat(sizes, graph.sense_offsets[:-1]) / num_senses
        for low, high in SEMEME_BINS:
            yield WordKind(by, f"[{low}, {high}) sememes", annotated & (mean_sememes >= low) & (mean_sememes < high))
        beyond = annotated & (mean_sememes >= SEMEME_BINS[-1][1])
        if beyond.any():
            yield WordKind(by, f"{SEMEME_BINS[-1][1]} sememes or more", beyond)
    yield WordKind(by, "no annotation", ~annotated)
    by_rule = annotated & ~graph.from_lexicon
    yield WordKind(by, "special tokens and punctuation by rule (counted above)", by_rule, True)
