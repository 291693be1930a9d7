"""Two or more sides of one comparison, each of several trainings: how figures are averaged, and values at an equal budget."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sememekit.measure.intervals import Interval


@dataclass(frozen=True)
class Scale:
    """Scale on which the values of a figure are averaged and compared.

    ``outer`` undoes ``inner``, of which means are taken, and ``change`` makes of the difference of two means what is shown.
    """

    figure: Literal["perplexity", "accuracy"]
    higher: bool
    inner: Callable[[float], float]
    outer: Callable[[float], float]
    change: Callable[[float], float]

    def mean(self, inner: Iterable[float]) -> float:
        """The mean of figures, given as inner values: geometric of perplexities."""
        return self.outer(statistics.fmean(inner))

    def shown(self, estimate: Interval) -> Interval:
        """A difference of inner values as it is shown."""
        return Interval(**{name: None if value is None else self.change(value) for name, value in estimate})


SCALES: Final = {
    "perplexity": Scale("perplexity", False, math.log, math.exp, math.expm1),
    "accuracy": Scale("accuracy", True, float, float, float),
}

Curve = Sequence[tuple[float, float]]
"""A validation figure by what was spent for it: updates or seconds, rising."""

_NEARLY: Final = 1.001
"""Budgets are alike to a thousandth."""


def at_equal_budget(sides: Sequence[Sequence[Curve]], higher: bool = False) -> tuple[float, list[list[float] | None]]:
    """The budget of the cheapest side, and the best figures of each side within it.

    The budget is what that side spent to its end, in the mean over its trainings, each of which counts to its own end;
    trainings of the others count within the budget (``best_within``). Curves have one point at least.
    """
    spent = [sum(curve[-1][0] for curve in side) / len(side) for side in sides]
    budget = min(spent)
    to_the_end = [own <= budget * _NEARLY for own in spent]
    return budget, [
        best_within(side, math.inf if whole else budget, higher) for side, whole in zip(sides, to_the_end, strict=True)
    ]


def best_within(side: Sequence[Curve], budget: float, higher: bool = False) -> list[float] | None:
    """The best figure of each training of a side within the budget and a thousandth; None where it had none by then.

    Args:
        higher: whether more is better.
    """
    reached = [[value for spent, value in curve if spent <= budget * _NEARLY] for curve in side]
    return [max(values) if higher else min(values) for values in reached] if all(reached) else None
