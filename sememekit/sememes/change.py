"""``sememekit lookup --change``: one change of annotation, checked and added to an overlay file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sememekit.errors import ConfigError
from sememekit.files import OVERLAY, check_output
from sememekit.sememes import SememeGraph, Side, build_graph, open_lexicons
from sememekit.sememes.overlay import ChangedSense, apply_changes, parse_change, read_overlay, write_overlay
from sememekit.text.vocabulary import Vocabulary


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
        graph: the graph file that the change is for, or the folder of a run, which keeps its graph.
        sources: ``FORMAT:PATH`` of lexicons where there is no graph: senses are numbered as a graph of them has them.
        side: which words of a two-sided lexicon are read.

    Raises:
        ConfigError, DataError, GraphError: the change, the file, the graph or a lexicon cannot be used; nothing is written.
    """
    new = parse_change(sense, text, f"--change {sense}")
    check_output(overlay, OVERLAY)
    earlier = read_overlay(overlay) if overlay.exists() and overlay.stat().st_size else ()
    if graph is not None:
        file = graph / "graph.json" if graph.is_dir() else graph
        if graph.is_dir() and not file.exists():
            raise ConfigError(f"--graph {graph}: this folder keeps no graph.json; give a run with a graph, or a graph file")
        base, checked = SememeGraph.load(file), str(graph)
    else:
        lexicons = open_lexicons(sources, side)
        base = build_graph(Vocabulary.from_counts({word: 1 for one in lexicons for word in one.words}), lexicons)
        checked = ", ".join(one.name for one in lexicons)
    before, _, _ = apply_changes(base, earlier)
    _, (changed,), (spelled,) = apply_changes(before, [new])
    write_overlay(overlay, [*earlier, spelled])
    return ChangeReport(**dict(changed), overlay=str(overlay), changes=len(earlier) + 1, checked_with=checked)
