"""Every figure of every page, and of every table of a notebook, is the field of the record that its label names.

The records of ``samples`` have no number twice, so a figure tells which field it shows. ``figures.tsv`` has, for each page and
each label, the field that each figure must be; "computed" stands for a figure that no field has as it is. After a change of a
page, write the table anew and read the difference before it is accepted:

    python -m tests.reports.test_figures
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pydantic import BaseModel

from tests.reports.notebook_samples import shown
from tests.reports.samples import MAKERS, drawn

EXPECTED = Path(__file__).with_name("figures.tsv")
FIGURE = re.compile(r"(?<![\w.-])([-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?)(\s?%)?(?![\w])")
SKIPPED = ("style", "script", "svg", "title")
HEADINGS = ("h1", "h2", "h3", "h4", "caption", "summary")
BLOCKS = (*HEADINGS, "p", "li", "div", "table", "figcaption", "section", "details", "dt", "dd")
MADE_UP = re.compile(r"[^\x00-\x7f]+|Donau\w+|internationalization")
"""Text that the samples put in the place of names and words."""


class Texts(HTMLParser):
    """The texts of a page, each with its label: the last heading, and in a table the heads of the column and of the row."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._skipped, self._heading = 0, ""
        self._heads: list[str] = []
        self._row: list[tuple[str, str]] | None = None
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skipped += tag in SKIPPED
        if self._row is not None and tag not in ("tr", "td", "th"):
            self._text.append(" ")  # parts of a cell are apart on the screen
        elif tag in BLOCKS:
            self._end_text()
        if tag == "table":
            self._heads = []
        if tag == "tr":
            self._row = []

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in SKIPPED
        if tag in ("td", "th") and self._row is not None:
            self._row.append((tag, self._taken()))
        elif tag == "tr":
            self._end_row()
        elif self._row is not None:
            self._text.append(" ")
        elif tag in BLOCKS:
            text = self._end_text()
            self._heading = text if tag in HEADINGS else self._heading

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self._text.append(data)

    def _taken(self) -> str:
        text, self._text = " ".join("".join(self._text).split()), []
        return text

    def _end_text(self) -> str:
        text = self._taken()
        self.found += [(self._heading, text)] if text else []
        return text

    def _end_row(self) -> None:
        cells, self._row = self._row or [], None
        if cells and all(tag == "th" for tag, _ in cells):
            self._heads = [text for _, text in cells]
            return
        row = next((text for tag, text in cells if tag == "th"), "")
        for place, (_, text) in enumerate(cells):
            head = self._heads[place] if place < len(self._heads) else ""
            self.found.append((" / ".join(filter(None, (self._heading, row if text != row else "", head))), text))


def numbers_of(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of a record with the names of their fields; places in lists have none."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="python")
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, int | float):
        yield path, float(value)
    elif isinstance(value, dict):
        for name, one in value.items():
            own = name if re.fullmatch(r"[a-z_]+", str(name)) and not str(name).startswith("中") else "*"
            yield from numbers_of(one, f"{path}.{own}".strip("."))
    else:
        if isinstance(value, list | tuple):
            yield f"len({path})", float(len(value))
        for one in value:
            yield from numbers_of(one, path)


def shown_by(text: str, per_cent: bool, names: list[str], values: npt.NDArray[np.float64]) -> set[str]:
    """The fields whose number a text is, rounded as a page rounds: to the places that it has, a hundredfold, or as exp."""
    plain = text.replace(",", "").replace("−", "-").lower()
    mantissa, _, power = plain.partition("e")
    unit = 10.0 ** -len(mantissa.partition(".")[2]) * 10.0 ** int(power or 0)
    forms = [100 * values] if per_cent else [values, 100 * values, np.exp(np.minimum(values, 700.0))]
    near = [np.abs(np.abs(form) - abs(float(plain))) <= unit / 2 * 1.000001 for form in forms]
    return {names[place] for place in np.flatnonzero(np.any(near, axis=0))}


@cache
def in_notebooks() -> dict[str, tuple[Any, str]]:
    return shown()


def sample(page: str) -> tuple[Any, str]:
    """The records of a page, or of what a notebook shows, and the page."""
    return drawn(page) if page in MAKERS else in_notebooks()[page]


@cache
def possible_fields(page: str) -> dict[str, list[set[str]]]:
    """Each label of a page -> the fields that each of its figures can be, of which every occurrence of the label agrees."""
    records, html = sample(page)
    names, values = zip(*numbers_of(records), strict=True)
    parser = Texts()
    parser.feed(html)
    possible: dict[str, list[set[str]]] = {}
    for label, text in parser.found:
        figures = list(FIGURE.finditer(text))
        found = [shown_by(one[1], bool(one[2]), list(names), np.array(values)) for one in figures]
        name = f"{_without_names(label)}: {_without_names(text)[:80].strip()}"
        if found and len(known := possible.setdefault(name, found)) == len(found):
            possible[name] = [old & new for old, new in zip(known, found, strict=True)]
    return possible


def _without_names(text: str) -> str:
    """A text with # for each figure and ~ for each word of the samples, so that equal places have equal names."""
    named = MADE_UP.sub("~", FIGURE.sub("#", text))
    return re.sub(r"~[~#\d -]*[~#\d]", "~", re.sub(r"\s+", " ", named))


def expected() -> dict[str, dict[str, list[str]]]:
    """Page -> label -> the field of each figure, as the table has it."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in EXPECTED.read_text("utf-8").splitlines():
        page, label, fields = line.split("\t")
        found.setdefault(page, {})[label] = fields.split(" ")
    return found


def test_there_are_figures_of_each_page() -> None:
    assert expected().keys() == MAKERS.keys() | in_notebooks().keys(), "python -m tests.reports.test_figures"


@pytest.mark.parametrize("page", list(expected()))
def test_each_figure_is_the_field_that_its_label_names(page: str) -> None:
    stated, possible = expected()[page], possible_fields(page)
    assert stated.keys() == possible.keys(), "labels changed: python -m tests.reports.test_figures, then read the difference"
    for label, fields in stated.items():
        assert len(fields) == len(possible[label]), label
        for field, found in zip(fields, possible[label], strict=True):
            assert field in (found or {"computed"}) or field == "computed", f"{label}: {field} is not shown; {found} may be"


def test_few_figures_are_computed() -> None:
    fields = [field for page in expected().values() for label in page.values() for field in label]
    assert fields.count("computed") < 0.12 * len(fields)


def _guess(label: str, found: set[str]) -> str:
    """The field that shares most words with a label, then the one of the shortest path."""
    words = set(re.findall(r"[a-z]{3,}", label.lower()))
    return max(
        found, key=lambda path: (len(words & set(re.findall(r"[a-z]{3,}", path))), -path.count("."), path), default="computed"
    )


def _write() -> None:
    stated = expected() if EXPECTED.exists() else {}
    lines = []
    for page in (*MAKERS, *in_notebooks()):
        for label, possible in possible_fields(page).items():
            old = stated.get(page, {}).get(label, [])
            both = zip_longest(old[: len(possible)], possible, fillvalue="")
            fields = [one if one in {*found, "computed"} else _guess(label, found) for one, found in both]
            lines.append(f"{page}\t{label}\t{' '.join(fields)}\n")
    EXPECTED.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    _write()
