"""The verdict on a claim by a fixed rule."""

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from pydantic import Field

from sememekit.claims.claims import PaperClaim
from sememekit.claims.results import Point, RunResult, UpdateTimes
from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.measure.intervals import Interval, seed_difference, seed_mean
from sememekit.measure.sides import SCALES, at_equal_budget

Verdict = Literal["holds", "holds in direction", "inconclusive", "contradicted", "equal", "undecided", "differs", "not run"]

VERDICTS: Final[Mapping[Verdict, str]] = {
    "holds": "the 95 % interval over seeds lies on the paper's side, and the effect is at least half of the published one",
    "holds in direction": "the interval lies on the paper's side; the effect is less than half of the published one",
    "inconclusive": "the interval includes no effect, or one seed of each model gives none",
    "contradicted": "the interval lies on the other side",
    "equal": "claim of equality: the interval lies within the margin of the claim",
    "undecided": "claim of equality: the interval reaches beyond the margin",
    "differs": "claim of equality: the interval lies beyond the margin",
    "not run": "a model was not trained, or there is no protocol of this size",
}
"""Verdict -> its meaning. An effect is the relative difference of the two geometric means of a metric over seeds."""


Standing = Literal["control", "none", "inconclusive"]
STANDINGS: Final[Mapping[Standing, str]] = {
    "control": "The control alone is better than nothing",
    "none": "This is no control, since it is worse than nothing",
    "inconclusive": "It is inconclusive whether the control does anything",
}
"""The standing of a control -> its meaning, by its effect against the arm ``without``."""


class Control(Record):
    """The effect of the control of a claim alone."""

    without: str
    """The arm with neither the control nor the annotation that the claim is about."""
    standing: Standing
    """The standing of the control by its effect."""
    effect: tuple[float, float | None, float | None]
    """Relative difference of the control from ``without``, with its interval."""
    effect_of_other: tuple[float, float | None, float | None]
    """Relative difference of the other model from ``without``, with its interval."""


class ClaimResult(Record):
    """A claim with its verdict."""

    name: str
    statement: str
    source: str
    metric: str
    note: str = ""
    """name, statement, source, metric, note: copied from the claim."""
    paper: str = ""
    """Authors, year and title; empty for a claim of none of the five papers."""
    verdict: Verdict
    why: str = ""
    """For "not run", the reason."""
    tiny: bool = False
    """True if the trials were tiny, which decides nothing."""
    seeds: tuple[int, int] = (0, 0)
    """Number of seeds of (baseline, other)."""
    means: tuple[float, float] | None = None
    """Geometric means of the metric on test, (baseline, other)."""
    effect: tuple[float, float | None, float | None] | None = None
    """Relative difference of ``other`` from ``baseline``, with its interval; -0.04 is 4 % lower."""
    published: float | None = None
    """The relative difference in the paper."""
    untrained: bool = False
    """True if the baseline needs no training, so that no updates are timed."""
    cost: float | None = None
    """CPU time of an update, ``other`` / ``baseline``; None if not measured."""
    cost_after_cut: float | None = None
    """The cost after the first rate cut; None if equal to ``cost`` or not measured."""
    at_equal_time: tuple[float, float | None, float | None] | None = None
    """Relative difference on validation after equal CPU time (the mean total time of the faster model)."""
    verdict_at_equal_time: Verdict = "not run"
    """The verdict by ``at_equal_time``."""
    cpu_minutes: float = 0.0
    """CPU time of training both models with all seeds."""
    also: dict[str, tuple[str, str]] = Field(default_factory=dict)
    """Further settings in which the models differ (``PaperClaim.also``), with the values of (baseline, other)."""
    control: Control | None = None
    """The effect of the baseline alone, if it is a control and the third arm has results."""


def judge(
    name: str,
    claim: PaperClaim,
    baseline: Sequence[RunResult],
    other: Sequence[RunResult],
    times: Sequence[UpdateTimes | None] = (),
    higher: bool = False,
    paper: str = "",
    without: Sequence[RunResult] = (),
) -> ClaimResult:
    """Compare the measurements with the paper's statement.

    ``baseline`` and ``other`` are the results of its two models; either may be empty. ``times`` are the interleaved timings in
    the order of ``timing_names``: of both models, and of ``baseline`` and ``claim.after_cut``; None if not measured.
    ``higher``: whether a higher validation metric is better. ``without`` are the results of ``claim.without``. Raises
    DataError: other data or measurements, or no value."""
    published = claim.published and claim.published[1] / claim.published[0] - 1
    said = claim.model_dump(include={"statement", "source", "metric", "note"})
    result = ClaimResult(name=name, verdict="not run", published=published, paper=paper, **said)
    if claim.small is None:
        return result.model_copy(update={"why": claim.why_not})
    if not baseline or not other:
        missing = [arm for arm, results in zip(claim.small, (baseline, other), strict=True) if not results]
        return result.model_copy(update={"why": f"no run of {' and '.join(missing)}"})
    if unlike := [run for run in (*baseline[1:], *other, *without) if run.signature != baseline[0].signature]:
        first, second = baseline[0], unlike[0]
        raise DataError(
            f"claim {name}: results {first.trial} and {second.trial} were not measured on the same data in the same way "
            f"({first.signature!r} and {second.signature!r}); delete the files of the older ones, and the data and runs beside "
            f"them, and type: sememekit reproduce run {name}"
        )
    places = claim.baseline_value or claim.value, claim.value, claim.without_value or claim.value
    *values, alone = (
        [run.value(path) / (run.value(claim.over) if claim.over else 1.0) for run in side]
        for side, path in zip((baseline, other, without), places, strict=True)
    )
    if any(value <= 0 for side in (*values, alone) for value in side):
        found = " and ".join(", ".join(f"{value:g}" for value in side) for side in values)
        return result.model_copy(update={"why": f"{claim.metric} is {found}: of values that are not above 0 there is no ratio"})
    # a baseline that needs no training is measured beside each run: the seeds pair it with that run
    ratios = [math.log(second / first) for first, second in zip(*values, strict=bool(claim.baseline_value))]
    effect = seed_mean(ratios) if claim.baseline_value else _log_ratio(*values)
    ratios_of_cost = [time.ratio if time else None for time in times] or [None]
    # after a cut the other arm costs what the baseline does, where that is not timed
    costs = ratios_of_cost[0], 1.0 if claim.after_cut and len(times) == 1 else ratios_of_cost[-1]
    timed = _at_equal_time(baseline, other, costs, higher) if claim.validated else None
    means = tuple(math.exp(sum(math.log(value) for value in side) / len(side)) for side in values)
    curves = {(run.seed, run.curve) for run in (*baseline, *other)}  # arms that are measured in two ways share a training
    cpu = sum(curve[-1].cpu_seconds for _, curve in curves if curve)
    return result.model_copy(
        update={
            "verdict": _verdict(effect, claim),
            "tiny": any(run.tiny for run in (*baseline, *other)),
            "seeds": (len(baseline), len(other)),
            "means": means,
            "effect": _relative(effect),
            "untrained": bool(claim.baseline_value),
            "cost": costs[0],
            "cost_after_cut": costs[1] if claim.after_cut else None,
            "at_equal_time": timed and _relative(timed),
            "verdict_at_equal_time": _verdict(timed, claim) if timed else "not run",
            "cpu_minutes": cpu / 60,
            "control": _control(claim, alone, *values) if alone else None,
        }
    )


def _control(claim: PaperClaim, alone: Sequence[float], baseline: Sequence[float], other: Sequence[float]) -> Control:
    """Return the standing of the control ``baseline`` beside the values of ``claim.without``."""
    of_control, of_other = (_log_ratio(alone, side) for side in (baseline, other))
    verdict = _verdict(of_control, claim)
    standing: Standing = "none" if verdict == "contradicted" else "inconclusive" if verdict == "inconclusive" else "control"
    effects = _relative(of_control), _relative(of_other)
    return Control(without=claim.without, standing=standing, effect=effects[0], effect_of_other=effects[1])


def _log_ratio(baseline: Sequence[float], other: Sequence[float]) -> Interval:
    """The difference of the mean logarithms of values above 0."""
    first, second = ([math.log(value) for value in side] for side in (baseline, other))
    return seed_difference(first, second)


def _verdict(effect: Interval, claim: PaperClaim) -> Verdict:
    if effect.value is None or effect.low is None or effect.high is None:
        return "undecided" if claim.better == "equal" else "inconclusive"
    value, low, high = (math.expm1(one) for one in (effect.value, effect.low, effect.high))
    if claim.better == "equal":
        if -claim.margin <= low and high <= claim.margin:
            return "equal"
        return "differs" if low > claim.margin or high < -claim.margin else "undecided"
    sign = -1 if claim.better == "lower" else 1
    least, most = sorted((sign * low, sign * high))
    if most < 0:
        return "contradicted"
    if least <= 0:
        return "inconclusive"
    published = abs(claim.published[1] / claim.published[0] - 1) if claim.published else 0.0
    return "holds" if sign * value >= published / 2 else "holds in direction"


Costs = tuple[float | None, float | None]  # CPU time of an update, ``other`` / ``baseline``, before and after the first cut


def _at_equal_time(baseline: Sequence[RunResult], other: Sequence[RunResult], costs: Costs, higher: bool) -> Interval | None:
    """Return the difference of the best validation within the CPU time of the faster model; None if a training has none."""
    sides = ((baseline, (1.0, 1.0)), (other, costs))
    curves = [[_spent(run.curve, cost) for run in side] for side, cost in sides]
    if not all(curve for side in curves for curve in side):
        return None
    _, (first, second) = at_equal_budget(curves, higher)
    return None if first is None or second is None else _log_ratio(first, second)


def _spent(curve: Sequence[Point], costs: Costs) -> list[tuple[float, float]]:
    """Return validation after each epoch by the time spent, in updates of the baseline; empty if unknown."""
    (before, after), spent, steps, found = costs, 0.0, 0, []
    for point in curve:
        cost = before if before == after or point.rate == curve[0].rate else after
        if cost is None or (before != after and point.rate is None):
            return []
        spent += cost * (point.step - steps)
        steps = point.step
        found.append((spent, point.valid))
    return found


def _relative(estimate: Interval) -> tuple[float, float | None, float | None]:
    shown = SCALES["perplexity"].shown(estimate)
    return shown.value or 0.0, shown.low, shown.high
