"""Tables and pages that a notebook shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, final, overload

from rich.cells import cell_len

from sememekit.files import PAGE, write_output

_HEIGHT: Final = 480
"""Pixels of a page in a notebook."""

ReportType = TypeVar("ReportType")


@final
class Table(Sequence[Mapping[str, Any]]):
    """Rows with named columns: a sequence of dictionaries that a notebook shows as a table.

    >>> table = Table(("word", "probability"), [("apple", 0.5), ("pear", 0.25)])
    >>> [row["word"] for row in table], table.column("probability")
    (['apple', 'pear'], [0.5, 0.25])
    >>> table
    word   probability
    apple          0.5
    pear          0.25

    ``pandas.DataFrame(table.to_dicts())`` takes it as it is.
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> None:
        self.columns, self.rows, self.title = tuple(columns), tuple(tuple(row) for row in rows), title

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Table: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | Table:
        if isinstance(index, slice):
            return Table(self.columns, self.rows[index], self.title)
        return dict(zip(self.columns, self.rows[index], strict=True))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[index] for index in range(len(self)))

    def to_dicts(self) -> list[dict[str, Any]]:
        """All rows."""
        return [self[index] for index in range(len(self))]

    def column(self, name: str) -> list[Any]:
        """One column; KeyError for a name that is none."""
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns)}")
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def __repr__(self) -> str:
        cells = [self.columns, *(tuple(map(_text, row)) for row in self.rows)]
        widths = [max(cell_len(row[place]) for row in cells) for place in range(len(self.columns))]
        right = [self._is_number(place) for place in range(len(self.columns))]
        lines = (
            "  ".join(_padded(cell, width, to_right) for cell, width, to_right in zip(row, widths, right, strict=True))
            for row in cells
        )
        return "\n".join(([self.title] if self.title else []) + [line.rstrip() for line in lines])

    def _repr_html_(self) -> str:
        aligned = [
            ' style="text-align:right"' if self._is_number(place) else ' style="text-align:left"'
            for place in range(len(self.columns))
        ]
        head = "".join(f"<th{how}>{escape(name)}</th>" for name, how in zip(self.columns, aligned, strict=True))
        body = "".join(
            f"<tr>{''.join(f'<td{how}>{escape(_text(cell))}</td>' for cell, how in zip(row, aligned, strict=True))}</tr>"
            for row in self.rows
        )
        caption = f'<caption style="text-align:left">{escape(self.title)}</caption>' if self.title else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _is_number(self, place: int) -> bool:
        return bool(self.rows) and all(isinstance(row[place], int | float | None) for row in self.rows)


@final
class Shown(Generic[ReportType]):
    """A report of sememekit with the page that its command writes; a notebook shows the page.

    >>> shown = Shown({"a": 1}, lambda report: f"<p>{report['a']}</p>")
    >>> shown.report, shown.html
    ({'a': 1}, '<p>1</p>')

    Attributes:
        report: the typed report; its attributes are found here as well.
    """

    def __init__(self, report: ReportType, page: Callable[[ReportType], str]) -> None:
        self.report = report
        self._page = page

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.report, name)

    def __repr__(self) -> str:
        return f"{type(self.report).__name__}: .report has the figures, .html the page, .save(path) writes it"

    @property
    def html(self) -> str:
        """The page, which needs nothing else."""
        return self._page(self.report)

    def save(self, path: Path | str) -> None:
        """Write the page; it replaces an earlier page only (ConfigError otherwise)."""
        write_output(Path(path), self.html.encode(), PAGE)

    def _repr_html_(self) -> str:
        return framed(self.html)


def framed(page: str) -> str:
    """A whole page as part of another: its style stays inside, and no script of it runs."""
    return f'<iframe srcdoc="{escape(page)}" sandbox="" style="width:100%;height:{_HEIGHT}px;border:0"></iframe>'


def _padded(cell: str, width: int, to_right: bool) -> str:
    """A cell as wide as its column, where a Chinese character is two columns wide."""
    blanks = " " * (width - cell_len(cell))
    return blanks + cell if to_right else cell + blanks


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return "" if cell is None else str(cell)
