"""The table of a result, for terminals, pages, notebooks and files; and a report with its tables, charts and page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, final, overload

from rich.cells import cell_len

from sememekit.figures import format_value, percent_interval
from sememekit.files import PAGE, write_output
from sememekit.files.tables import csv_text

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sememekit.measure.intervals import Interval
    from sememekit.reports.charts import Chart

BAR_WIDTH: Final = 12  # width of a full bar in characters

_ESCAPES: Final = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}

ReportType = TypeVar("ReportType")


@final
class Table(Sequence[dict[str, Any]]):
    """Rows with named columns: a sequence of dictionaries that a notebook shows as a table.

    >>> table = Table(("word", "probability"), [("apple", 0.5), ("pear", 0.25)])
    >>> [row["word"] for row in table], table.column("probability")
    (['apple', 'pear'], [0.5, 0.25])
    >>> table
    word   probability
    apple          0.5
    pear          0.25

    ``pandas.DataFrame(table.to_dicts())`` converts it.

    ``numbers`` are indices of columns set flush right, or the first of them (default: columns of numbers), ``faint`` indices of
    grey rows; ``left_out`` is the number of omitted rows with smaller changes."""

    def __init__(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        title: str = "",
        *,
        numbers: Iterable[int] | int | None = None,
        faint: Container[int] = (),
        left_out: int = 0,
    ) -> None:
        self.columns, self.rows, self.title = tuple(columns), tuple(map(tuple, rows)), title
        self.faint, self.left_out = faint, left_out
        places = range(len(self.columns))
        numbers = filter(self._is_number, places) if numbers is None else numbers
        self.numbers = frozenset(places[numbers:] if isinstance(numbers, int) else numbers)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Table: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | Table:
        if isinstance(index, slice):
            return Table(self.columns, self.rows[index], self.title, numbers=self.numbers)
        return dict(zip(self.columns, self.rows[index], strict=True))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows, each as column -> cell."""
        return list(self)

    def column(self, name: str) -> list[Any]:
        """Return a column. Raises KeyError: an unknown name."""
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns)}")
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def csv(self) -> str:
        """Return CSV with all digits of numbers; texts that a spreadsheet would execute as formulas are marked."""
        return csv_text([self.columns, *self.rows], end="\n")

    def latex(self, comments: Iterable[str] = (), caption: str = "") -> str:
        """Return a table for the package booktabs, below ``comments``; with a ``caption`` it floats.

        A row of one cell is a heading; ``Latex`` cells are not escaped."""
        sides = "".join("r" if place in self.numbers else "l" for place in range(len(self.columns)))
        lines = [*(f"% {' '.join(comment.split())}" for comment in comments)]  # a line end in a name would leave the comment
        lines += [r"\begin{table}", r"\centering", rf"\caption{{{_latex(caption)}}}"] if caption else []
        lines += [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", rf"{' & '.join(map(_latex, self.columns))} \\"]
        if not any(len(row) == 1 for row in self.rows[:1]):
            lines.append(r"\midrule")
        for row in self.rows:
            if len(row) == 1:
                lines += [r"\midrule", rf"\multicolumn{{{len(sides)}}}{{l}}{{\emph{{{_latex(row[0])}}}}} \\"]
            else:
                lines.append(" & ".join(map(_latex, row)) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}", *([r"\end{table}"] if caption else [])]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        cells = [self.columns, *(tuple(map(_text, row)) for row in self.rows)]
        widths = [max(cell_len(row[place]) for row in cells) for place in range(len(self.columns))]
        lines = (
            "  ".join(_padded(row[place], width, place in self.numbers) for place, width in enumerate(widths)) for row in cells
        )
        return "\n".join(([self.title] if self.title else []) + [line.rstrip() for line in lines])

    def _repr_html_(self) -> str:
        sides = ("right" if place in self.numbers else "left" for place in range(len(self.columns)))
        aligned = [f' style="text-align:{side}"' for side in sides]
        head = "".join(f"<th{how}>{escape(name)}</th>" for name, how in zip(self.columns, aligned, strict=True))
        body = "".join(
            f"<tr>{''.join(f'<td{how}>{escape(_text(cell))}</td>' for cell, how in zip(row, aligned, strict=True))}</tr>"
            for row in self.rows
        )
        caption = f'<caption style="text-align:left">{escape(self.title)}</caption>' if self.title else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _is_number(self, place: int) -> bool:
        return bool(self.rows) and all(isinstance(row[place], int | float | None) for row in self.rows)


def fields(title: str, report: BaseModel | Mapping[str, Any], skip: Collection[str] = ()) -> Table:
    """Return the names and values of a report, except None."""
    values = report if isinstance(report, Mapping) else report.model_dump()
    rows = ((name.replace("_", " "), value) for name, value in values.items() if name not in skip and value is not None)
    return Table(("", ""), rows, title, numbers={1})


Parts = Iterator[str | Table]  # lines and tables of a report, for a terminal


class Latex(str):
    """A cell that is LaTeX already."""


class Remark(str):
    """A remark on a report, grey in a terminal."""


class Views(NamedTuple):
    """The views of a kind of report: its page, its lines and tables for a terminal, and its charts."""

    page: Callable[[Any], str]
    parts: Callable[[Any], Iterable[str | Table]]
    charts: Callable[[Any], Sequence[Chart]] | None = None


@final
class Shown(Generic[ReportType]):
    """A report with the page that its command writes; a notebook shows the page. Attributes of ``report`` are available here.

    >>> from sememekit.reports.table import Shown, Views
    >>> shown = Shown({"a": 1}, Views(lambda report: f"<p>{report['a']}</p>", lambda report: []))
    >>> shown.report, shown.html
    ({'a': 1}, '<p>1</p>')"""

    def __init__(self, report: ReportType, views: Views) -> None:
        self.report, self.views = report, views

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "report":
            raise AttributeError(name)
        return getattr(self.report, name)

    def __repr__(self) -> str:
        return f"{type(self.report).__name__}: .report has the figures, .html the page, .save(path) writes it"

    @property
    def html(self) -> str:
        """The self-contained page."""
        return self.views.page(self.report)

    def save(self, path: Path | str) -> None:
        """Write the page, replacing only an earlier page (ConfigError otherwise)."""
        write_output(Path(path), self.html.encode(), PAGE)

    def _repr_html_(self) -> str:
        return framed(self.html)


def framed(page: str) -> str:
    """Embed a whole page in another: its style stays inside, and its scripts do not run."""
    return f'<iframe srcdoc="{escape(page)}" sandbox="" style="width:100%;height:480px;border:0"></iframe>'


def _padded(cell: str, width: int, to_right: bool) -> str:
    """Pad a cell to the width of its column, with width 2 for Chinese characters."""
    blanks = " " * (width - cell_len(cell))
    return blanks + cell if to_right else cell + blanks


def _latex(cell: object) -> str:
    return cell if isinstance(cell, Latex) else "".join(_ESCAPES.get(letter, letter) for letter in format_value(cell))


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return "" if cell is None else str(cell)


def shown_rate(found: Interval | None, sign: str = "", *, unit: bool = True) -> str:
    """Format a rate with its interval: "52.0 % (45.1 to 58.9)"; "–" for none."""
    return "–" if found is None else percent_interval(found.value, found.low, found.high, sign=sign, unit=unit)


def share_bar(share: float, tick: float | None = None) -> str:
    """Draw a share as a bar of 1 to ``BAR_WIDTH`` characters, with a stroke at ``tick`` if given."""
    bar = "█" * round(share * BAR_WIDTH) or "▏"
    if tick is None:
        return bar
    place = min(round(tick * BAR_WIDTH), BAR_WIDTH - 1)
    return f"{bar[:place].ljust(place)}│{bar[place + 1 :]}"
