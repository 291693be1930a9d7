"""The subcommand evaluate-explanations; the plain function is in ``sememekit.analysis.explanations.evaluation``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from sememekit.commands._options import Device, EvaluationData, Figure, Html, Json, Mean, Quiet, Run, Seed, Split, Which, option
from sememekit.commands._page_and_figure import Result, check_outputs, give_out
from sememekit.commands._printing import print_table, say
from sememekit.commands._progress import progress_bars

if TYPE_CHECKING:
    from sememekit.analysis.explanations.evaluation import ExplanationScores

EXAMPLES = (
    "sememekit evaluate-explanations runs/sdlm --html scores.html",
    "sememekit evaluate-explanations runs/sdlm --contexts 20000 --top 5",
)


def command(
    run: Run,
    split: Split = "test",
    data: EvaluationData = None,
    html: Html = None,
    figure: Figure = None,
    tops: Annotated[
        list[int] | None, option("--top", "k: score the top k sememes of each ranking; may be repeated; 1, 5 and 10.", min=1)
    ] = None,
    mean: Mean = "counts",
    contexts: Annotated[
        int | None, option("--contexts", "Positions at most, of whole sentences drawn by --seed; all unless given.", min=1)
    ] = None,
    seed: Seed = 1,
    which: Which = "best",
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How often the sememes that explain lists are those of the word that came.

    Against rankings by raw gates, by training frequency and at random, with 95 % intervals over sentences, by frequency of
    the word and of the sememe; the definitions are in docs/explaining.md.
    """
    from sememekit.analysis.explanations.evaluation import TOPS, evaluate_explanations
    from sememekit.reports.explanation_scores import charts, scores_page

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
    give_out(Result(report, scores_page, _show, charts), html, figure, json=json, quiet=quiet)


def _show(report: ExplanationScores) -> None:
    from sememekit.reports.explanation_scores import remarks, tables

    for table in tables(report):
        print_table(table.title, table.columns, table.rows)
    for line in remarks(report):
        say(line)
