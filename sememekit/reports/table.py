"""A table on a page or in a terminal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A title, headings, and rows of cells; columns from ``numeric`` on hold numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: int = 1

    @property
    def numbers(self) -> range:
        return range(self.numeric, len(self.columns))
