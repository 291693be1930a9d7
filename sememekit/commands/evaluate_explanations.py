"""The subcommand evaluate-explanations; the plain function is ``sememekit.analysis.evaluate_explanations``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sememekit.commands._options import Device, EvaluationData, Figure, Html, Json, Quiet, Run, Seed, Split, Which
from sememekit.commands._render import print_table, progress_bars, say
from sememekit.commands._results import Result, check_outputs, give_out

if TYPE_CHECKING:
    from sememekit.analysis.evaluate_explanations import ExplanationScores

EXAMPLES = (
    "sememekit evaluate-explanations runs/sdlm --html scores.html",
    "sememekit evaluate-explanations runs/sdlm --contexts 20000 --top 5",
)


def command(
    run: Run,
    split: Split = "test",
    data: EvaluationData = None,
    tops: Annotated[
        list[int] | None,
        typer.Option("--top", min=1, help="k, how many sememes are taken of a ranking; may be repeated; 1, 5 and 10."),
    ] = None,
    mean: Annotated[
        str,
        typer.Option(
            "--mean",
            metavar="counts|SPLIT",
            help="What the mean probability of a sememe is taken over: the word counts, or a split that is read.",
        ),
    ] = "counts",
    contexts: Annotated[
        int | None,
        typer.Option("--contexts", min=1, help="Positions at most, of whole sentences drawn by --seed; all unless given."),
    ] = None,
    seed: Seed = 1,
    html: Html = None,
    figure: Figure = None,
    which: Which = "best",
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How often the sememes that explain lists are those of the word that came.

    Against rankings by raw gates, by training frequency and at random, with 95 % intervals over sentences, by frequency of
    the word and of the sememe; the definitions are in docs/explaining.md.
    """
    from sememekit.analysis.evaluate_explanations import TOPS, evaluate_explanations
    from sememekit.reports.explanation_scores import charts, write_page

    check_outputs(html, figure)
    with progress_bars(quiet) as show:
        report = evaluate_explanations(
            run,
            split=split,
            tops=tops or TOPS,
            mean=mean,
            data=data,
            contexts=contexts,
            seed=seed,
            device=device,
            which=which,
            progress=show,
        )
    give_out(Result(report, write_page, _show, charts), html, figure, json=json, quiet=quiet)


def _show(report: ExplanationScores) -> None:
    from sememekit.reports.explanation_scores import remarks, tables

    for table in tables(report):
        print_table(table.title, table.columns, table.rows)
    for line in remarks(report):
        say(line)
