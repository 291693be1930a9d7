"""The reports of ``sememekit evaluate-ppl`` as lines and tables: of one run, of several, with an overlay, and of seeds."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from sememekit.analysis.evaluate_ppl import PerplexityReport
from sememekit.analysis.evaluate_seeds import SeedsReport
from sememekit.analysis.evaluate_several import ComparedWords, OverlayComparison, PerplexityComparison
from sememekit.figures import percent
from sememekit.measure.sides import SCALES
from sememekit.protocols.adaptation import AdaptationReport
from sememekit.reports.table import Remark, Table, fields

Parts = Iterator[str | Table]
SHOWN_POINTS: Final = 10
"""Rows of a grid that are printed; --json has all."""
_SKIPPED: Final = ("run", "split", "graph", "signature", "groups", "adaptation", "cut_sources")


def parts(report: PerplexityReport | PerplexityComparison | SeedsReport, names: Sequence[str] = ()) -> Parts:
    """Yield what a terminal shows of a report; ``names`` are those of the models, in the place of their numbers."""
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
            columns = ("words", "perplexity", "tokens", "share")
            yield Table(columns, rows, f"By {grouping} of the word", numbers=(1, 2, 3))
    yield f"signature: {report.signature}"


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
    yield Table(columns, rows, f"Perplexity of {report.run} on {report.split}", numbers=range(1, len(columns)))
    columns = ["words", "tokens", "share", *(f"seed {seed}" for seed in report.seeds), "geometric mean"]
    for grouping in reports[0].groups or {}:
        rows = []
        for first, *others in zip(*((one.groups or {})[grouping] for one in reports), strict=True):
            values = [one.perplexity for one in (first, *others)]
            known = [math.log(value) for value in values if value is not None]
            mean = SCALES["perplexity"].mean(known) if known else None
            rows.append((first.name, first.tokens, percent(first.share), *values, mean))
        yield Table(columns, rows, f"By {grouping} of the word", numbers=range(1, len(columns)))


def _comparison(report: PerplexityComparison, names: Sequence[str]) -> Parts:
    """One table: perplexities, and by how much each further model differs from the first; a row with a name is shown once."""
    models = [f"{one.run} ({', '.join(filter(None, (one.checkpoint, one.marginal)))})" for one in report.reports]
    if isinstance(report, OverlayComparison):
        for change in report.changes:
            yield f"{change.word}#{change.sense}: {' '.join(change.before)} -> {' '.join(change.after)}"
        models = [f"{models[0]} as trained", f"the same with {report.overlay}"]
    heads = list(names) or [str(number) for number in range(1, len(models) + 1)]
    yield from (f"{head}: {model}" for head, model in zip(heads, models, strict=True))
    columns = ["words", "tokens", "share", *heads]
    columns += [name for head in heads[1:] for name in (f"{head} - {heads[0]}", "in %", "from", "to")]
    rows = {row.name: (row.name, row.tokens, percent(row.share), *row.perplexities, *_changes(row)) for row in report.rows}
    yield Table(columns, rows.values(), f"Perplexity on {report.split}", numbers=range(1, len(columns)))
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
                yield Table((*columns.values(), "perplexity"), rows, title, numbers=range(len(columns) + 1))
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
