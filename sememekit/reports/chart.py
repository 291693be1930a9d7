"""A line chart over steps of training, as SVG for a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Final, Literal

from sememekit.reports.page import text, ticks


@dataclass(frozen=True)
class Line:
    """A named line through (x, y) points; of a single point only the dot is drawn."""

    name: str
    points: tuple[tuple[float, float], ...]


_COLOURS: Final = ("var(--first)", "var(--second)", "var(--ink)", "var(--faint)")
_DASHES: Final = ("", "7 4", "2 3", "10 3 2 3")
_WIDTH, _HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 210, 16, 46
_LABEL: Final = 17
"""Height of a label."""


def step_chart(lines: Sequence[Line], *, title: str, y: str, scale: Literal["log", "percent"] = "log") -> str:
    """One to four lines over training steps, told apart by colour, dash and the name at the end of each.

    Args:
        lines: with one point at least each; finite, and positive on the logarithmic scale.
        title: what the chart shows, for those who cannot see it.
        y: name of the vertical axis.
        scale: logarithmic, or percent from 0 for shares of 0 to 1.
    """
    values = [value for line in lines for _, value in line.points]
    marks = ticks(min(values), max(values)) if scale == "log" else _percents(max(values))
    bottom, top = _height(min(*marks, *values), scale), _height(max(*marks, *values), scale)
    last = max(1.0, *(step for line in lines for step, _ in line.points))

    def across(step: float) -> float:
        return _LEFT + step / last * (_WIDTH - _LEFT - _RIGHT)

    def down(value: float) -> float:
        return _TOP + (top - _height(value, scale)) / ((top - bottom) or 1.0) * (_HEIGHT - _TOP - _BOTTOM)

    parts = []
    for mark in marks:
        shown = f"{mark:,.0f}" if scale == "log" else f"{mark:.0%}"
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{down(mark):.1f}" y2="{down(mark):.1f}"/>'
            f'<text class="tick" x="{_LEFT - 8}" y="{down(mark) + 4:.1f}" text-anchor="end">{shown}</text>'
        )
    for quarter in range(5):
        step = last * quarter / 4
        place = f'x="{across(step):.1f}" y="{_HEIGHT - _BOTTOM + 20}"'
        parts.append(f'<text class="tick" {place} text-anchor="middle">{step:,.0f}</text>')
    labels = spread([down(line.points[-1][1]) for line in lines], _LABEL)
    for line, label, colour, dash in zip(lines, labels, _COLOURS, _DASHES, strict=False):
        points = [(across(step), down(value)) for step, value in line.points]
        path = " ".join(f"{right:.1f},{below:.1f}" for right, below in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.2"{dashed}/>')
        parts.append(f'<circle cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="3" fill="{colour}"/>')
        value = line.points[-1][1]
        end = f"{value:,.1f}" if scale == "log" else f"{value:.1%}"
        place = f'x="{_WIDTH - _RIGHT + 10}" y="{label + 4:.1f}"'
        parts.append(f'<text {place} style="fill:{colour}">{text(line.name)} {end}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">training step</text>')
    parts.append(f'<text transform="translate(14 {_HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">{text(y)}</text>')
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{text(title)}">{"".join(parts)}</svg></figure>'
    )


def spread(heights: Sequence[float], distance: float) -> list[float]:
    """Heights moved downwards as little as keeps any two ``distance`` apart, in the order that they had."""
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    moved, floor = list(heights), float("-inf")
    for index in order:
        moved[index] = max(heights[index], floor)
        floor = moved[index] + distance
    return moved


def _height(value: float, scale: str) -> float:
    return log(value) if scale == "log" else value


def _percents(highest: float) -> list[float]:
    step = next((step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25) if highest <= 5 * step), 0.25)
    count = max(1, -int(-highest // step))
    return [step * number for number in range(count + 1)]
