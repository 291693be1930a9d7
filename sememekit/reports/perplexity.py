"""The reports of ``sememekit evaluate-ppl`` and ``compare``: lines and tables, also as CSV and LaTeX, and learning curves."""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal

from sememekit.analysis.compare_runs import RunsComparison, Side, SideMeasure
from sememekit.analysis.evaluate import SeedsReport
from sememekit.analysis.evaluate_ppl import ComparedWords, OverlayComparison, PerplexityComparison, PerplexityReport
from sememekit.errors import ConfigError
from sememekit.figures import percent, percent_limits
from sememekit.files import Kind
from sememekit.measure.sides import SCALES
from sememekit.protocols.adaptation import AdaptationReport
from sememekit.reports.charts import Curves, Line, chart
from sememekit.reports.pages import render
from sememekit.reports.table import Latex, Parts, Remark, Table, fields

SHOWN_POINTS: Final = 10  # most printed rows of a grid; --json has all
_SKIPPED: Final = ("run", "split", "graph", "signature", "groups", "adaptation", "cut_sources")


def parts(report: PerplexityReport | PerplexityComparison | SeedsReport, names: Sequence[str] = ()) -> Parts:
    """Yield the parts of a report for a terminal; ``names`` replace the numbers of the models."""
    if isinstance(report, PerplexityComparison):
        yield from _comparison(report, names)
    elif isinstance(report, SeedsReport):
        yield from _seeds(report)
    else:
        yield fields(f"Perplexity of {report.run} on {report.split}", report, _SKIPPED)
        if report.adaptation is not None:
            yield from _adaptation(report.adaptation)
        for grouping, groups in (report.groups or {}).items():
            rows = [(group.name, group.perplexity, group.tokens, percent(group.share)) for group in groups]
            yield Table(("words", "perplexity", "tokens", "share"), rows, _title(grouping), numbers=1)
    if not isinstance(report, PerplexityReport) and (unigram := getattr(report.reports[0], "unigram", None)) is not None:
        yield f"unigram model of the training text: perplexity {unigram:,.2f}"
    yield f"signature: {report.signature}"


def words_table(report: Any, names: Sequence[str] = (), parameters: Sequence[int] = ()) -> Table:
    """Return the perplexities of kinds of words as a table for a paper, by grouping; last the ``parameters`` of each model."""
    found = [one for one in parts(report, names) if isinstance(one, Table) and one.columns[0] == "words"]
    rows = [row for one in found for row in ((one.title,), *one.rows)] if len(found) > 1 else [*found[0].rows]
    empty = [""] * (len(found[0].columns) - 3 - len(parameters))
    rows += [("parameters", "", "", *parameters, *empty)] if parameters else []
    return Table(found[0].columns, rows, numbers=found[0].numbers)


def _title(grouping: str) -> str:
    return "By labels of the sentence" if grouping == "labels" else f"By {grouping} of the word"


def _seeds(report: SeedsReport) -> Parts:
    reports = [PerplexityReport.model_validate(one) for one in report.reports]
    adapted = [one.adaptation.static_perplexity for one in reports if one.adaptation is not None]
    columns = ["seed", "perplexity", "tokens", "checkpoint", *(["perplexity as trained"] if adapted else [])]
    rows: list[Sequence[object]] = [
        (str(seed), one.perplexity, one.tokens, one.checkpoint, *adapted[place : place + 1])
        for place, (seed, one) in enumerate(zip(report.seeds, reports, strict=True))
    ]
    figure, empty = report.figures["perplexity"], [""] * (len(columns) - 2)
    rows += [("geometric mean", figure.mean, *empty), ("sd", figure.sd, *empty)]
    yield Table(columns, rows, f"Perplexity of {report.run} on {report.split}", numbers=1)
    columns = ["words", "tokens", "share", *(f"seed {seed}" for seed in report.seeds), "geometric mean"]
    for grouping in reports[0].groups or {}:
        rows = []
        for first, *others in zip(*((one.groups or {})[grouping] for one in reports), strict=True):
            values = [one.perplexity for one in (first, *others)]
            known = [math.log(value) for value in values if value is not None]
            mean = SCALES["perplexity"].mean(known) if known else None
            rows.append((first.name, first.tokens, percent(first.share), *values, mean))
        yield Table(columns, rows, _title(grouping), numbers=1)


def _comparison(report: PerplexityComparison, names: Sequence[str]) -> Parts:
    """Return a table of perplexities and differences from the first model; a row with a name is shown once."""
    models = [f"{one.run} ({', '.join(filter(None, (one.checkpoint, one.marginal)))})" for one in report.reports]
    if isinstance(report, OverlayComparison):
        for change in report.changes:
            yield f"{change.word}#{change.sense}: {' '.join(change.before)} -> {' '.join(change.after)}"
        models = [f"{models[0]} as trained", f"the same with {report.overlay}"]
    heads = list(names) or [str(number) for number in range(1, len(models) + 1)]
    yield from (f"{head}: {model}" for head, model in zip(heads, models, strict=True))
    columns = ["words", "tokens", "share", *heads]
    columns += [name for head in heads[1:] for name in (f"{head} - {heads[0]}", "in %", "95 % from", "to")]
    rows = {row.name: (row.name, row.tokens, percent(row.share), *row.perplexities, *_changes(row)) for row in report.rows}
    yield Table(columns, rows.values(), f"Perplexity on {report.split}", numbers=1)
    drawn = f"{report.resamples:,} paired draws of {report.units:,} {report.unit}"
    yield f"intervals: 95 %, {drawn}; the variation between trainings (seeds) is not in them"


def _changes(row: ComparedWords) -> Iterator[object]:
    for change in row.changes:
        yield change.perplexity
        for value in (change.relative.value, change.relative.low, change.relative.high):
            yield percent(value, 2, "+", unit=False)


def _adaptation(report: AdaptationReport) -> Parts:
    if (tuning := report.tuning) is not None:
        where = f"{tuning.tokens:,} tokens of {tuning.split}, {tuning.static_perplexity:,.2f} as trained"
        grids: Iterable[tuple[str, Any, dict[str, str]]] = (
            ("Dynamic evaluation", tuning.dynamic, {"rate": "rate", "decay": "decay (lambda)", "epsilon": "epsilon"}),
            ("Cache", tuning.cache, {"theta": "theta", "weight": "lambda", "window": "window"}),
        )
        for name, points, columns in grids:
            if points is not None:
                rows = [(*(getattr(one.settings, key) for key in columns), one.perplexity) for one in points[:SHOWN_POINTS]]
                best = f"the best {SHOWN_POINTS} of " if len(points) > SHOWN_POINTS else ""
                title = f"{name}: {best}{len(points)} settings on {where}"
                yield Table((*columns.values(), "perplexity"), rows, title, numbers=0)
        if tuning.at_the_edge:
            edges = ", ".join(tuning.at_the_edge)
            yield Remark(f"the best value is at the edge of the grid: {edges}; values outside of it may be better")
    settings = {"cache": report.cache, "dynamic": report.dynamic, "the same in krause scaling": report.exact}
    named = {name: None if one is None else one.model_dump() for name, one in settings.items()}
    figures = {
        "perplexity as trained": report.static_perplexity,
        **named,
        "batches of the statistics": report.statistics_batches,
    }
    yield fields("Learned while reading", figures)


_UNITS: Final = {"perplexity": "sentences", "accuracy": "examples"}  # units of bootstrap draws
CSV: Final = Kind("a table that compare wrote", lambda head: head.startswith(b"measure,budget,side,seeds,"))
LATEX: Final = Kind("a LaTeX table that sememekit wrote", lambda head: head.startswith(b"% sememekit "))
WORDS_CSV: Final = Kind("a table that evaluate-ppl wrote", lambda head: head.startswith(b"words,"))

MOST_LINES: Final = 4  # most sides of a chart


def columns(report: RunsComparison) -> tuple[str, ...]:
    """The heads of ``rows``; a change of an accuracy is its difference in points."""
    figures = ("perplexity", "sd", "change in %", "over sentences")
    if report.figure == "accuracy":
        figures = ("accuracy in %", "sd", "change in points", "over examples")
    return ("", "model", "seeds", *figures, "over seeds", "over both")


def _measures(report: RunsComparison) -> Iterator[tuple[int, int, Side, SideMeasure]]:
    """Yield each measure of each side, with the numbers of both."""
    for number in range(len(report.sides[0].measures)):
        for place, side in enumerate(report.sides):
            yield number, place, side, side.measures[number]


def runs_parts(report: RunsComparison) -> Parts:
    """Yield the sides, the table, and the meaning of its intervals."""
    for number, side in enumerate(report.sides, start=1):
        yield f"{number}: {side.name}" if len(side.runs) == 1 else f"{number}: {side.name} ({len(side.runs)} seeds)"
    yield Table(columns(report), rows(report), numbers=2)
    drawn = f"{report.resamples:,} draws of {report.units:,} {report.unit}"
    if report.figure == "accuracy":
        drawn += ", of two single runs Newcombe's"
    yield f"changes are from 1; intervals: 95 %, {drawn}"
    yield "over seeds: Student's distribution; over both: the two together, as independent errors"
    yield f"signature: {report.signature}"


def runs_page(report: RunsComparison) -> str:
    """Return a page: the first measure as a sentence, charts of validation (for few enough models), the table."""
    heads, found = columns(report), rows(report)[: len(report.sides)]
    told = [f"{row[1].partition(': ')[2]} {row[3]}" for row in found]
    told[1:] = (
        f"{one} ({row[5]} {heads[5][10:]}; 95 % {heads[6]}: {row[6]})" for one, row in zip(told[1:], found[1:], strict=True)
    )
    drawn = [chart(one) for one in curves(report)] if len(found) <= MOST_LINES else []
    lead = f"{report.figure.capitalize()} on {found[0][0]}: {', '.join(told)}."
    return render("parts", title="Models compared", lead=lead, charts=drawn, parts=list(runs_parts(report)))


def rows(report: RunsComparison) -> list[tuple[str, ...]]:
    """Return a formatted row for each measure of each side."""
    found: list[tuple[str, ...]] = []
    for number, place, side, measure in _measures(report):
        title = "" if place else title_of(report, number)
        name, seeds = f"{place + 1}: {_short(side.name)}", str(len(side.runs))
        row = (title, name, seeds, *_figures(report, measure, "none by then"))
        if measure.difference is None:
            found.append((*row, "", "", "", ""))
        else:
            intervals = (measure.difference.sentences, measure.difference.seeds, measure.difference.both)
            limits = ("–" if one is None else percent_limits(one.low, one.high, 2, "+") for one in intervals)
            found.append((*row, _change(measure.difference.seeds.value), *limits))
    return found


def title_of(report: RunsComparison, number: int) -> str:
    """Return the title of a measure, with its budget."""
    measure = report.sides[0].measures[number]
    if measure.budget is None:
        return f"{report.split} {measure.measure}"
    digits = ",.0f" if number == 1 or measure.budget >= 10 else ".2g"
    return f"{measure.measure} ({measure.budget:{digits}} {'updates' if number == 1 else 's'})"


def _figures(report: RunsComparison, measure: SideMeasure, nothing: str) -> tuple[str, str]:
    """Return the mean (or ``nothing``) and the standard deviation."""

    def shown(value: float) -> str:
        if report.figure == "accuracy":
            return percent(value, 2, unit=False)
        return f"{value:,.2f}" if value < 1e9 else f"{value:.4g}"

    return nothing if measure.mean is None else shown(measure.mean), "" if measure.sd is None else shown(measure.sd)


def _change(share: float | None) -> str:
    return percent(share, 2, "+", unit=False)


def csv_text(report: RunsComparison) -> str:
    """One line for each measure of each side, with all digits; shares, not per cent."""
    plural = {"perplexity": "perplexities", "accuracy": "accuracies"}[report.figure]
    limits = (f"{over}_{end}" for over in (_UNITS[report.figure], "seeds", "both") for end in ("low", "high"))
    table = []
    for _, _, side, one in _measures(report):
        name = f"{report.split} {one.measure}" if one.budget is None else one.measure
        found = one.difference
        parts = (None, None, None) if found is None else (found.sentences, found.seeds, found.both)
        seeds, values = " ".join(map(str, side.seeds)), " ".join(map(repr, one.values))
        figures = (one.mean, one.sd, None if found is None else found.seeds.value)
        ends = (limit for part in parts for limit in ((None, None) if part is None else (part.low, part.high)))
        table.append((name, one.budget, side.name, seeds, values, *figures, *ends))
    return Table(("measure", "budget", "side", "seeds", plural, "mean", "sd", "difference", *limits), table).csv()


def latex_text(report: RunsComparison) -> str:
    """A table for the package booktabs. A comment names the source of each interval: sentences and seeds if both are known,
    seeds if no text was scored, sentences for single runs."""
    titles = [title_of(report, number) for number in range(len(report.sides[0].measures))]
    over = [_over(report, number) for number in range(len(titles))]
    comments = [
        f"sememekit compare {' '.join(side.name for side in report.sides)}",
        f"signature: {report.signature}",
        *report.remarks,
        *(f"{title}: interval over {words}" for title, (words, _) in zip(titles, over, strict=True)),
    ]
    table: list[tuple[str, ...]] = []
    for number, place, side, measure in _measures(report):
        table += [] if place else [(titles[number],)]
        value, sd = _figures(report, measure, "--")
        cells = [side.name, str(len(side.runs)), Latex(rf"{value} $\pm$ {sd}" if sd else value), "", ""]
        if (found := measure.difference) is not None:
            limits = getattr(found, over[number][1])
            cells[3] = Latex("--" if found.seeds.value is None else f"${_change(found.seeds.value)}$")
            cells[4] = Latex("--" if limits.low is None else f"$[{_change(limits.low)}, {_change(limits.high)}]$")
        table.append(tuple(cells))
    heads = ("model", "seeds", columns(report)[3], columns(report)[5], Latex(r"95\,\% interval"))
    return Table(heads, table, numbers=1).latex(comments)


def _over(report: RunsComparison, number: int) -> tuple[str, Literal["sentences", "seeds", "both"]]:
    """Return the source of variation of a measure's interval, in words and as the attribute of a difference."""
    differences = [side.measures[number].difference for side in report.sides[1:]]
    if all(len(side.runs) == 1 for side in report.sides) and all(found and found.sentences for found in differences):
        return f"{_UNITS[report.figure]}; no side has two seeds", "sentences"
    if all(found and found.both and found.both.low is not None for found in differences):
        return f"{_UNITS[report.figure]} and seeds", "both"
    return "seeds", "seeds"


def curves(report: RunsComparison) -> list[Curves]:
    """Return charts of validation by updates and by time, a line for each side: the mean over its seeds, up to the shortest.
    Raises ConfigError: too many sides for a chart."""
    if len(report.sides) > MOST_LINES:
        raise ConfigError(
            f"--figure: a chart has {MOST_LINES} lines at most, and there are {len(report.sides)} models; leave some out"
        )
    y_scale: Literal["log", "percent"] = "log"
    name, show = "perplexity (log scale)", ",.1f"
    if report.figure == "accuracy":
        name, y_scale, show = "accuracy", "percent", ".1%"
    axes = (("training step", "Validation by updates"), ("seconds of training, CPU", "Validation by time"))
    charts = []
    for place, (axis, title) in enumerate(axes):
        lines = tuple(Line(_short(side.name), _mean_line(report, side, place)) for side in report.sides)
        told = "; ".join(f"{line.name} ends at {format(line.points[-1][1], show)}" for line in lines)
        charts.append(Curves(f"{title}: {told}", axis, name, lines, scale=y_scale, show=show))
    return charts


def _mean_line(report: RunsComparison, side: Side, place: int) -> tuple[tuple[float, float], ...]:
    scale, epochs = SCALES[report.figure], zip(*side.curves, strict=False)
    return tuple(
        (statistics.fmean(point[place] for point in epoch), scale.mean(scale.inner(point[2]) for point in epoch))
        for epoch in epochs
    )


def _short(name: str) -> str:
    """Return the last part of a path (of the first of several), cut to fit into a table or beside a chart."""
    first, comma, _ = name.partition(",")
    last = first.rstrip("/").rpartition("/")[2] or name
    last += ", ..." if comma else ""
    return last if len(last) <= 20 else f"{last[:19]}…"
