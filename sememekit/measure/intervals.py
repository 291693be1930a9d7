"""Bootstrap intervals of ratios of sums, and of paired differences between two such ratios.

Examples are drawn with replacement; numerator and denominator of an example are drawn together, and so are both sides of a
pair. A draw whose denominator is zero has no ratio and is left out. Where fewer than ``FEWEST_EXAMPLES`` have a denominator
there is no interval: draws of so few differ by less than samples do, and draws of one do not differ at all.

Percentile intervals of few units are too narrow: the variance of draws is (n - 1) / n of that of samples, and they lack the
tails of Student's distribution. Of the mean of n normal values they hold the true one in 90.4 % of samples of 10 in place of
95, in 92.1 of 15, 92.9 of 20, 93.6 of 30 and 94.2 of 50.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sememekit.config import Record

RESAMPLES: Final = 2000
FEWEST_EXAMPLES: Final = 10
_CELLS_AT_ONCE: Final = 2_000_000

Ratio = tuple[ArrayLike, ArrayLike]
"""Numerator and denominator of each of n examples, (n,) each."""


@dataclass(frozen=True)
class Estimate:
    """A value with its percentile interval; NaN where there is nothing to divide by, the limits also for few examples."""

    value: float
    low: float
    high: float


class Interval(Record):
    """A value and its 95 % interval; all None where there is nothing to divide by, the limits also for few examples."""

    value: float | None
    low: float | None
    high: float | None

    @property
    def leaves_zero_out(self) -> bool | None:
        """Whether zero is outside of it; None without limits."""
        return None if self.low is None or self.high is None else self.low > 0 or self.high < 0


def interval(estimate: Estimate) -> Interval:
    """The estimate with None for NaN, which JSON does not have."""
    values = (None if math.isnan(value) else value for value in (estimate.value, estimate.low, estimate.high))
    return Interval(**dict(zip(("value", "low", "high"), values, strict=True)))


def ratio_interval(numerator: ArrayLike, denominator: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> Estimate:
    """sum(numerator) / sum(denominator) over n examples, with its bootstrap interval."""
    top, bottom = _column(numerator), _column(denominator)
    values, draws = resampled_ratios(top[:, None], bottom[:, None], resamples=resamples, seed=seed)
    return from_draws(float(values[0]), draws[:, 0])


def ratio_difference_interval(
    first: Ratio,
    second: Ratio,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """The first ratio minus the second, both over the same n examples, with its paired bootstrap interval.

    Each side is a numerator and a denominator, (n,) each; an example that a side does not count has zeros there.
    """
    return ratio_difference_intervals([(first, second)], resamples=resamples, seed=seed)[0]


def ratio_difference_intervals(
    pairs: Sequence[tuple[Ratio, Ratio]], *, resamples: int = RESAMPLES, seed: int = 0
) -> list[Estimate]:
    """``ratio_difference_interval`` of several pairs over the same n examples, which are drawn once for all pairs."""
    tops, bottoms = (np.stack([_column(side[part]) for pair in pairs for side in pair], axis=1) for part in (0, 1))
    values, draws = resampled_ratios(tops, bottoms, resamples=resamples, seed=seed)
    return [from_draws(float(values[k] - values[k + 1]), draws[:, k] - draws[:, k + 1]) for k in range(0, 2 * len(pairs), 2)]


def resampled_ratios(
    numerators: ArrayLike, denominators: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Many ratios over the same n examples, with common draws: c values, and (resamples, c) of them under resampling, NaN where
    too few examples have a denominator.

    Differences of columns of the draws are paired. ``from_draws`` makes an ``Estimate`` of a value and its draws.

    Args:
        numerators, denominators: (n, c).
        resamples, seed: as ``ratio_interval``.
    """
    tops, bottoms = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    sums = _resampled_sums(np.concatenate([tops, bottoms], axis=1), resamples, seed)
    both = np.concatenate([sums, np.concatenate([tops.sum(axis=0), bottoms.sum(axis=0)])[None]])
    ratios = _ratios(both[:, : tops.shape[1]], both[:, tops.shape[1] :])
    ratios[:-1, np.count_nonzero(bottoms, axis=0) < FEWEST_EXAMPLES] = np.nan
    return ratios[-1], ratios[:-1]


def _column(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def _resampled_sums(columns: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """(resamples, k) sums of the columns (n, k) over n examples drawn with replacement."""
    n = len(columns)
    if not n:
        return np.zeros((resamples, columns.shape[1]))
    generator = np.random.default_rng(seed)
    at_once = max(1, _CELLS_AT_ONCE // n)
    parts = []
    for begin in range(0, resamples, at_once):
        times = generator.multinomial(n, np.full(n, 1.0 / n), size=min(at_once, resamples - begin))
        parts.append(times @ columns)
    return np.concatenate(parts)


def _ratios(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom != 0)


def from_draws(value: float, draws: NDArray[np.float64]) -> Estimate:
    """A value with the 95 % percentile interval of its draws."""
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return Estimate(value, math.nan, math.nan)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Estimate(value, float(low), float(high))
