"""``eval --explanations``, earlier a subcommand; the plain function is in ``sememekit.analysis.explanations.evaluation``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from sememekit.commands._options import Device, EvaluationData, Figure, Html, Json, Mean, Quiet, Run, Seed, Split, Which, option
from sememekit.commands._page_and_figure import Result, check_outputs, give_out
from sememekit.commands._printing import print_table, say
from sememekit.commands._progress import progress_bars

if TYPE_CHECKING:
    from sememekit.analysis.explanations.evaluation import ExplanationScores

EXAMPLES = (
    "sememekit eval runs/sdlm --explanations --html scores.html",
    "sememekit eval runs/sdlm --explanations --contexts 20000 --top 5",
)


Tops = Annotated[
    list[int] | None,
    option("--top", "k: score the top k sememes of each ranking; may be repeated.", min=1, show_default="1, 5 and 10"),
]
Contexts = Annotated[
    int | None, option("--contexts", "Positions at most, of whole sentences drawn by --seed; all unless given.", min=1)
]


def command(
    run: Run,
    split: Split = "test",
    data: EvaluationData = None,
    html: Html = None,
    figure: Figure = None,
    tops: Tops = None,
    mean: Mean = "counts",
    contexts: Contexts = None,
    seed: Seed = 1,
    which: Which = "best",
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Earlier name of ``eval RUN --explanations``."""
    from sememekit.analysis.explanations.evaluation import TOPS, evaluate_explanations
    from sememekit.reports.explanation_scores import charts, scores_page

    check_outputs(html, figure)
    options: dict[str, Any] = {"split": split, "mean": mean, "data": data, "contexts": contexts, "seed": seed}
    with progress_bars(quiet) as show:
        report = evaluate_explanations(run, tops=tops or TOPS, device=device, which=which, progress=show, **options)
    give_out(Result(report, scores_page, _show, charts), html, figure, json=json, quiet=quiet)


def _show(report: ExplanationScores) -> None:
    from sememekit.reports.explanation_scores import remarks, tables

    for table in tables(report):
        print_table(table.title, table.columns, table.rows)
    for line in remarks(report):
        say(line)
