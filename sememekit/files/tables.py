"""Read the tables and lists that people write, by one rule for all commands; write CSV that no spreadsheet executes.

LF, CR LF and CR end a line; other separators (U+2028, U+0085, form feed) stay inside a cell. A byte-order mark is removed at
the start of any line. Columns stand between tabs; between commas, or else semicolons, in a ``.csv`` and below a header with
known names. Quotes around a whole cell are removed, with inner quotes doubled; line ends inside quotes are read in CSV only."""

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from sememekit.errors import DataError
from sememekit.files.packed import unpacked_name

_LARGEST_CELL: Final = 1 << 20
_COLUMNS: Final = re.compile(r"\w[,;|]\w")  # a mark between columns or sememes
_FORMULA: Final = re.compile(r"[=+@\t\r-](?![\d.]*$)")  # start of a cell that a spreadsheet executes; a sign or number is none
_GUARDED: Final = re.compile(rf"'(?={_FORMULA.pattern})")


class Row(NamedTuple):
    """A row of a table: the number of its first line, from 1, its text before quotes are removed, and its cells."""

    line: int
    text: str
    cells: list[str]


def split_lines(text: str) -> list[str]:
    """Return all lines without their ends and without byte-order marks."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    return [line.removeprefix("\ufeff") for line in lines] if "\ufeff" in text else lines


def numbered(text: str | Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line) of each line of a text that is not blank."""
    lines = split_lines(text) if isinstance(text, str) else text
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def list_items(text: str, name: str | Path) -> list[tuple[int, str]]:
    """Return (number, line) of a list with an item a line, without quotes and blanks around it.

    Raises DataError: every line looks like a row with commas, semicolons or ``|``, so that the file is a table."""
    found = [(number, unquoted(line.strip())) for number, line in numbered(text)]
    if found and all(_COLUMNS.search(line) for _, line in found):
        number, line = found[0]
        raise DataError(
            f"{name}:{number}: {line[:40]!r} is no word of a list, and all {len(found):,} lines have such marks; write a word "
            "a line, or a table with a header and tabs between its columns: word TAB sememes"
        )
    return found


def table_rows(text: str | Iterable[str], name: str | Path, names: Collection[str] = ()) -> Iterator[Row]:
    """Yield each row that is not blank of a text or of lines of the file ``name``; ``names`` are known columns, in lower case.

    Raises DataError: a quote in CSV that does not close, with file and line."""
    given: Iterable[str] = [text] if isinstance(text, str) else text
    before: list[str] = []
    lines: Iterator[str] = (part for line in given for part in split_lines(line))
    for line in lines:
        before.append(line)
        if line.strip():
            break
    mark = _delimiter(before[-1], str(name), names) if before else "\t"
    lines = chain(before, lines)
    if mark == "\t":
        for number, line in numbered(lines):
            yield Row(number, line, [unquoted(cell) for cell in line.split("\t")])
        return
    csv.field_size_limit(max(csv.field_size_limit(), _LARGEST_CELL))
    begins, rows = 1, csv.reader((line + "\n" for line in lines), delimiter=mark, strict=True)
    try:
        for cells in rows:
            if any(map(str.strip, cells)):
                yield Row(begins, "", cells)
            begins = rows.line_num + 1
    except csv.Error as error:
        raise DataError(f"{name}:{begins}: not CSV ({error}); is a quote left open or not doubled?") from None


def _delimiter(first: str, name: str, names: Collection[str]) -> str:
    """Return the character between columns by the first line."""
    if unpacked_name(name).lower().endswith(".csv"):
        return next((mark for mark in ",;\t" if mark in first), ",")
    known = {mark: len({unquoted(cell.strip()).casefold() for cell in first.split(mark)} & {*names}) for mark in "\t,;"}
    return next((mark for mark in ",;" if known[mark] > max(1, known["\t"])), "\t")


def names_of(cells: Iterable[str]) -> list[str]:
    """Return the names of columns in lower case, without blanks around them."""
    return [cell.strip().casefold() for cell in cells]


def unquoted(cell: str) -> str:
    """Remove the quotes of a spreadsheet, which enclose a whole cell with inner quotes doubled."""
    if len(cell) >= 2 and cell[0] == cell[-1] == '"':
        inside = cell[1:-1]
        if '"' not in inside.replace('""', ""):
            return inside.replace('""', '"')
    return cell


def guarded(cell: Any) -> Any:
    """Put ``'`` before a text that a spreadsheet would execute as a formula; other values stay."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def unguarded(cell: str) -> str:
    """Remove the ``'`` of :func:`guarded`."""
    return _GUARDED.sub("", cell, count=1) if cell.startswith("'") else cell


def csv_text(rows: Iterable[Iterable[Any]], end: str = "\r\n") -> str:
    """Return rows as CSV without formulas."""
    stream = StringIO()
    csv.writer(stream, lineterminator=end).writerows(map(guarded, row) for row in rows)
    return stream.getvalue()


def tsv_text(rows: Iterable[Sequence[str]]) -> str:
    """Return rows with tabs between cells, without formulas; white space in a cell becomes one blank."""
    return "".join("\t".join(_tsv_cell(" ".join(cell.split())) for cell in row) + "\n" for row in rows)


def _tsv_cell(cell: str) -> str:
    """Return a cell that the reader gives back as it is."""
    return guarded(cell if unquoted(cell) == cell else '"' + cell.replace('"', '""') + '"')
