"""The subcommand analyze; the plain functions are in ``sememekit.analysis``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememekit.commands._options import Device, EvaluationData, Figure, Json, Quiet, Run, Seed, Split, Which, option
from sememekit.commands._page_and_figure import Result, check_outputs, give_out
from sememekit.commands._printing import print_table, say
from sememekit.commands._progress import progress_bars
from sememekit.commands._run_kinds import Way, choose, open_run
from sememekit.figures import percent

if TYPE_CHECKING:
    from sememekit.analysis.analyze import Analysis
    from sememekit.analysis.analyze_labels import LabelAnalysis
    from sememekit.runs.run import Run as LoadedRun

EXAMPLES = ("sememekit analyze runs/softmax runs/mos --out analysis.html", "sememekit analyze runs/nli")


def command(
    run: Run,
    other: Annotated[Path | None, typer.Argument(metavar="RUN2", help="Second run, with the same vocabulary.")] = None,
    out: Annotated[Path | None, option("--out", "Write a page with the chart of singular values.")] = None,
    figure: Figure = None,
    split: Split = "test",
    data: EvaluationData = None,
    contexts: Annotated[
        int | None,
        option(
            "--contexts",
            "Contexts (rows of the matrix), sampled by --seed; default all. Classifiers: examples, default 200.",
            min=2,
        ),
    ] = None,
    memory: Annotated[
        float | None,
        option("--memory", "GiB of memory for the matrix or its blockwise decomposition.", min=0.0, show_default="2"),
    ] = None,
    cases: Annotated[int | None, option("--cases", "Cases shown where each run does better.", min=1, show_default="6")] = None,
    top: Annotated[int | None, option("--top", "Top-k words shown of each; default 4, for classifiers 12.", min=1)] = None,
    which: Which = "best",
    seed: Seed = 1,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rank of the log-probabilities, divergence of the predictions, and where two models differ.

    Of classifiers: accuracy by kinds of examples, and the words and sememes that move their decisions most, as they are taken
    away one at a time in --contexts examples (default: 200).
    """
    check_outputs(out, figure)
    loaded = open_run(run)
    way, typed = choose("analyze", loaded, WAYS, locals())
    with progress_bars(quiet) as show:
        result = way.call(
            loaded, other=other, split=split, data=data, which=which, seed=seed, device=device, progress=show, **typed
        )
    give_out(result, out, figure, json=json, quiet=quiet)


def _words(run: LoadedRun, *, figure: Path | None = None, **options: Any) -> Result:
    from sememekit.analysis.analyze import analyze
    from sememekit.reports.analysis import analysis_page, charts

    return Result(analyze(run, **options), analysis_page, _print_words, charts)


def _print_words(report: Analysis) -> None:
    from sememekit.reports.analysis import COLUMNS, remark, rows

    print_table(remark(report), COLUMNS, rows(report), numeric=2)
    if report.comparison is not None:
        names = [run.run for run in report.runs]
        say(f"{names[0]} gives {percent(report.comparison.wins)} of the words more probability than {names[1]}")
        for winner, found in enumerate(report.comparison.better):
            say(f"\nwhere {names[winner]} did better:" + ("" if found else " no such word is among its most probable ones"))
            for case in found:
                say(f"\n  {' '.join(case.context)} __{case.reference}__")
                for name, prediction in ((names[winner], case.better), (names[1 - winner], case.worse)):
                    words = "  ".join(f"{word} {probability:.2f}" for word, probability in prediction.words)
                    say(f"    {name}: {words}  (of the word: {prediction.reference:.4f})")
    say(f"\nsignature: {report.signature}")


def _labels(run: LoadedRun, **options: Any) -> Result:
    from sememekit.analysis.analyze_labels import analyze_labels
    from sememekit.reports.labels import label_page

    return Result(analyze_labels(run, **options), label_page, _print_labels)


def _print_labels(report: LabelAnalysis) -> None:
    from sememekit.reports.labels import overview, remarks, tables

    for number, found in enumerate((None, *report.runs)):
        if number and len(report.runs) > 1:
            say(f"\n{report.runs[number - 1].run}\n")
        for table in [overview(report)] if found is None else tables(report, found):
            print_table(table.title, table.columns, table.rows, numeric=table.numeric)
    for line in remarks(report):
        say(line)


WAYS = (
    Way("labels", "a classifier", frozenset({"contexts", "top"}), _labels),
    Way("words", "a model that predicts words", frozenset({"contexts", "top", "memory", "cases", "figure"}), _words),
)
