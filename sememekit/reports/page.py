"""Pages that need nothing else: one HTML file with its style inside, no scripts, no fonts or images from elsewhere.

Every function gives HTML; plain text goes in through ``text`` or ``word`` alone, so that nothing a person typed is markup.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_HAN: Final = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

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
    """Plain text, made harmless: markup is written out, and control characters, which HTML forbids, are replaced."""
    return html.escape(_CONTROLS.sub("\N{REPLACEMENT CHARACTER}", str(value)), quote=True)


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
        f'<meta name="generator" content="sememekit">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{text(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


@dataclass(frozen=True)
class Curve:
    """A named line of a chart: values at 1, 2, 3 and so on."""

    name: str
    values: tuple[float, ...]


_COLOURS: Final = ("var(--first)", "var(--second)")
_DASHES: Final = ("", "6 4")
_WIDTH, _HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 170, 16, 46


def line_chart(curves: Sequence[Curve], *, title: str, x: str, y: str) -> str:
    """One or two lines over 1, 2, 3 ... on a logarithmic axis, told apart by colour, dash and name at the end of each.

    Args:
        curves: with one finite positive value at least each.
        title: what the chart shows, for those who cannot see it.
        x, y: names of the axes.
    """
    values = [value for curve in curves for value in curve.values]
    marks = ticks(min(values), max(values))
    low, high = math.log(min(marks[0], *values)), math.log(max(marks[-1], *values))
    last = max(2, *(len(curve.values) for curve in curves))

    def across(position: float) -> float:
        return _LEFT + (position - 1) / (last - 1) * (_WIDTH - _LEFT - _RIGHT)

    def down(value: float) -> float:
        return _TOP + (high - math.log(value)) / ((high - low) or 1.0) * (_HEIGHT - _TOP - _BOTTOM)

    parts = []
    for tick in marks:
        height = down(tick)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{tick:,.0f}</text>')
    every = max(1, round(last / 10))
    for position in range(1, last + 1, every):
        place = f'x="{across(position):.1f}" y="{_HEIGHT - _BOTTOM + 20}"'
        parts.append(f'<text class="tick" {place} text-anchor="middle">{position}</text>')
    labels = _apart([down(curve.values[-1]) for curve in curves])
    for curve, label, colour, dash in zip(curves, labels, _COLOURS, _DASHES, strict=False):
        points = [(across(number), down(value)) for number, value in enumerate(curve.values, start=1)]
        line = " ".join(f"{right:.1f},{below:.1f}" for right, below in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.5"{dashed}/>')
        right, below = points[-1]
        parts.append(f'<circle cx="{right:.1f}" cy="{below:.1f}" r="3.5" fill="{colour}"/>')
        name = f"{text(curve.name)} {curve.values[-1]:,.0f}"
        parts.append(f'<text x="{right + 10:.1f}" y="{label + 4:.1f}" style="fill:{colour}">{name}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">{text(x)}</text>')
    parts.append(f'<text transform="translate(14 {_HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">{text(y)}</text>')
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{text(title)}">{"".join(parts)}</svg></figure>'
    )


def ticks(low: float, high: float) -> list[float]:
    """Round values around and between two positive numbers."""
    steps = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    candidates = [step * 10.0**power for power in powers for step in steps]
    first = max(index for index, value in enumerate(candidates) if value <= low)
    end = next((index for index, value in enumerate(candidates) if value >= high), len(candidates) - 1)
    return candidates[first : max(end, first + 1) + 1]


def _apart(heights: list[float]) -> list[float]:
    """Heights of labels moved so that two do not cover each other."""
    if len(heights) == 2 and abs(heights[0] - heights[1]) < 16:
        middle = sum(heights) / 2
        upper = heights[0] <= heights[1]
        return [middle - 8, middle + 8] if upper else [middle + 8, middle - 8]
    return heights
