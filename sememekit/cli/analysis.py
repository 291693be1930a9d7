"""The subcommand analyze."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sememekit.cli.options import Debug, Device, EvaluationData, Json, Quiet, Run, Seed, Split, example, given
from sememekit.cli.render import print_json, print_table, progress_bars, remark, say


def register(app: typer.Typer) -> None:
    """Add the subcommand to the program."""
    app.command(epilog=example("sememekit analyze runs/softmax runs/mos --out analysis.html"))(analyze)


def analyze(
    run: Run,
    other: Annotated[
        Path | None,
        typer.Argument(metavar="RUN2", help="Another model of the same words.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write a page with the chart of singular values.")] = None,
    split: Split = None,
    data: EvaluationData = None,
    contexts: Annotated[
        int | None, typer.Option("--contexts", min=2, help="Rows of the matrix; as many as fit unless given.")
    ] = None,
    memory: Annotated[
        float | None, typer.Option("--memory", min=0.0, help="GiB that the matrix and its decomposition may take; 1.")
    ] = None,
    cases: Annotated[int | None, typer.Option("--cases", min=1, help="Predictions shown where each does better; 6.")] = None,
    top: Annotated[int | None, typer.Option("--top", min=1, help="Likeliest words shown of each; 4.")] = None,
    which: Annotated[
        Literal["best", "last"] | None, typer.Option("--which", help="The best weights by validation, or the last.")
    ] = None,
    seed: Seed = None,
    device: Device = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Rank of the log-probabilities, spread of the predictions, and where two models differ."""
    from sememekit.commands.analysis_page import COLUMNS, rows, write_analysis_page
    from sememekit.commands.analysis_page import remark as which_text
    from sememekit.commands.analyze import analyze as command

    options = given(
        other=other, split=split, data=data, contexts=contexts, memory=memory, cases=cases, top=top, which=which, seed=seed
    )
    with progress_bars(quiet) as show:
        report = command(run, progress=show, **options, **given(device=device))
    if out is not None:
        write_analysis_page(report, out)
        remark(f"page: {out}", quiet)
    if json:
        print_json(report)
        return
    print_table(which_text(report), COLUMNS, rows(report), numeric=2)
    if report.comparison is not None:
        names = [run.run for run in report.runs]
        say(f"{names[0]} gives {report.comparison.wins:.1%} of the words more probability than {names[1]}")
        for winner, found in enumerate(report.comparison.better):
            say(f"\nwhere {names[winner]} did better:" + ("" if found else " nowhere among its likeliest words"))
            for case in found:
                say(f"\n  {' '.join(case.context)} __{case.reference}__")
                for name, prediction in ((names[winner], case.better), (names[1 - winner], case.worse)):
                    words = "  ".join(f"{word} {probability:.2f}" for word, probability in prediction.words)
                    say(f"    {name}: {words}  (of the word: {prediction.reference:.4f})")
    say(f"\nsignature: {report.signature}")
