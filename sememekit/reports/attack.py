"""The report of an attack as a page: rates, and every example with its changes marked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from sememekit.attack import ExampleResult
from sememekit.attack.folder import AttackFolder
from sememekit.attack.ratings import ANSWERS, items_of, read_ratings, sheet
from sememekit.attack.report import AttackComparison, AttackReport
from sememekit.figures import percent, percent_interval
from sememekit.files import replace_file
from sememekit.measure.attack_rates import NOT_TURNED, UNDER_ATTACK, validity_of
from sememekit.measure.intervals import Interval
from sememekit.reports import pages
from sememekit.reports.charts import Curves, Line, chart

MOST_SHOWN = 500
"""Examples of each outcome on the page; ``examples.jsonl`` has them all."""

_TITLES: Final = {
    "success": "Fooled",
    "failed": "Not fooled",
    "no_candidates": "Nothing to try",
    "error": "Errors",
    "skipped": "Skipped",
}
_CRITERIA: Final = {"meaning kept": "meaning", "label kept": "label", "fluent": "fluent", "valid, all three": "valid"}


def shown_rate(found: Interval | None) -> str:
    """A rate with its interval: "52.0 % (45.1 to 58.9)"."""
    return "–" if found is None else percent_interval(found.value, found.low, found.high)


def _number(found: Interval) -> str:
    """A mean with its interval: "52.0 (45.1 to 58.9)"."""
    if found.value is None:
        return "–"
    if found.low is None or found.high is None:
        return f"{found.value:,.1f}"
    return f"{found.value:,.1f} ({found.low:,.1f} to {found.high:,.1f})"


def rate_rows(report: AttackReport) -> list[tuple[str, str]]:
    """Name and value of every number of a report, for a terminal as for a page."""
    rates = report.rates
    rows = [
        ("outcomes", ", ".join(f"{name} {number:,}" for name, number in rates.outcomes.items())),
        ("words with candidates", _candidates(report)),
        ("texts to try, median example", _texts(report)),
        ("accuracy before the attack", shown_rate(rates.accuracy)),
    ]
    survived = NOT_TURNED if report.targeted else UNDER_ATTACK
    if rates.untried:
        rows.append((f"{survived}, {rates.untried:,} untried as surviving", shown_rate(rates.accuracy_at_most)))
        rows.append((f"{survived}, {rates.untried:,} untried as fooled", shown_rate(rates.accuracy_under_attack)))
    else:
        rows.append((survived, shown_rate(rates.accuracy_under_attack)))
    rows.append((f"success rate, of {rates.attackable:,} with something to try", shown_rate(rates.success_rate)))
    rows.append((f"success rate, of all {rates.attacked:,} attacked", shown_rate(rates.success_of_attacked)))
    for level, found in rates.success_at.items():
        rows.append((f"success rate at {level:,} queries", shown_rate(found) if found else "beyond the query budget"))
    if rates.attackable:
        rows.append(("mean queries", _number(rates.mean_queries)))
        rows.append(("median queries", f"{rates.median_queries:,.1f}"))
    if rates.mean_queries_of_successes is not None and rates.words_changed is not None:
        rows.append(("mean queries of successes", f"{rates.mean_queries_of_successes:,.1f}"))
        rows.append(("words changed, of successes", percent(rates.words_changed)))
    if report.perplexity_before is not None and report.perplexity_after is not None:
        rows.append(("perplexity of successes", f"{report.perplexity_before:,.1f} → {report.perplexity_after:,.1f}"))
    if report.refused_by_any is not None:
        costs = ", ".join(f"{name} {number:,}" for name, number in report.refused_by_standard.items())
        rows.append(("successes that standard would refuse", f"{report.refused_by_any:,} ({costs})"))
    if (rated := report.validity) is not None:
        shown = [
            ("successes rated", f"{rated.rated:,} of {rated.successes:,} ({rated.ratings:,} rows of raters)"),
            ("originals that raters give their label", shown_rate(rated.originals)),
            *((f"adversarial texts: {name}", shown_rate(getattr(rated, key))) for name, key in _CRITERIA.items()),
            ("success rate times validity", shown_rate(rated.valid_success)),
        ]
        for level, value in rated.valid_success_at.items():
            shown += [(f"success rate times validity at {level:,} queries", shown_rate(value))] if value else []
        rows += shown
    rows += [
        ("queries counted", f"{report.queries:,} ({report.counting})"),
        ("asked by this command", f"{report.texts_asked:,} texts in {report.calls:,} calls"),
    ]
    rows.extend((f"examples {reason}", f"{number:,}") for reason, number in report.reasons.items())
    return rows


def _candidates(report: AttackReport) -> str:
    """Words, those with candidates, and what the constraints leave of them."""
    found = report.coverage
    if found.share_with_candidates is None or found.share_changeable is None:
        return "no words"
    each = f", {found.mean_substitutes:,.1f} each" if found.mean_substitutes is not None else ""
    return (
        f"{percent(found.share_with_candidates)} of {found.words:,}; under the constraints "
        f"{percent(found.share_changeable)}{each}"
    )


def _texts(report: AttackReport) -> str:
    """The size of the space, as far as a power of ten says it."""
    found = report.coverage.median_texts_log10
    if found is None:
        return "none"
    return f"{10**found:,.0f}" if found < 6 else f"10^{found:.1f}"


def report_page(report: AttackReport, results: Sequence[ExampleResult]) -> str:
    """The page of one attack."""
    of_outcome = [(outcome, title, [one for one in results if one.outcome == outcome]) for outcome, title in _TITLES.items()]
    groups = [(outcome, title, found[:MOST_SHOWN], len(found)) for outcome, title, found in of_outcome if found]
    shown = {"how": _how(report), "rows": rate_rows(report), "groups": groups, "marked": marked}
    return pages.render("attack", report=report, charts=[chart(one) for one in charts({"success rate": results})], **shown)


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


def charts(attacks: Mapping[str, Sequence[ExampleResult]]) -> list[Curves]:
    """Successes of the examples on which there was something to try, by the queries that they took and by the words that they
    changed; a line an attack. No chart where there was nothing to try, and none of words where nothing succeeded."""
    tried = {name: [one for one in results if one.outcome in ("success", "failed")] for name, results in attacks.items()}
    tried = {name: results for name, results in tried.items() if results}
    won = {name: [one for one in results if one.outcome == "success"] for name, results in tried.items()}
    most = max((one.words_changed for results in won.values() for one in results), default=0)
    within, changed = [], []
    for name, results in tried.items():
        last = max(one.queries for one in results)
        within.append(Line(name, _rising([one.queries for one in won[name]], len(results), 1, last)))
        changed.append(Line(name, _rising([one.words_changed for one in won[name]], len(results), 0, most)))
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


def _rising(costs: Sequence[int], of: int, first: int, last: int) -> tuple[tuple[float, float], ...]:
    """(cost, share of ``of`` that cost no more), from ``first`` to ``last``; 0 before the first."""
    points = {float(first): 0.0}
    points |= {float(max(cost, first)): number / of for number, cost in enumerate(sorted(costs), start=1)}
    return tuple((points | {float(last): len(costs) / of}).items())


def marked(result: ExampleResult) -> list[list[tuple[str, str, str]]]:
    """Each field of an example as pieces: text that stayed, the word replaced behind it or "", and the new word or ""."""
    changes = sorted(result.changes, key=lambda change: change.begin)
    fields = []
    for number, field in enumerate(result.fields):
        pieces, end = [], 0
        for change in changes:
            if change.field == number:
                pieces.append((field[end : change.begin], change.old, change.new))
                end = change.begin + len(change.old)
        fields.append([*pieces, (field[end:], "", "")])
    return fields


def _how(report: AttackReport) -> str:
    parts = [report.preset, f"goal {report.goal}", f"search {report.search}", f"candidates {report.candidates}"]
    parts += [f"queries counted: {report.counting}", f"data {report.data}", f"words cut by {report.segmentation}"]
    parts += [f"budget {report.query_budget:,} queries"] if report.query_budget else []
    parts += [f"signature {report.signature}"]
    return "; ".join(part for part in parts if part)


def comparison_rows(comparison: AttackComparison) -> list[tuple[str, str, str, str, str]]:
    """Metric, both values, difference with interval, verdict."""
    rows = []
    for row in comparison.rows:
        scale = 1.0 if row.name.startswith("mean ") else 100.0
        values = [_number(side) if scale == 1.0 else shown_rate(side) for side in (row.first, row.second)]
        found = row.difference
        if found.value is None:
            rows.append((row.name, values[0], values[1], "–", "–"))
            continue
        if found.low is None or found.high is None:
            rows.append((row.name, values[0], values[1], f"{scale * found.value:+,.1f}", "–"))
            continue
        difference = f"{scale * found.value:+,.1f} ({scale * found.low:+,.1f} to {scale * found.high:+,.1f})"
        rows.append((row.name, values[0], values[1], difference, "differs" if row.excludes_zero else "no difference shown"))
    return rows


def comparison_page(comparison: AttackComparison) -> str:
    """The page of a comparison."""
    unlike = [(name, *both) for name, both in comparison.unlike.items()]
    return pages.render("attack_comparison", comparison=comparison, rows=comparison_rows(comparison), unlike=unlike)
