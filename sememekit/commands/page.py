"""Pages that need nothing else: one HTML file with its style inside, no scripts, no fonts or images from elsewhere.

Every function gives HTML; plain text goes in through ``text`` or ``word`` alone, so that nothing a person typed is markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Final

_HAN: Final = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

_STYLE: Final = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2024; --faint: #5b636b; --line: #d8dce0; --first: #0b62c4;
  --second: #b1490b; --soft: #dbe9fa; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181b; --ink: #e6e9ec; --faint: #a3abb3; --line: #3a4047;
  --first: #6cb0ff; --second: #ff9d5c; --soft: #1d3a5c; } }
@media print { :root { --paper: #ffffff; --ink: #000000; --faint: #444444; --line: #bbbbbb; --first: #0b62c4; --second: #b1490b;
  --soft: #dbe9fa; } section, tr, svg { break-inside: avoid; } main { max-width: none; } }
* { box-sizing: border-box; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5; font-family: system-ui, -apple-system,
  "Segoe UI", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC",
  "WenQuanYi Micro Hei", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1.25rem 3rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .4rem; }
p { margin: .4rem 0; } .faint { color: var(--faint); } code { font-size: .92em; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
table.compact { width: auto; } .beside { display: flex; flex-wrap: wrap; gap: 0 2.5rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem 1.2rem .35rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--faint); font-weight: 600; } td.number, th.number { text-align: right; white-space: nowrap; }
tbody th { font-weight: 600; white-space: nowrap; }
.bar { display: inline-block; width: 7rem; height: .7rem; background: var(--soft); border-radius: 2px; overflow: hidden;
  vertical-align: baseline; }
.bar > span { display: block; height: 100%; background: var(--first); }
.bar.narrow { width: 4rem; } .bar.narrow > span { background: var(--second); }
.share { white-space: nowrap; }
.sense { margin: 0 0 .45rem; } .sense:last-child { margin-bottom: 0; }
ul.chips { display: inline; list-style: none; margin: 0; padding: 0; }
ul.chips li { display: inline-block; margin: .1rem .2rem .1rem 0; padding: 0 .45rem; border: 1px solid var(--line);
  border-radius: 1rem; white-space: nowrap; }
ul.chips b { font-weight: 600; font-size: .85em; color: var(--faint); }
.context span.unknown { text-decoration: underline wavy var(--second); }
figure { margin: 0; } svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 13px; }
svg .grid { stroke: var(--line); } svg .tick { fill: var(--faint); }
pre { background: var(--soft); padding: .7rem .9rem; border-radius: 4px; overflow-x: auto; }
"""


def text(value: object) -> str:
    """Plain text, made harmless."""
    return html.escape(str(value), quote=True)


def word(value: str, kind: str = "") -> str:
    """A word or a sentence, marked as Chinese for fonts and screen readers where it has such characters."""
    attributes = (f' class="{kind}"' if kind else "") + (' lang="zh-Hans"' if _HAN.search(value) else "")
    return f"<span{attributes}>{text(value)}</span>"


def bar(share: float, kind: str = "") -> str:
    """A bar for a share of 0 to 1. The number must stand beside it: screen readers skip the bar."""
    width = 100 * min(max(share, 0.0), 1.0)
    kinds = f"bar {kind}" if kind else "bar"
    return f'<span class="{kinds}" aria-hidden="true"><span style="width:{width:.1f}%"></span></span>'


def chips(values: Sequence[tuple[str, float]]) -> str:
    """Names with a value of 0 to 1 each; the higher the value, the further the chip is filled."""
    items = []
    for name, value in values:
        filled = f"{100 * min(max(value, 0.0), 1.0):.0f}%"
        style = f"background:linear-gradient(90deg,var(--soft) {filled},transparent {filled})"
        items.append(f'<li style="{style}">{word(name)} <b>{value:.2f}</b></li>')
    return f'<ul class="chips">{"".join(items)}</ul>'


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = (), compact: bool = False) -> str:
    """A table of cells that are HTML already; the first cell of a row names the row.

    Args:
        columns: headings, plain text.
        rows: as many cells as headings each.
        numbers: columns set flush right, from 0.
        compact: no wider than its cells, in place of the whole page.
    """

    def cell(tag: str, index: int, content: str, scope: str = "") -> str:
        kind = ' class="number"' if index in numbers else ""
        return f"<{tag}{kind}{scope}>{content}</{tag}>"

    head = "".join(cell("th", index, text(name), ' scope="col"') for index, name in enumerate(columns))
    body = "".join(
        "<tr>" + cell("th", 0, row[0], ' scope="row"') + "".join(cell("td", i, c) for i, c in enumerate(row[1:], 1)) + "</tr>"
        for row in rows
    )
    kind = ' class="compact"' if compact else ""
    return f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def document(title: str, body: str) -> str:
    """A whole page."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{text(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
