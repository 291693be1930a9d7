"""What subcommands about lattice models share: flags and table of segmentations, and the part of ``explain`` for lattices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sememekit.cli.render import print_json, print_table, progress_bars, remark, say
from sememekit.cli.writing import refuse

if TYPE_CHECKING:
    from sememekit.analysis.segmentation import SegmentationReport

Decode = Annotated[
    Literal["viterbi", "posterior"] | None,
    typer.Option("--decode", help="Lattice models: the most probable path, or the most probable answer at each place."),
]
Gold = Annotated[
    Path | None,
    typer.Option("--segmentation", metavar="GOLD", help="Judge the words of a lattice model by a text with words apart."),
]
WordsOf = Annotated[
    Path | None,
    typer.Option("--words", metavar="TEXT", help="With --segmentation: a text whose words maximum matching knows."),
]
MatchingLexicon = Annotated[
    str | None,
    typer.Option("--lexicon", metavar="FORMAT:PATH", help="With --segmentation: a lexicon whose words maximum matching knows."),
]
Embeddings = Annotated[
    bool, typer.Option("--embeddings", help="Lattice models: CONTEXT is words; where does each embedding of them win?")
]


def judge_segmentation(run: Path, gold: Path, *, json: bool, **options: Any) -> None:
    """The part of ``eval`` with a gold segmentation."""
    from sememekit.analysis.segmentation import evaluate_segmentation

    with progress_bars(json) as show:
        report = evaluate_segmentation(run, gold, progress=show, **options)
    if json:
        print_json(report)
    else:
        print_segmentation(report)


def print_segmentation(report: SegmentationReport) -> None:
    """A row for the model and for each baseline."""
    columns = ["segmentation", "precision", "recall", "F1", "95%", "words", "F1 of the model minus this", "95%"]
    with_new = report.rows[0].new_recall is not None
    rows = []
    for row in report.rows:
        interval = f"{row.f1_low:.4f}–{row.f1_high:.4f}"
        cells: list[object] = [row.name, f"{row.precision:.4f}", f"{row.recall:.4f}", f"{row.f1:.4f}", interval, row.words]
        if row.difference is None:
            cells += [None, None]
        else:
            cells += [f"{row.difference:+.4f}", f"{row.difference_low:+.4f} to {row.difference_high:+.4f}"]
        rows.append([*cells, row.new_recall] if with_new else cells)
    first = report.rows[0]
    title = f"Words of {report.gold} found by {report.run} ({report.decoding}, {report.marginal})"
    print_table(title, [*columns, "recall of new words"] if with_new else columns, rows)
    say(f"{first.sentences:,} sentences, {first.gold_words:,} gold words; intervals: bootstrap over sentences")


def explain_lattice(
    run: Path, text: str, *, html: Path | None, json: bool, quiet: bool, embeddings: bool, **options: Any
) -> None:
    """The part of ``explain`` for lattice models."""
    from sememekit.analysis import explain_lattice as command
    from sememekit.cli.lattice_explanation import print_embeddings, print_lattice
    from sememekit.reports.lattice import write_embeddings_page, write_lattice_page

    if embeddings:
        with progress_bars(quiet) as show:
            uses = command.explain_embeddings(run, text.split(), progress=show, **options)
        if html is not None:
            write_embeddings_page(uses, html)
        print_json(uses) if json else print_embeddings(uses)
    else:
        refuse({name: options.get(name) for name in ("split", "data")}, "only together with --embeddings")
        explanation = command.explain_lattice(run, text, **options)
        if html is not None:
            write_lattice_page(explanation, html)
        print_json(explanation) if json else print_lattice(explanation)
    if html is not None:
        remark(f"page: {html}", quiet)
