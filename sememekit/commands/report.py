"""The subcommand report; the plain function is ``sememekit.reports.run.report``."""

from pathlib import Path
from typing import Annotated

from sememekit.commands._options import Figure, Json, Quiet, Run, option
from sememekit.commands._printing import print_fields, print_json, remark

EXAMPLES = ("sememekit report quickstart/sdlm --html curves.html",)


def command(
    run: Run,
    html: Annotated[Path | None, option("--html", "The page to write. Default: report.html in RUN.")] = None,
    figure: Figure = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a page about a run: learning curves, its clusters over time, every setting."""
    from sememekit.reports.run import report

    result = report(run, html=html, figure=figure)
    if json:
        print_json(result)
    elif not quiet:
        print_fields(f"Report of {run}", result, skip=("run",))
    if figure is not None:
        remark(f"figure: {figure}", quiet)
