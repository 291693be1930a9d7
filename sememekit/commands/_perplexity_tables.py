"""The table of several models, or of one model with two annotations, on one text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sememekit.commands._printing import print_table, remark, say
from sememekit.figures import percent

if TYPE_CHECKING:
    from sememekit.analysis.evaluate_overlay import OverlayComparison
    from sememekit.analysis.evaluate_several import ComparedWords, PerplexityComparison


def print_comparison(report: PerplexityComparison) -> None:
    """One table: perplexities, and by how much each further model differs from the first; a row with a name is shown once."""
    names = [f"{one.run} ({', '.join(filter(None, (one.checkpoint, one.marginal)))})" for one in report.reports]
    _print_table(report, names)


def print_overlay(report: OverlayComparison, quiet: bool) -> None:
    """What was changed, then the table of before and after."""
    for change in report.changes:
        say(f"{change.word}#{change.sense}: {' '.join(change.before)} -> {' '.join(change.after)}")
    first = report.reports[0]
    _print_table(report, [f"{first.run} ({first.checkpoint}) as trained", f"the same with {report.overlay}"])
    for word in report.absent:
        remark(f"{word} does not occur in {report.split}", quiet)


def _print_table(report: PerplexityComparison, names: Sequence[str]) -> None:
    for number, name in enumerate(names, start=1):
        say(f"{number}: {name}")
    columns = ["words", "tokens", "share", *(str(number) for number in range(1, len(names) + 1))]
    for number in range(2, len(names) + 1):
        columns += [f"{number} - 1", "in %", "from", "to"]
    rows = {row.name: (row.name, row.tokens, percent(row.share), *row.perplexities, *_changes(row)) for row in report.rows}
    print_table(f"Perplexity on {report.split}", columns, rows.values())
    drawn = f"{report.resamples:,} paired draws of {report.units:,} {report.unit}"
    say(f"intervals: 95 %, {drawn}; the variation between trainings (seeds) is not in them")
    say(f"signature: {report.signature}")


def _changes(row: ComparedWords) -> Iterator[object]:
    for change in row.changes:
        yield change.perplexity
        for value in (change.relative.value, change.relative.low, change.relative.high):
            yield percent(value, 2, "+", unit=False)
