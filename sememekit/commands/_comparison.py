"""The table of several models, or of one model with two annotations, on one text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sememekit.commands._render import print_table, say

if TYPE_CHECKING:
    from sememekit.analysis.evaluate_several import ComparedWords, PerplexityComparison


def print_comparison(report: PerplexityComparison) -> None:
    """One table: perplexities, and by how much each further model differs from the first; a row with a name is shown once."""
    names = [one.run for one in report.reports]
    for number, one in enumerate(report.reports, start=1):
        say(f"{number}: {one.run} ({one.checkpoint})")
    columns = ["words", "tokens", "share", *(str(number) for number in range(1, len(names) + 1))]
    for number in range(2, len(names) + 1):
        columns += [f"{number} - 1", "in %", "from", "to"]
    rows = {row.name: (row.name, row.tokens, f"{row.share:.1%}", *row.perplexities, *_changes(row)) for row in report.rows}
    print_table(f"Perplexity on {report.split}", columns, rows.values())
    drawn = f"{report.resamples:,} paired draws of {report.units:,} {report.unit}"
    say(f"intervals: 95 %, {drawn}; they do not hold the spread between trainings")
    say(f"signature: {report.signature}")


def _changes(row: ComparedWords) -> Iterator[object]:
    """For each further model the difference of the perplexities, and the same in per cent with its interval."""
    for change in row.changes:
        yield change.perplexity
        for value in (change.relative.value, change.relative.low, change.relative.high):
            yield "–" if value is None else f"{100 * value:+.2f}"
