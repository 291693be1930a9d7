"""``sememekit compare``: two systems that wrote texts for the same sources, with paired intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememekit.commands._options import Json, Seed, option
from sememekit.commands._render import per_cent, print_json, print_table, say
from sememekit.errors import ConfigError

if TYPE_CHECKING:
    from sememekit.analysis.written_texts import ComparisonReport

EXAMPLES = ("sememekit compare one.jsonl other.jsonl --by gigaword",)


def command(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="File that eval --texts wrote.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="The same file of another system.")],
    by: Annotated[str, option("--by", "gigaword, duc, lcsts-characters, lcsts-words or bleu.")],
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare the texts of two systems for the same sources: differences with paired 95 % intervals."""
    report = compare(first, second, by, seed=seed)
    if json:
        print_json(report)
        return
    rows = [
        (row.name, *map(per_cent, (row.first, row.second, *row.difference.model_dump().values()))) for row in report.differences
    ]
    columns = ("", "first", "second", "difference", "from", "to")
    print_table(f"{first} minus {second}, {report.examples:,} texts, in per cent", columns, rows)
    say(report.signature)


def compare(first: Path, second: Path, by: str, *, seed: int = 0) -> ComparisonReport:
    """Differences between two files of ``eval --texts`` or ``baseline --texts``, of the same data, resampled in pairs.

    Raises:
        ConfigError: ``by`` is neither a name of :data:`sememekit.measure.rouge.PRESETS` nor ``bleu``.
        DataError: a file that cannot be read, or files of other sources or references, with the line.
    """
    from sememekit.analysis.written_texts import ComparisonReport, check_same_sources, difference_table, read_texts_file
    from sememekit.measure.rouge import PRESETS

    if by not in (*PRESETS, "bleu"):
        raise ConfigError(f"--by {by!r}: allowed are {', '.join([*PRESETS, 'bleu'])}")
    one, two = read_texts_file(first), read_texts_file(second)
    check_same_sources(one, two, first, second)
    signature, rows = difference_table(one, two, by, seed)
    return ComparisonReport(
        first=str(first), second=str(second), by=by, examples=len(one.texts), signature=signature, differences=rows
    )
