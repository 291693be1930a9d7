"""What a command found: printed, as JSON, as a page and as a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sememekit.commands._printing import print_json, remark

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sememekit.reports.charts import Chart


class Result(NamedTuple):
    """A report and what is made of it; ``charts`` is None where it has none."""

    report: BaseModel
    page: Callable[[Any], str]
    show: Callable[[Any], None]
    charts: Callable[[Any], Sequence[Chart]] | None = None


def check_outputs(page: Path | None, figure: Path | None = None) -> None:
    """Refuse files that may not be written, before anything is computed for them."""
    if page is not None:
        from sememekit.files import PAGE, check_output

        check_output(page, PAGE)
    if figure is not None:
        from sememekit.reports.charts import check_figure

        check_figure(figure)


def write_charts(report: Any, charts: Callable[[Any], Sequence[Chart]], figure: Path | None, quiet: bool) -> None:
    """The charts of a report as a figure, where one was asked for."""
    if figure is not None:
        from sememekit.reports.charts import write_figure

        write_figure(charts(report), figure)
        remark(f"figure: {figure}", quiet)


def give_out(result: Result, page: Path | None, figure: Path | None, *, json: bool, quiet: bool) -> None:
    """Write the page and the figure that were asked for, and print the report."""
    if page is not None:
        from sememekit.reports.pages import write_page

        write_page(page, result.page(result.report))
        remark(f"page: {page}", quiet)
    if result.charts is not None:
        write_charts(result.report, result.charts, figure, quiet)
    print_json(result.report) if json else result.show(result.report)
