"""The picture of docs/results/growing.md: perplexity against the softmax by the size of the training text.

Write it anew after a size was run, and read the difference:

    python -m tests.docs.test_curve_chart
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "pictures" / "growing-curve.svg"
TITLE = "Perplexity against the softmax by training tokens"
LINES = {
    ("sdlm-hownet", "1 to 9"): ("HowNet, words trained 1 to 9 times", "#2b8a3e", ""),
    ("sdlm-random", "1 to 9"): ("random labels, the same words", "#697586", ""),
    ("sdlm-hownet", "any"): ("HowNet, all words", "#2b8a3e", "6 4"),
    ("sdlm-random", "any"): ("random labels, all words", "#697586", "6 4"),
}
"""Model and band of training counts -> label, colour and dashes of a line."""
LEFT, RIGHT, TOP, BOTTOM, LEGEND = 60, 660, 60, 300, 330
SMALL = 'font-size="12" fill="#52606d"'


def effects() -> dict[tuple[str, str], dict[int, float]]:
    """(model, band) -> training tokens -> difference to the softmax in per cent, of geometric means over seeds."""
    found: dict[str, Any] = json.loads((ROOT / "docs/results/growing/curve.json").read_text(encoding="utf-8"))

    def mean(cell: str, band: str) -> float:
        runs = [run if band == "any" else run["bands"][band] for run in found[cell].values()]
        return sum(math.log(run["perplexity"]) for run in runs) / len(runs)

    sizes = sorted({int(cell.split()[0]) for cell in found})
    return {
        (model, band): {n: 100 * math.expm1(mean(f"{n} {model}", band) - mean(f"{n} softmax", band)) for n in sizes}
        for model, band in LINES
    }


def chart() -> str:
    """The picture as SVG: a line for each model and band, sizes on a logarithmic axis."""
    lines = effects()
    sizes, values = sorted(next(iter(lines.values()))), [value for line in lines.values() for value in line.values()]
    low, high = 5 * math.floor(min(*values, 0) / 5), 5 * math.ceil(max(*values, 0) / 5)

    def x(size: int) -> float:
        return LEFT + (RIGHT - LEFT) * math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])

    def y(value: float) -> float:
        return TOP + (BOTTOM - TOP) * (high - value) / (high - low)

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 690 400" role="img" font-family="system-ui, sans-serif"'
        ' font-size="14">',
        f"  <title>{TITLE}, in per cent</title>",
        '  <rect width="690" height="400" rx="8" fill="#ffffff"/>',
        f'  <text x="16" y="26" font-weight="600" fill="#1f2933">{TITLE}, %</text>',
        f'  <text x="16" y="45" {SMALL}>below 0 is better than the softmax</text>',
    ]
    for tick in range(int(low), int(high) + 1, 5):
        shade = "#52606d" if tick == 0 else "#dde3ea"
        parts.append(f'  <path d="M{LEFT} {y(tick):.1f}H{RIGHT}" stroke="{shade}"/>')
        parts.append(f'  <text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end" {SMALL}>{tick}</text>')
    parts += [f'  <text x="{x(n):.1f}" y="{BOTTOM + 18}" text-anchor="middle" {SMALL}>{n:,}</text>' for n in sizes]
    for place, (key, (label, colour, dashes)) in enumerate(LINES.items()):
        points = " ".join(f"{x(n):.1f},{y(value):.1f}" for n, value in lines[key].items())
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        stroke = f'fill="none" stroke="{colour}" stroke-width="3"{dash}'
        parts.append(f'  <polyline points="{points}" {stroke}/>')
        left, top = LEFT + 310 * (place % 2), LEGEND + 14 + 24 * (place // 2)
        parts.append(f'  <path d="M{left} {top - 5}h36" {stroke}/>')
        parts.append(f'  <text x="{left + 46}" y="{top}" fill="#1f2933">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])


def test_the_picture_shows_the_results_of_today() -> None:
    assert PICTURE.read_text(encoding="utf-8") == chart(), "python -m tests.docs.test_curve_chart"
    assert f"![{TITLE}, in per cent](../pictures/{PICTURE.name})" in (ROOT / "docs/results/growing.md").read_text("utf-8")


if __name__ == "__main__":
    PICTURE.write_text(chart(), encoding="utf-8")
