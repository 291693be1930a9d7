"""Sides of a comparison with several trainings each: averages, and values at an equal budget."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sememekit.measure.intervals import Interval


@dataclass(frozen=True)
class Scale:
    """Scale on which the values of a figure are averaged and compared.

    Means are taken of ``inner`` values; ``outer`` inverts it, and ``change`` converts a difference of means for display."""

    figure: Literal["perplexity", "accuracy"]
    higher: bool
    inner: Callable[[float], float]
    outer: Callable[[float], float]
    change: Callable[[float], float]

    def mean(self, inner: Iterable[float]) -> float:
        """Return the mean of figures from inner values (geometric for perplexities)."""
        return self.outer(statistics.fmean(inner))

    def shown(self, estimate: Interval) -> Interval:
        """Return the change to print for a difference of inner values."""
        return Interval(**{name: None if value is None else self.change(value) for name, value in estimate})


SCALES: Final = {
    "perplexity": Scale("perplexity", False, math.log, math.exp, math.expm1),
    "accuracy": Scale("accuracy", True, float, float, float),
}

Curve = Sequence[tuple[float, float]]
"""Validation figures by spent updates or seconds, rising."""

_NEARLY: Final = 1.001  # relative tolerance of equal budgets


def at_equal_budget(sides: Sequence[Sequence[Curve]], higher: bool = False) -> tuple[float, list[list[float] | None]]:
    """Return the budget of the cheapest side, and the best figures of each side within it.

    The budget is the mean total of that side's trainings, which count in full; trainings of other sides count within the budget
    (``best_within``). Curves have at least one point."""
    spent = [sum(curve[-1][0] for curve in side) / len(side) for side in sides]
    budget = min(spent)
    limits = [math.inf if own <= budget * _NEARLY else budget for own in spent]
    return budget, [best_within(side, limit, higher) for side, limit in zip(sides, limits, strict=True)]


def best_within(side: Sequence[Curve], budget: float, higher: bool = False) -> list[float] | None:
    """The best (``higher``: largest) figure of each training of a side within the budget plus 0.1 %; None if one is missing."""
    reached = [[value for spent, value in curve if spent <= budget * _NEARLY] for curve in side]
    return [max(values) if higher else min(values) for values in reached] if all(reached) else None
