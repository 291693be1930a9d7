"""Self-contained HTML pages: style and script are inside.

Templates in ``templates/`` escape everything that is not markup."""

import json
import re
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sememekit.figures import formatted
from sememekit.files import PAGE, write_output
from sememekit.text.scripts import EAST_ASIAN

_ROW: Final = re.compile(r"<tr\b[^>]*>.*?</tr>", re.DOTALL)
_CELL: Final = re.compile(r"<t[dh](?=[ >])")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def render(template: str, **values: Any) -> str:
    """Return a whole page from a template and its values."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", _environment().get_template(f"{template}.html.j2").render(**values))


def remarks(kind: str, report: object, *more: object) -> list[str]:
    """Return the remarks on a report of a kind, a sentence each, from the macros of ``templates/remarks.txt.j2``."""
    macros = _environment().overlay(autoescape=False).get_template("remarks.txt.j2").module
    return [line for line in str(getattr(macros, kind)(report, *more)).split("\n") if line.strip()]


def markdown(template: str, **values: Any) -> str:
    """Return a page of Markdown from a template and its values; external text goes through ``plain`` or into cells."""
    environment = _environment().overlay(autoescape=False)
    environment.filters |= {"plain": plain, "json": partial(json.dumps, ensure_ascii=False), "repr": repr}
    environment.filters["cell"] = lambda value: str(value).replace("|", "\\|").replace("\n", " ")
    return environment.get_template(f"{template}.md.j2").render(**values).rstrip("\n") + "\n"


def plain(text: str) -> str:
    """Return external text as one line of plain Markdown text: no heading, link, table, code or HTML."""
    return re.sub(r"([\\`\[\]<>|])", r"\\\1", " ".join(text.split()))


def write_page(path: Path, page: str) -> None:
    """Write a page to the path of a command; it replaces only an earlier page."""
    write_output(path, page.encode(), PAGE)


def word(value: object, kind: str = "") -> Markup:
    """Return a word or sentence, marked as Chinese for fonts and screen readers if it has Chinese characters."""
    if isinstance(value, Markup):
        return value
    language = lang(value)
    shown = Markup(' class="{}"').format(kind) if kind else ""
    return Markup("<span{}{}>{}</span>").format(shown, language, value) if language or shown else Markup("{}").format(value)


def lang(value: object) -> Markup:
    """Return the language attribute for Chinese text, or nothing."""
    return Markup(' lang="zh-Hans"' if EAST_ASIAN.search(str(value)) else "")


def _labelled(rows: Markup, columns: Sequence[str]) -> Markup:
    """Return the rows of a table in which each cell but the first has the name of its column."""

    def row(found: re.Match[str]) -> str:
        names = iter(columns)

        def label(cell: re.Match[str]) -> str:
            name = next(names, "")
            return str(Markup('<td data-label="{}"').format(name)) if name and cell[0] == "<td" else cell[0]

        return _CELL.sub(label, found[0])

    return Markup(_ROW.sub(row, str(rows)))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"word": word, "lang": lang, "show": formatted, "labelled": _labelled}
    environment.filters["prefixed"] = lambda text, before: f"{before}{text}"
    return environment
