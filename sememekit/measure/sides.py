"""Two or more sides of one comparison, each of several trainings: draws over seeds, and values at an equal budget."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Curve = Sequence[tuple[float, float]]
"""A validation figure by what was spent for it: updates or seconds, rising."""


def mean_over_drawn_seeds(draws: NDArray[np.float64], sides: Sequence[Sequence[int]], seed: int = 0) -> NDArray[np.float64]:
    """The mean of each side under resampling of sentences and of seeds, (resamples, number of sides).

    ``draws`` (resamples, c) are values of c trainings under common draws of the sentences, as of ``resampled_ratios``. In each
    draw every side takes as many of its own trainings as it has, with replacement; the seeds of two sides are no pairs. A side
    of one training keeps it, so that only the sentences are drawn.
    """
    generator = np.random.default_rng([seed, len(sides)])
    means = []
    for columns in sides:
        own = draws[:, list(columns)]
        taken = generator.integers(len(columns), size=own.shape)
        means.append(np.take_along_axis(own, taken, axis=1).mean(axis=1))
    return np.stack(means, axis=1)


def equal_budget(sides: Sequence[Sequence[Curve]]) -> float:
    """What the cheapest side spent to its end, in the mean over its trainings; curves have one point at least."""
    return min(sum(curve[-1][0] for curve in side) / len(side) for side in sides)


def best_within(side: Sequence[Curve], budget: float, higher: bool = False) -> list[float] | None:
    """The best figure of each training of a side within the budget, a thousandth over it included; None where a training had
    none by then.

    Args:
        higher: whether more is better.
    """
    reached = [[value for spent, value in curve if spent <= budget * 1.001] for curve in side]
    return [max(values) if higher else min(values) for values in reached] if all(reached) else None
