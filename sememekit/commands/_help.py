"""Help pages on narrow terminals, without cutting a name, type or word."""

import re
from typing import Final

import typer.rich_utils
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

_NAME_COLUMNS: Final = 4  # of typer: long, short, long negative and short negative names of an option
_OTHER_COLUMNS: Final = 2  # further columns: its type and its help
_TYPES: Final = {"path": "PATH", "Path": "PATH", "str": "TEXT", "int": "N", "int range": "N", "float": "X", "float range": "X"}


def draw_help() -> None:
    """Make typer draw options in two columns (names; type and help), and exit like the program if the pipe is closed."""
    vars(typer.rich_utils).update(Table=_OptionTable, Console=_HelpConsole)


class _HelpConsole(Console):
    def on_broken_pipe(self) -> None:
        """Override rich, which would leave with exit code 1."""
        raise BrokenPipeError


class _OptionTable(Table):
    """A table with the names of an option below each other, and its type after its help; other tables are unchanged."""

    def add_row(self, *cells: object, **options: object) -> None:
        before = len(cells) - _NAME_COLUMNS - _OTHER_COLUMNS  # the mark of a required option, where a table has one
        if before not in (0, 1):
            super().add_row(*cells, **options)  # type: ignore[arg-type]
            return
        pairs = (cells[before : before + 2], cells[before + 2 : before + _NAME_COLUMNS])
        given = ([name for name in pair if isinstance(name, Text) and name.plain] for pair in pairs)
        names = Text("\n").join(Text(", ").join(pair) for pair in given if pair)
        super().add_row(*cells[:before], names, _typed_help(*cells[-_OTHER_COLUMNS:]), **options)  # type: ignore[arg-type]
        self.columns[before].no_wrap = True


def _typed_help(kind: object, told: object) -> Text:
    """The help, its type in brackets, then the default from typer."""
    told, *more = [part for part in told.renderables if isinstance(part, Text)] if isinstance(told, Columns) else [Text()]
    name = _type_name(kind.plain) if isinstance(kind, Text) else ""
    types = [Text(f"[{name}]", style=typer.rich_utils.STYLE_TYPES)] if name else []
    # A default that is told and not given stands between round brackets there.
    return Text(" ").join([told, *types, *(Text(re.sub(r"\((.*)\)\]$", r"\1]", part.plain), part.style) for part in more)])


def _type_name(shown: str) -> str:
    """Return ``N >= 1`` for ``<int range> [x>=1]`` and ``1 <= N <= 20`` for ``[1<=x<=20]``, but ``N >= 0`` for a huge upper
    bound; metavars and choices stay; empty for a flag."""
    form = re.fullmatch(r"<(?:list\[)?(.+?)\]?>(?: \[(.+)\])?", " ".join(shown.split()))
    if form is None:
        return shown.strip()
    name, limit = form.groups()
    if name == "bool":
        return ""
    name = _TYPES.get(name, name)
    limit = re.sub(r"^(\d+)<=x<=\d{10,}$", r"x>=\1", limit or "x")
    return re.sub(r"([<>]=?)", r" \1 ", limit).replace("x", name)
