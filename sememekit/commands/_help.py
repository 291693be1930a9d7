"""Help pages on narrow terminals: the name of an option is never cut, however little room its help has."""

from __future__ import annotations

from collections.abc import Sequence

import typer.rich_utils
from rich.table import Table
from rich.text import Text

_NAME_COLUMNS = 4
"""typer gives an option's names as long, short, long negative and short negative, each in a column of its own."""
_OTHER_COLUMNS = 2
"""Behind them: its type and its help."""


def keep_names_whole() -> None:
    """Let typer draw its tables of options with all names of an option in one column, which keeps its width."""
    vars(typer.rich_utils)["Table"] = _OptionTable


class _OptionTable(Table):
    """A table that puts the names of an option below each other; other tables come out as they are."""

    def add_row(self, *cells: object, **options: object) -> None:
        before = len(cells) - _NAME_COLUMNS - _OTHER_COLUMNS  # the mark of a required option, where a table has one
        if before not in (0, 1):
            super().add_row(*cells, **options)  # type: ignore[arg-type]
            return
        names = _below_each_other(cells[before : before + _NAME_COLUMNS])
        super().add_row(*cells[:before], names, *cells[before + _NAME_COLUMNS :], **options)  # type: ignore[arg-type]
        self.columns[before].no_wrap = True


def _below_each_other(names: Sequence[object]) -> Text:
    pairs = ([name for name in pair if isinstance(name, Text) and name.plain] for pair in (names[:2], names[2:]))
    return Text("\n").join(Text(", ").join(pair) for pair in pairs if pair)
