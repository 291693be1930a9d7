"""The report of an attack as a page: rates, and every example with its changes marked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from sememekit.attack import ExampleResult
from sememekit.attack.folder import AttackFolder
from sememekit.attack.ratings import ANSWERS, items_of, read_ratings, sheet
from sememekit.attack.report import AttackComparison, AttackReport
from sememekit.figures import percent
from sememekit.files import replace_file
from sememekit.measure.attack_rates import NOT_TURNED, UNDER_ATTACK, validity_of
from sememekit.measure.intervals import Interval, wilson_interval
from sememekit.reports import pages
from sememekit.reports.charts import Curves, Line, chart
from sememekit.reports.table import Parts, Table, Views, shown_rate

MOST_SHOWN = 500  # examples of each outcome on the page; ``examples.jsonl`` has them all

_TITLES: Final = {
    "success": "Fooled",
    "failed": "Not fooled",
    "no_candidates": "Nothing to try",
    "error": "Errors",
    "skipped": "Skipped",
}


def _number(found: Interval, scale: float = 1.0, sign: str = "") -> str:
    """Format a mean with its interval: "52.0 (45.1 to 58.9)"."""
    value, low, high = ("–" if one is None else f"{scale * one:{sign},.1f}" for one in (found.value, found.low, found.high))
    return value if found.low is None else f"{value} ({low} to {high})"


def rate_rows(report: AttackReport) -> list[tuple[str, str]]:
    """Return name and value of every number of a report, for terminal and page."""
    survived = NOT_TURNED if report.targeted else UNDER_ATTACK
    lines = (line.partition("\t") for line in pages.remarks("rates", report, shown_rate, _number, survived))
    return [(name, value) for name, _, value in lines]


def report_page(report: AttackReport, results: Sequence[ExampleResult]) -> str:
    """The page of one attack."""
    of_outcome = [(outcome, title, [one for one in results if one.outcome == outcome]) for outcome, title in _TITLES.items()]
    groups = [(outcome, title, found[:MOST_SHOWN], len(found)) for outcome, title, found in of_outcome if found]
    shown = {"rows": rate_rows(report), "groups": groups}
    return pages.render("attack", report=report, charts=[chart(one) for one in charts({"success rate": results})], **shown)


def write_sheets(folder: AttackFolder, results: Sequence[ExampleResult]) -> None:
    """Write ``ratings.csv`` and ``ratings.html`` (which works offline), unless they exist and may be filled in."""
    items, path = items_of(results), folder.path / "ratings.csv"
    if items and not path.exists():
        key, labels = "-".join(item.name for item in items[:2]), folder.identity["victim"]["labels"]
        page = pages.render("ratings", items=items, answers=ANSWERS, labels=labels, key=key)
        replace_file(path, sheet(items))
        replace_file(path.with_suffix(".html"), page.encode())


def rate(out: Path, ratings: Sequence[Path]) -> AttackReport:
    """Add the ratings of successes to the report of a finished attack in its folder. Raises CheckpointError: not a finished
    attack. Raises DataError: sheets of another attack."""
    folder = AttackFolder.open(out)
    report, found = folder.report(), folder.results()
    results = [found[index] for index in sorted(found)]
    verdicts, rows, *others = read_ratings(ratings, items_of(results), folder.identity["victim"]["labels"])
    by_place = {place: verdicts[one.index] for place, one in enumerate(results) if one.index in verdicts}
    of_raters = dict(zip(("raters", "agreement", "remarks"), others, strict=True))
    validity = validity_of(results, by_place, rows, query_budget=folder.query_budget, **of_raters)
    proxies = tuple(proxy.compared(verdicts) for proxy in report.proxies)
    report = report.model_copy(update={"validity": validity, "proxies": proxies})
    folder.write_report(report, report_page(report, results))
    return report


def charts(attacks: Mapping[str, Sequence[ExampleResult]]) -> list[Curves]:
    """Return charts of successes / attackable examples, by queries and by changed words, a line for each attack. No chart
    without attackable examples, and none by words without a success."""
    tried = {name: [one for one in results if one.outcome in ("success", "failed")] for name, results in attacks.items()}
    tried = {name: results for name, results in tried.items() if results}
    won = {name: [one for one in results if one.outcome == "success"] for name, results in tried.items()}
    most = max((one.words_changed for results in won.values() for one in results), default=0)
    within, changed = [], []
    for name, results in tried.items():
        last = max(one.queries for one in results)
        within.append(_rising(name, [one.queries for one in won[name]], len(results), 1, last))
        changed.append(_rising(name, [one.words_changed for one in won[name]], len(results), 0, most))
    told = "; ".join(f"{line.name} {percent(line.points[-1][1])}" for line in within)
    title = f"Share of the examples that are fooled {{}}: {told}"
    found = []
    if within:
        named = title.format("within so many queries")
        found.append(Curves(named, "queries", "success rate", tuple(within), "percent", "log", show=".1%", steps=True))
    if most:
        named = title.format("with so many words changed at most")
        found.append(Curves(named, "words changed", "success rate", tuple(changed), "percent", show=".1%", steps=True))
    return found


def _rising(name: str, costs: Sequence[int], of: int, first: int, last: int) -> Line:
    """Return the line of (cost, share of ``of`` with at most this cost), ``first`` to ``last``, with Wilson's intervals."""
    counts = {float(first): 0}
    counts |= {float(max(cost, first)): number for number, cost in enumerate(sorted(costs), start=1)}
    counts[float(last)] = len(costs)
    points = tuple((cost, number / of) for cost, number in counts.items())
    return Line(name, points, tuple(wilson_interval(number, of) for number in counts.values()))


def comparison_rows(comparison: AttackComparison) -> list[tuple[str, str, str, str, str]]:
    """Return metric, both values, difference with interval, and verdict."""
    rows = []
    for row in comparison.rows:
        scale = 1.0 if row.name.startswith("mean ") else 100.0
        first, second = (_number(side) if scale == 1.0 else shown_rate(side) for side in (row.first, row.second))
        verdict = "–" if row.difference.low is None else "differs" if row.excludes_zero else "no difference shown"
        rows.append((row.name, first, second, _number(row.difference, scale, "+"), verdict))
    return rows


def comparison_parts(found: AttackComparison) -> Parts:
    """Yield the parts of a comparison for a terminal."""
    title = f"{found.first} against {found.second}: {found.common:,} examples in common"
    yield Table(("", "first", "second", "first minus second (95 %)", ""), comparison_rows(found), title, numbers=1)
    if found.only_one:
        told = f"left out: {found.only_one:,} examples that one side lacks or that ended in an error"
        yield f"{told} (accuracy counts those that both classified)"
    unlike = [(name, *both) for name, both in found.unlike.items()]
    yield Table(("setting", "first", "second"), unlike, "What differs") if unlike else "both were made with the same settings"


def charts_of(folders: Mapping[str, Path]) -> list[Curves]:
    """Return the charts of attacks on disk, by name."""
    return charts({name: tuple(AttackFolder.open(folder).results().values()) for name, folder in folders.items()})


def comparison_page(comparison: AttackComparison, drawn: Sequence[Curves] = ()) -> str:
    """Return the page of a comparison, with the charts of both attacks."""
    unlike = [(name, *both) for name, both in comparison.unlike.items()]
    shown = {"rows": comparison_rows(comparison), "unlike": unlike, "charts": [chart(one) for one in drawn]}
    return pages.render("attack_comparison", comparison=comparison, **shown)


def comparison_views(folders: Mapping[str, Path]) -> Views:
    """Return the views of a comparison of two attacks on disk."""
    return Views(lambda found: comparison_page(found, charts_of(folders)), comparison_parts)
