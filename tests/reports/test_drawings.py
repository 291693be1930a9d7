"""Every chart of every report: its words and points, and where each part of it is drawn; ``drawings.txt`` has them.

The records come from ``samples``. After a change of a chart, write the file anew and read the difference:

    python -m tests.reports.test_drawings
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sememekit.analysis.compare_runs import RunsComparison, Side
from sememekit.measure.intervals import Interval
from sememekit.reports import analysis, attack, charts, explanation, metrics, perplexity, quickstart, run
from sememekit.reports.charts import Chart, Curves, Heatmap, Line
from tests.pinned import pin, pinned
from tests.reports.samples import drawn, filled, fresh

EXPECTED = Path(__file__).with_name("drawings.txt")

SHORT = Line("short", ((1.0, 300.0), (2.0, 150.0), (4.0, 75.0)))
LONG = Line("long", tuple((float(x), 3000.0 / x) for x in range(1, 1001)))
SHARES = Line("share", ((1.0, 0.0), (10.0, 0.25), (100.0, 0.5)), ((0.0, 0.1), (0.2, 0.4), (0.4, 0.75)))
FOUR = tuple(replace(SHORT, name=f"line {number}", points=((1.0, 300.0), (3.0, 70.0 + number))) for number in range(4))
KINDS: dict[str, Chart] = {
    "close": Curves("a title", "epoch", "perplexity", (SHORT,)),
    "far": Curves("a title", "epoch", "perplexity", (LONG,), x_scale="log"),
    "near eight": Curves("a title", "epoch", "perplexity", (Line("line", ((1.0, 8.0), (2.0, 64.0))),)),
    "quarters": Curves("a title", "epoch", "perplexity", (Line("line", ((1.0, 112.5), (2.0, 100.0))),)),
    "shares": Curves("a title", "cost", "share", (SHARES,), "percent", "log", show=".1%", steps=True),
    "shares of nothing": Curves("a title", "cost", "share", (Line("none", ((1.0, 0.0),)),), "percent", show=".1%"),
    "band": Curves("a title", "cost", "share", (replace(SHARES, name="plain"),), "percent", show=".1%"),
    "powers": Curves("a title", "value", "share", (SHARES,), "percent", "log", show_x=".1e", end_values=False),
    "four": Curves("a title", "epoch", "perplexity", FOUR),
    "narrow": Curves("a title", "epoch", "perplexity", FOUR, narrow=True),
    "narrow far": Curves("a title", "epoch", "perplexity", (LONG,), x_scale="log", narrow=True),
    "squares": Heatmap("a title", ("上海", "word", "a"), ("中国", "longer name"), ((0.1, 0.9, 0.0), (0.5, 0.25, 0.25))),
    "many squares": Heatmap("a title", tuple("abcdefghijklmno"), ("row",), ((0.5,) * 15,)),
    "no weight": Heatmap("a title", ("a",), ("b",), ((0.0,),)),
}


def number(value: float) -> str:
    return f"{value:.6g}"


def place(values: Any) -> str:
    return " ".join(number(float(value)) for value in values)


def drawing(shown: list[Chart]) -> Iterator[str]:
    """The parts of a figure with charts below one another: what is drawn, where, and in which colour."""
    with charts._style():
        figure, marks = charts._draw(shown)
        yield f"figure of {place(figure.get_size_inches() * figure.dpi)} points"
        for axes in figure.axes:
            yield f"axes at {place(axes.bbox.bounds)}, x {place(axes.get_xlim())}, y {place(axes.get_ylim())}"
            sides = [name for name, spine in axes.spines.items() if spine.get_visible()]
            yield f"frame {sides}, background {axes.patch.get_visible()}"
            yield from scale("x", axes.xaxis)
            yield from scale("y", axes.yaxis)
            yield from contents(axes)
        for mark in (*marks[:6], *marks[-1:]):
            yield f"value {place((mark.left, mark.top, mark.size))}: {mark.said}"
        yield f"{len(marks)} values"


def scale(name: str, axis: Any) -> Iterator[str]:
    low, high = sorted(axis.get_view_interval())
    ticks = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
    there = [f"{number(at)} {text.get_text()!r} {text.get_rotation():g}" for at, text in ticks if low <= at <= high]
    yield f"{name} {axis.get_scale()} {axis.get_label_text()!r}: {', '.join(there)}"
    yield f"  ticks {sorted(axis.get_tick_params().items())}, minor {place(axis.get_minorticklocs())}"


def contents(axes: Any) -> Iterator[str]:
    for line in axes.lines:
        points = line.get_xydata()
        yield f"{line.get_drawstyle()} line {line.get_linestyle()} {line.get_linewidth()} {line.get_color()}"
        yield f"  of {len(points)} points to {place(points[-1])}, mark {line.get_marker()} {line.get_markersize()}"
    for part in axes.collections:
        box = part.get_datalim(axes.transData).bounds
        yield f"area {place(box)}, width {place(part.get_linewidths())}"
        yield f"  opacity {place(part.get_facecolor()[:, 3])} of {place(part.get_facecolor()[0])}"
    for text in axes.texts:
        yield f"text {text.get_text()!r} at {place(text.xy)} {text.get_color()} {text.get_va()} {text.get_annotation_clip()}"


def data(shown: list[Any]) -> Iterator[str]:
    """The words and points of charts."""
    for one in shown:
        if isinstance(one, Heatmap):
            yield f"{one.title}: {one.columns} {one.rows}"
            yield from (place(row) for row in one.values)
            continue
        yield f"{one.title}: {one.x}, {one.y}, {one.scale} {one.x_scale} {one.show} {one.show_x} {one.steps} {one.end_values}"
        for line in one.lines:
            yield f"  {line.name}: {', '.join(place(point) for point in line.points[:20])}"
            yield f"    {len(line.points)} points, band {', '.join(place(limits) for limits in line.band[:20])}"


def scores() -> Any:
    """Rankings with two k, one of them without information."""
    found = drawn("explanation_scores")[0]
    rankings = [found.rankings[0].model_copy(update={"ranking": name, "top": top}) for name in metrics.DRAWN for top in (1, 5)]
    rankings[-1] = rankings[-1].model_copy(update={"information": Interval(value=None)})
    return found.model_copy(update={"rankings": tuple(rankings)})


def compared(figure: str) -> RunsComparison:
    curves = (((1.0, 2.0, 0.3), (2.0, 4.0, 0.4)), ((1.0, 3.0, 0.5), (2.0, 5.0, 0.8), (3.0, 6.0, 0.9)))
    sides = tuple(filled(Side, many=2, name=name, curves=curves[:many]) for name, many in (("folder/one", 1), ("a/b,a/c", 2)))
    return filled(RunsComparison, many=2, figure=figure, sides=sides)


def attacked() -> list[Curves]:
    results = drawn("attack")[0][1]
    return attack.charts({"all": results, "few": results[1:], "none": results[3:], "won": results[:1]})


CHARTS: dict[str, Callable[[], list[Any]]] = {
    "run": lambda: run.charts({"task": {"name": "language_model", "input_dropout": 0.5}}, drawn("run")[0]),
    "quickstart": lambda: quickstart.charts(drawn("quickstart")[0]),
    "scores": lambda: metrics.charts(scores()),
    "scores of one k": lambda: metrics.charts(drawn("explanation_scores")[0]),
    "attack": attacked,
    "analysis": lambda: analysis.charts(drawn("analysis")[0]),
    "perplexity": lambda: perplexity.curves(compared("perplexity")),
    "accuracy": lambda: perplexity.curves(compared("accuracy")),
    "written text": lambda: explanation.attention(drawn("written_explanation")[0]),
    "words": lambda: explanation.through_sememes(drawn("explanation")[0]),
}


def lines_of(name: str) -> list[str]:
    fresh()
    kind, _, rest = name.partition(": ")
    if kind == "drawn":
        return [*drawing([KINDS[one] for one in rest.split(", ")])]
    return [*data(CHARTS[rest]())]


NAMES = [*(f"drawn: {name}" for name in KINDS), "drawn: close, squares", *(f"data: {name}" for name in CHARTS)]


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_is_drawn_as_before(name: str) -> None:
    assert lines_of(name) == pinned(EXPECTED)[name], f"on purpose? then: python -m {__spec__.name}, and read the difference"


if __name__ == "__main__":
    pin(EXPECTED, NAMES, lines_of)
