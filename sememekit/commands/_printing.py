"""Results on stdout, human text on stderr."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import typer

from sememekit.figures import format_value
from sememekit.files import PAGE, check_output
from sememekit.signals import STOPPED

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from sememekit.reports.table import Shown, Table

_CONTROLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
_CONTROLS |= dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)
_ESCAPED = {code: f"\\u{code:04x}" for code in _CONTROLS}


def shown(text: str) -> str:
    """Return the text with control characters as visible signs (ESC as ``␛``), so that a terminal does not execute them.

    Line ends and tabs stay. C1 controls and direction marks become ``\N{REPLACEMENT CHARACTER}``."""
    return text.translate(_CONTROLS)


def say(*values: object, sep: str = " ", end: str = "\n", flush: bool = False) -> None:
    """Print a line of results on stdout; on a terminal control characters are visible signs."""
    line = sep.join(map(str, values))
    print(shown(line) if sys.stdout.isatty() else line, end=end, flush=flush)


def result_console() -> Console:
    """Return the console for results, created on demand since tests and shells replace ``sys.stdout``."""
    from rich.console import Console
    from rich.segment import Segment

    class Shown(Console):
        """A console that shows control characters of texts as signs."""

        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(shown(segment.text), segment.style)

        def on_broken_pipe(self) -> None:
            """Exit as for every closed pipe; rich would leave with exit code 1."""
            raise BrokenPipeError

    return Shown(file=sys.stdout, width=None if sys.stdout.isatty() else 160, highlight=False)  # 160 in a file or a pipe


def print_json(report: BaseModel, without: Any = None) -> None:
    """One JSON object on one line; ``without`` names fields that are left out, as pydantic's ``exclude`` does. Controls that
    JSON leaves as they are (DEL, C1, marks of direction) are escaped."""
    print(report.model_dump_json(exclude=without).translate(_ESCAPED))


def remark(text: str, quiet: bool) -> None:
    """Print one line for the user on stderr; a closed pipe does not end the command."""
    if not quiet:
        try:
            print(shown(text), file=sys.stderr, flush=True)
        except BrokenPipeError:
            leave_the_pipe(sys.stderr)


def leave_stopped(advice: str) -> NoReturn:
    """Exit with the code of a command that a signal stopped, and print how to go on."""
    remark(f"stopped by a signal; {advice}", quiet=False)
    raise typer.Exit(STOPPED)


def use_utf8_in_pipes() -> None:
    """Use UTF-8 in files and pipes under any locale; a terminal keeps its encoding, with ``?`` for missing characters."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:  # names of files that are not UTF-8 are results as they are, and escaped in messages
                stream.reconfigure(encoding="utf-8", errors="surrogateescape" if stream is sys.stdout else "backslashreplace")


def open_closed_streams() -> None:
    """Open stdin, stdout and stderr if the parent closed them; otherwise the next opened file would take their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115  # open to the end
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def leave_the_pipe(stream: TextIO) -> int:
    """Redirect a stream with a closed pipe to nothing, so that the interpreter's last flush does not fail."""
    with suppress(io.UnsupportedOperation):  # it is no real file, as in a test
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return 0


def hint(text: str, quiet: bool) -> None:
    """Print the command to type next, only on a terminal."""
    if sys.stderr.isatty():
        remark(text, quiet)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    numeric: int | Container[int] = 1,
    faint: Container[int] = (),
    names: bool = False,
) -> None:
    """Print a table on stdout. Columns from ``numeric`` on (or listed in it) are numbers, flush right; rows in ``faint`` are
    grey. ``names``: the first column has names to type, which are never broken."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    title = escape(shown(title))
    console = result_console()
    if title:  # above the table and not in it, where it would be folded to the width of the columns
        console.print(title, style="italic", soft_wrap=True)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_header=any(columns))
    right = range(numeric, len(columns)) if isinstance(numeric, int) else numeric
    for index, column in enumerate(columns):
        whole = names and not index
        table.add_column(escape(shown(column)), justify="right" if index in right else "left", overflow="fold", no_wrap=whole)
    for number, row in enumerate(rows):
        table.add_row(*(escape(shown(format_value(value))) for value in row), style="bright_black" if number in faint else "")
    console.print(table)


def print_parts(parts: Iterable[str | Table]) -> None:
    """Print the lines and tables of a report, with remarks in grey."""
    from sememekit.reports.table import Remark, Table

    for part in parts:
        if isinstance(part, Table):
            print_table(part.title, part.columns, part.rows, part.numbers, part.faint)
            if part.left_out:
                print_parts([Remark(f"{part.left_out:,} more have smaller changes: --json has them all")])
        elif isinstance(part, Remark):
            from rich.markup import escape

            result_console().print(escape(part), style="dim", soft_wrap=True)
        else:
            say(part)


def check_outputs(page: Path | None, figure: Path | None = None) -> None:
    """Refuse output files that cannot be written, before anything is computed."""
    check_output(page, PAGE)
    if figure is not None:
        from sememekit.reports.charts import check_figure

        check_figure(figure)


def give_out(shown: Shown[Any], page: Path | None, figure: Path | None, *, json: bool, quiet: bool) -> None:
    """Write the requested page and figure, and print the report."""
    if page is not None:
        shown.save(page)
        remark(f"page: {page}", quiet)
    if shown.views.charts is not None and figure is not None:
        from sememekit.reports.charts import write_figure

        write_figure(shown.views.charts(shown.report), figure)
        remark(f"figure: {figure}", quiet)
    print_json(shown.report) if json else print_parts(shown.views.parts(shown.report))


def print_fields(title: str, report: BaseModel | Mapping[str, Any], skip: Sequence[str] = ()) -> None:
    """A report as a list of names and values."""
    from sememekit.reports.table import fields

    print_parts([fields(title, report, skip)])


def remark_faults(report: dict[str, Any], quiet: bool) -> None:
    """Print the faults of the text and how they were handled, if there were any."""
    faults = {name: count for name, count in report.items() if isinstance(count, int) and count}
    if too_long := faults.pop("long_sentences", 0):
        remark(f"left out: {too_long:,} sentences above --max-length", quiet)
    if marked := faults.pop("end_marks", 0):
        remark(f"marks of ends of sentences, such as <eos>, taken off {marked:,} lines, as ends are read anyway", quiet)
    if long_lines := faults.pop("long_lines", 0):
        remark(f"lines above 1 MiB, read in pieces: {long_lines:,}", quiet)
    if faults:
        remark(f"faults in the text, handled by --errors {report['policy']}: {format_value(faults)}", quiet)
