"""``lookup --suggest``: the words that are asked for, word vectors of a run or a file, and what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sememekit.commands._printing import hint, print_json, print_table, remark
from sememekit.files import typed

if TYPE_CHECKING:
    from sememekit.sememes import Side as SideName
    from sememekit.sememes.suggesting import SuggestReport
    from sememekit.text.vectors import WordVectors


def print_suggestions(
    words: Sequence[str],
    data: Path | None,
    sources: Sequence[str],
    side: SideName,
    vectors: Path | None,
    top: int,
    files: Mapping[str, Path | None],
    json: bool,
    quiet: bool,
) -> None:
    """Suggest, write ``files`` (``table``, and ``overlay`` for ``graph``), and print."""
    from sememekit.sememes.graph import graph_at
    from sememekit.sememes.suggesting import suggest, write_changes, write_suggestions

    near = None if vectors is None else vectors_at(vectors)
    report = suggest_for(data, sources, side, near, top) if data else suggest(words, sources, side=side, vectors=near, top=top)
    if files["overlay"] is not None and files["graph"] is not None:
        write_changes(files["overlay"], report, graph_at(files["graph"]))
    if files["table"] is not None:
        write_suggestions(files["table"], report)
    print_json(report) if json else _print_suggested(report)
    if files["table"] is not None:
        table = files["table"]
        hint(f"next: delete the rows that are wrong, then: {typed('sememekit', 'lookup', '--diff', f'table:{table}')}", quiet)
    else:
        hint("next: --dump FILE writes them as a table", quiet)
    if report.without:
        remark(f"nothing speaks for any sememe of {' '.join(report.without[:10])}", quiet)


def suggest_for(
    data: Path, sources: Sequence[str], side: SideName, vectors: WordVectors | None = None, top: int = 5
) -> SuggestReport:
    """Suggestions for the words of prepared data that the sources do not have, with their counts and an example of each."""
    from sememekit.data.prepared import PreparedData
    from sememekit.errors import DataError
    from sememekit.sememes import build_graph, open_lexicons
    from sememekit.sememes.suggesting import suggest

    prepared = PreparedData.open(data)
    graph = build_graph(prepared.vocabulary, open_lexicons(sources, side))
    words = [entry.word for entry in graph.entries() if not entry.is_annotated]
    if not words:
        raise DataError(f"{data}: {', '.join(sources)} have sememes for all of its words; there is nothing to suggest")
    counts = dict(zip(prepared.vocabulary.tokens, prepared.vocabulary.counts.tolist(), strict=True))
    contexts = prepared.first_contexts(words)
    return suggest(words, sources, side=side, vectors=vectors, counts=counts, contexts=contexts, top=top)


def vectors_at(path: Path) -> WordVectors:
    """Input vectors of a trained run, or those of a text file."""
    from sememekit.text.vectors import WordVectors, read_vectors

    if not (path / "plan.json").is_file():
        return read_vectors(path)
    from sememekit.errors import ConfigError
    from sememekit.runs.run import Run

    run = Run.open(path, device="cpu")
    embedding = getattr(run.task, "embedding", None)
    if embedding is None or len(embedding.weight) != len(run.vocabulary):
        raise ConfigError(f"--vectors {path}: this run has no vectors of words; give another run, or a file of vectors")
    return WordVectors(run.vocabulary.tokens, embedding.weight.detach().float().numpy(), run.weights_sha256, 0)


def _print_suggested(report: SuggestReport) -> None:
    rows = [
        (one.word if place == 0 else "", found.sememe, f"{found.score:.2f}", "; ".join(found.evidence))
        for one in report.words
        for place, found in enumerate(one.sememes)
    ]
    title = f"Suggested by {' and '.join(report.methods)} out of {', '.join(report.sources)}"
    print_table(title, ("word", "sememe", "score", "evidence"), rows, numeric=4)
