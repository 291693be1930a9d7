"""Rating sheets of an attack, and its report with what raters wrote into them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sememekit.attack import ExampleResult
from sememekit.attack.folder import AttackFolder
from sememekit.attack.ratings import ANSWERS, items_of, read_ratings, sheet
from sememekit.attack.report import AttackReport
from sememekit.files import replace_file
from sememekit.measure.attack_validity import validity_of
from sememekit.reports import pages
from sememekit.reports.attack import report_page


def write_sheets(folder: AttackFolder, results: Sequence[ExampleResult]) -> None:
    """Write ``ratings.csv`` and ``ratings.html``, which works offline, into a folder that has none: they may be filled in."""
    items, path = items_of(results), folder.path / "ratings.csv"
    if items and not path.exists():
        key, labels = "-".join(item.name for item in items[:2]), folder.identity["victim"]["labels"]
        page = pages.render("ratings", items=items, answers=ANSWERS, labels=labels, key=key)
        replace_file(path, sheet(items))
        replace_file(path.with_suffix(".html"), page.encode())


def rate(out: Path, ratings: Sequence[Path]) -> AttackReport:
    """The report of a finished attack with what raters said of its successes, written into its folder. Raises CheckpointError:
    no finished attack. Raises DataError: sheets that are none of it."""
    folder = AttackFolder.open(out)
    report, found = folder.report(), folder.results()
    results = [found[index] for index in sorted(found)]
    verdicts, rows = read_ratings(ratings, items_of(results), folder.identity["victim"]["labels"])
    by_place = {place: verdicts[one.index] for place, one in enumerate(results) if one.index in verdicts}
    validity = validity_of(results, by_place, rows, query_budget=folder.query_budget)
    report = report.model_copy(update={"validity": validity})
    folder.write_report(report, report_page(report, results))
    return report
