"""The annotation of a word in a graph, and one change of it, checked and added to an overlay file (``lookup --change``)."""

from collections.abc import Sequence
from pathlib import Path

from sememekit.config import Record
from sememekit.errors import ConfigError, GraphError
from sememekit.files import OVERLAY, check_output
from sememekit.sememes import Side, build_graph, open_lexicons
from sememekit.sememes.graph import graph_at
from sememekit.sememes.overlay import ChangedSense, apply_changes, near, parse_change, read_overlay, write_overlay
from sememekit.sememes.statistics import counts_of_added
from sememekit.text.vocabulary import Vocabulary


class GraphSense(Record):
    """One sense in a graph."""

    sense: int
    """Its number among the senses of the word, from 1: WORD#NUMBER in an overlay."""
    label: str
    """Parts of speech and glosses of the lexicon, or its sememes."""
    sememes: tuple[str, ...]


class AnnotationReport(Record):
    """What a graph says of a word."""

    word: str
    graph: str
    overlay: str | None
    """The changes that it was read with."""
    source: str
    """The lexicon or the rule that the senses are of; "none" where nothing knows the word, whose one sense is ``<unk>``."""
    senses: tuple[GraphSense, ...]


class ChangeReport(ChangedSense):
    """A change that was added to an overlay; ``before`` holds the earlier changes of the file.

    Attributes:
        overlay: the file.
        changes: how many it has now.
        checked_with: the graph, or the lexicons, that it was checked with.
    """

    overlay: str
    changes: int
    checked_with: str


def annotation(word: str, graph: Path, overlay: Path | None = None) -> AnnotationReport:
    """The senses of a word as a graph, a file or that of a run, numbers them, and their sememes, maybe after the changes of an
    overlay.

    Raises ConfigError, DataError, GraphError: the graph or the overlay cannot be used, or the graph does not have the word."""
    word, found = word.strip(), graph_at(graph)
    if overlay is not None:
        found, _, _ = apply_changes(found, read_overlay(overlay))
    if word not in found.words:
        raise GraphError(f"{graph}: no word {word!r} in the graph{near(word, found.words)}; to ask a lexicon leave out --graph")
    entry = found.entry(found.words.index(word))
    senses = enumerate(entry.senses, start=1)
    return AnnotationReport(
        word=word,
        graph=str(graph),
        overlay=None if overlay is None else str(overlay),
        source=entry.source,
        senses=tuple(GraphSense(sense=number, label=sense.label, sememes=sense.sememes) for number, sense in senses),
    )


def add_change(
    sense: str,
    text: str,
    overlay: Path,
    *,
    graph: Path | None = None,
    sources: Sequence[str] = ("open",),
    side: Side = "chinese",
) -> ChangeReport:
    """Check a change and write it behind those that the overlay file has.

    Args:
        sense: ``WORD#NUMBER`` of a sense, from 1, or ``WORD`` where it has one.
        text: ``+sememe -sememe``.
        overlay: the file; made when it is not there.
        graph: the graph file that the change is for, or the folder of a run, which keeps its graph; a sememe that the run
            hardly trained is told by a RunWarning.
        sources: ``FORMAT:PATH`` of lexicons where there is no graph: senses are numbered as a graph of them has them.
        side: which words of a two-sided lexicon are read.

    Raises ConfigError, DataError, GraphError: the change, the file, the graph or a lexicon cannot be used, or the run never
    trained a sememe that is added; nothing is written."""
    new = parse_change(sense, text, f"--change {sense}")
    check_output(overlay, OVERLAY)
    earlier = read_overlay(overlay) if overlay.exists() and overlay.stat().st_size else ()
    if graph is not None:
        base, checked = graph_at(graph), str(graph)
    else:
        lexicons = open_lexicons(sources, side)
        base = build_graph(Vocabulary.from_counts({word: 1 for one in lexicons for word in one.words}), lexicons)
        checked = ", ".join(one.name for one in lexicons)
    try:
        before, _, _ = apply_changes(base, earlier)
    except (ConfigError, GraphError) as error:
        raise type(error)(f"{error}; the changes of another graph go into another file: --overlay FILE") from None
    _, (changed,), (spelled,) = apply_changes(before, [new])
    if graph is not None and graph.is_dir():
        counts_of_added(base, Vocabulary.load(graph / "vocabulary.tsv").counts, [changed], overlay, graph)
    write_overlay(overlay, [*earlier, spelled])
    return ChangeReport(**dict(changed), overlay=str(overlay), changes=len(earlier) + 1, checked_with=checked)
