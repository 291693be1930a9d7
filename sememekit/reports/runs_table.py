"""The comparison of trained models as rows for a terminal, as CSV, as a LaTeX table, and as learning curves."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Sequence
from typing import Final, Literal

from sememekit.analysis.compare_runs import RunsComparison, Side
from sememekit.analysis.scored_runs import ACCURACY, PERPLEXITY, Scale
from sememekit.errors import ConfigError
from sememekit.figures import percent, percent_limits
from sememekit.files import Kind
from sememekit.measure.intervals import Interval
from sememekit.reports.charts import Curves, Line

_PLURAL: Final = {"perplexity": "perplexities", "accuracy": "accuracies"}
_UNITS: Final = {"perplexity": "sentences", "accuracy": "examples"}
"""What the draws behind an interval are of."""
CSV: Final = Kind("a table that compare wrote", lambda head: head.startswith(b"measure,budget,side,seeds,"))
LATEX: Final = Kind("a LaTeX table that compare wrote", lambda head: head.startswith(b"% sememekit compare"))

MOST_LINES: Final = 4
"""Sides that a chart can tell apart."""


def columns(report: RunsComparison) -> tuple[str, ...]:
    """The heads of ``rows``; a change of an accuracy is its difference in points."""
    figures = ("perplexity", "sd", "change in %", "over sentences")
    if report.figure == "accuracy":
        figures = ("accuracy in %", "sd", "change in points", "over examples")
    return ("", "model", "seeds", *figures, "over seeds", "over both")


def rows(report: RunsComparison) -> list[tuple[str, ...]]:
    """A row for each measure of each side, as a person reads it."""
    found = []
    for number in range(len(report.sides[0].measures)):
        for place, side in enumerate(report.sides, start=1):
            measure = side.measures[number]
            difference = measure.difference
            intervals = [] if difference is None else [difference.sentences, difference.seeds, difference.both]
            found.append(
                (
                    title_of(report, number) if side is report.sides[0] else "",
                    f"{place}: {_short(side.name)}",
                    str(len(side.runs)),
                    _figure(measure.mean, report.figure),
                    "" if measure.sd is None else _figure(measure.sd, report.figure),
                    "" if difference is None else _change(difference.seeds.value),
                    *([_limits(one) for one in intervals] or ["", "", ""]),
                )
            )
    return found


def title_of(report: RunsComparison, number: int) -> str:
    """What a measure is, with its budget."""
    measure = report.sides[0].measures[number]
    if measure.budget is None:
        return f"{report.split} {measure.measure}"
    unit = "updates" if number == 1 else "s"
    return f"{measure.measure} ({measure.budget:,.0f} {unit})"


def _figure(value: float | None, figure: str) -> str:
    if value is None:
        return "–"
    if figure == "accuracy":
        return percent(value, 2, unit=False)
    return f"{value:,.2f}" if value < 1e9 else f"{value:.4g}"


def _change(share: float | None) -> str:
    return percent(share, 2, "+", unit=False)


def _limits(found: Interval | None) -> str:
    return "–" if found is None else percent_limits(found.low, found.high, 2, "+")


def csv_text(report: RunsComparison) -> str:
    """One line for each measure of each side, with all digits; shares, not per cent."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    unit = _UNITS[report.figure]
    writer.writerow(
        [
            *("measure", "budget", "side", "seeds", _PLURAL[report.figure], "mean", "sd", "difference"),
            *(f"{over}_{end}" for over in (unit, "seeds", "both") for end in ("low", "high")),
        ]
    )
    for number in range(len(report.sides[0].measures)):
        for side in report.sides:
            one = side.measures[number]
            name = f"{report.split} {one.measure}" if one.budget is None else one.measure
            found = one.difference
            parts = (None, None, None) if found is None else (found.sentences, found.seeds, found.both)
            limits = [limit for part in parts for limit in ((None, None) if part is None else (part.low, part.high))]
            writer.writerow(
                [
                    *(name, one.budget, _cell(side.name), " ".join(map(str, side.seeds)), " ".join(map(repr, one.values))),
                    *(one.mean, one.sd, None if found is None else found.seeds.value, *limits),
                ]
            )
    return stream.getvalue()


def latex_text(report: RunsComparison) -> str:
    """A table for the package booktabs. A remark says what the interval of each measure is over: sentences and seeds where both
    are known, seeds where no text was scored, and sentences where there is one run a side."""
    comments = [
        f"sememekit compare {' '.join(side.name for side in report.sides)}",
        f"signature: {report.signature}",
        *report.remarks,
        *(f"{title_of(report, number)}: interval over {_over(report, number)[0]}" for number in _numbers(report)),
    ]
    lines = [
        *(f"% {' '.join(remark.split())}" for remark in comments),  # a line end in a name would leave the comment
        r"\begin{tabular}{lrrrr}",
        r"\toprule",
        rf"model & seeds & {_escaped(columns(report)[3])} & {_escaped(columns(report)[5])} & 95\,\% interval \\",
    ]
    for number in _numbers(report):
        title = _escaped(title_of(report, number))
        lines += [r"\midrule", rf"\multicolumn{{5}}{{l}}{{\emph{{{title}}}}} \\"]
        lines += [_latex_row(report, side, number) for side in report.sides]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _cell(name: str) -> str:
    """A name as a spreadsheet takes it: one that begins like a formula is text."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@")) else name


def _numbers(report: RunsComparison) -> range:
    return range(len(report.sides[0].measures))


def _over(report: RunsComparison, number: int) -> tuple[str, Literal["sentences", "seeds", "both"]]:
    """What the interval of a measure is over, in words and as the attribute of a difference."""
    differences = [side.measures[number].difference for side in report.sides[1:]]
    if all(len(side.runs) == 1 for side in report.sides) and all(found and found.sentences for found in differences):
        return f"{_UNITS[report.figure]}; no side has two seeds", "sentences"
    if all(found and found.both and found.both.low is not None for found in differences):
        return f"{_UNITS[report.figure]} and seeds", "both"
    return "seeds", "seeds"


def _latex_row(report: RunsComparison, side: Side, number: int) -> str:
    measure = side.measures[number]
    value = "--" if measure.mean is None else _figure(measure.mean, report.figure)
    value += "" if measure.sd is None else rf" $\pm$ {_figure(measure.sd, report.figure)}"
    cells = [_escaped(side.name), str(len(side.runs)), value, "", ""]
    if (found := measure.difference) is not None:
        limits = getattr(found, _over(report, number)[1])
        cells[3] = "--" if found.seeds.value is None else f"${_change(found.seeds.value)}$"
        cells[4] = "--" if limits.low is None else f"$[{_change(limits.low)}, {_change(limits.high)}]$"
    return " & ".join(cells) + r" \\"


_ESCAPES: Final = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


def curves(report: RunsComparison) -> list[Curves]:
    """Validation by updates and by time, a line for each side: the mean over its seeds, as far as all of them went.

    Raises:
        ConfigError: more sides than a chart can tell apart.
    """
    if len(report.sides) > MOST_LINES:
        raise ConfigError(
            f"--figure: a chart has {MOST_LINES} lines at most, and there are {len(report.sides)} models; leave some out"
        )
    seconds = f"seconds of training, {'CPU' if report.time == 'CPU' else 'wall'}"
    y_scale: Literal["log", "percent"] = "log"
    scale, name, show = PERPLEXITY, "perplexity (log scale)", ",.1f"
    if report.figure == "accuracy":
        scale, name, y_scale, show = ACCURACY, "accuracy", "percent", ".1%"
    charts = []
    for place, axis, title in ((0, "training step", "Validation by updates"), (1, seconds, "Validation by time")):
        lines = tuple(Line(_short(side.name), _mean_line(side.curves, place, scale)) for side in report.sides)
        told = "; ".join(f"{line.name} ends at {format(line.points[-1][1], show)}" for line in lines)
        charts.append(Curves(f"{title}: {told}", axis, name, lines, scale=y_scale, show=show))
    return charts


def _mean_line(
    runs: Sequence[Sequence[tuple[float, float, float]]], place: int, scale: Scale
) -> tuple[tuple[float, float], ...]:
    points = []
    for epoch in range(min(len(run) for run in runs)):
        across = statistics.fmean(run[epoch][place] for run in runs)
        points.append((across, scale.outer(statistics.fmean(scale.inner(run[epoch][2]) for run in runs))))
    return tuple(points)


def _short(name: str) -> str:
    """The last part of a path, the first of several, which has to fit into a table or beside a chart."""
    first, comma, _ = name.partition(",")
    last = first.rstrip("/").rpartition("/")[2] or name
    last += ", ..." if comma else ""
    return last if len(last) <= 20 else f"{last[:19]}…"
