"""Bootstrap intervals of ratios and their paired differences; Student's intervals of systems with several seeds.

Examples are drawn with replacement; numerator and denominator of an example are drawn together, and so are both sides of a
pair. A draw with denominator zero is left out. There is no interval if fewer than ``FEWEST_EXAMPLES`` have a denominator: draws
from few examples vary less than samples do.

Percentile intervals of few units are too narrow: the variance of draws is (n - 1) / n of the variance of samples, and they lack
the tails of Student's distribution. docs/evaluation.md has their coverage.

Intervals of shares and their differences that also hold at 0 and 100 %:

A share has Wilson's interval. A difference of two rates has the interval of Newcombe for paired proportions (Statistics in
Medicine 17, 1998, p. 2635, method 10): the Wilson limits of both, combined with the correlation of the two rates. Over the same
examples this correlation is the phi of the two-by-two table, shrunk towards zero by Newcombe's continuity correction. If the
sides have different denominators, it is the correlation of the two ratios by the delta method over their common examples: phi
if all examples are common, 0 if none is, as in Newcombe's interval for independent rates."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sememekit.config import Record

RESAMPLES: Final = 2000
FEWEST_EXAMPLES: Final = 10
_CELLS_AT_ONCE: Final = 2_000_000

Ratio = tuple[ArrayLike, ArrayLike]
"""Numerator and denominator of each of n examples, (n,) each."""


class Interval(Record):
    """A value and its 95 % interval; all None without a denominator, limits None for few examples."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def leaves_zero_out(self) -> bool | None:
        """Return whether zero is outside the interval; None without limits."""
        return None if self.low is None or self.high is None else self.low > 0 or self.high < 0


def interval(value: float, low: float = math.nan, high: float = math.nan) -> Interval:
    """A value with its limits, and None for NaN, which JSON does not have."""
    value_or_none, low_or_none, high_or_none = (None if math.isnan(one) else one for one in (value, low, high))
    return Interval(value=value_or_none, low=low_or_none, high=high_or_none)


def ratio_interval(numerator: ArrayLike, denominator: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """sum(numerator) / sum(denominator) over n examples, with its bootstrap interval."""
    columns = (np.reshape(side, (-1, 1)) for side in (numerator, denominator))
    values, draws = resampled_ratios(*columns, resamples=resamples, seed=seed)
    return from_draws(float(values[0]), draws[:, 0])


def ratio_difference_interval(first: Ratio, second: Ratio, *, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """The first ratio minus the second, both over the same n examples, with its paired bootstrap interval.

    Each side is a numerator and a denominator, (n,) each, with zeros for examples that do not count."""
    return ratio_difference_intervals([(first, second)], resamples=resamples, seed=seed)[0]


def ratio_difference_intervals(
    pairs: Sequence[tuple[Ratio, Ratio]], *, resamples: int = RESAMPLES, seed: int = 0
) -> list[Interval]:
    """``ratio_difference_interval`` of several pairs over the same n examples; the examples are drawn once for all pairs."""
    tops, bottoms = (np.stack([side[part] for pair in pairs for side in pair], axis=1) for part in (0, 1))
    values, draws = resampled_ratios(tops, bottoms, resamples=resamples, seed=seed)
    return [from_draws(float(values[k] - values[k + 1]), draws[:, k] - draws[:, k + 1]) for k in range(0, 2 * len(pairs), 2)]


def resampled_ratios(
    numerators: ArrayLike, denominators: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return c ratios over the same n examples, and (resamples, c) values of common draws, NaN for too few denominators.

    ``numerators`` and ``denominators`` are (n, c). Differences of columns of the draws are paired. ``from_draws`` makes an
    ``Interval`` of a value and its draws."""
    tops, bottoms = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    sums = _resampled_sums(np.concatenate([tops, bottoms], axis=1), resamples, seed)
    both = np.concatenate([sums, np.concatenate([tops.sum(axis=0), bottoms.sum(axis=0)])[None]])
    top, bottom = np.split(both, 2, axis=1)
    ratios = np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom != 0)
    ratios[:-1, np.count_nonzero(bottoms, axis=0) < FEWEST_EXAMPLES] = np.nan
    return ratios[-1], ratios[:-1]


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


def from_draws(value: float, draws: NDArray[np.float64]) -> Interval:
    """A value with the 95 % percentile interval of its draws."""
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return interval(value)
    low, high = np.quantile(draws, [0.025, 0.975])
    return interval(value, float(low), float(high))


def seed_difference(first: Sequence[float], second: Sequence[float]) -> Interval:
    """mean(second) - mean(first) with Student's 95 % interval for two samples of one variance.

    Seeds are not paired: equal seeds fix the same order of the data in both systems, but not the same course of training. With
    n and m seeds the interval is the difference +- t s sqrt(1/n + 1/m), where s is the pooled standard deviation and t the
    quantile of Student's distribution with n + m - 2 degrees of freedom. With one seed a side the limits are NaN."""
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    value = float(two.mean() - one.mean())
    freedom = len(one) + len(two) - 2
    if freedom < 1:
        return interval(value)
    squares = float(((one - one.mean()) ** 2).sum() + ((two - two.mean()) ** 2).sum())
    error = math.sqrt(squares / freedom * (1 / len(one) + 1 / len(two)))
    half = student_quantile(0.975, freedom) * error
    return interval(value, value - half, value + half)


def seed_mean(values: Sequence[float]) -> Interval:
    """The mean over seeds with Student's 95 % interval for one sample, n - 1 degrees of freedom; one seed has no limits."""
    own = np.asarray(values, dtype=np.float64)
    value, freedom = float(own.mean()), len(own) - 1
    if freedom < 1:
        return interval(value)
    half = student_quantile(0.975, freedom) * float(own.std(ddof=1)) / math.sqrt(len(own))
    return interval(value, value - half, value + half)


def combined(sentences: Interval, seeds: Interval) -> Interval:
    """A difference with an interval over the sentences of a text and over trainings.

    ``sentences`` varies with the models fixed, ``seeds`` with the text fixed, so their errors are independent: the distance of
    each limit is sqrt(d_sentences^2 + d_seeds^2), the rule for a sum (MOVER, Zou and Donner 2008). No limits without both."""
    value = sentences.value
    if value is None or sentences.low is None or seeds.low is None:
        return Interval(value=value)
    below, above = (math.hypot(*(abs(getattr(one, end) - one.value) for one in (sentences, seeds))) for end in ("low", "high"))
    return interval(value, value - below, value + above)


def student_quantile(probability: float, freedom: int) -> float:
    """Return t with P(T <= t) = ``probability`` (0.5 to below 1), T of Student's distribution with ``freedom`` degrees."""
    low, high = 0.0, 1.0
    while _student_central(high, freedom) < 2 * probability - 1:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_central(middle, freedom) < 2 * probability - 1 else (low, middle)
    return (low + high) / 2


def _student_central(t: float, freedom: int) -> float:
    """P(-t <= T <= t): the finite sums 26.7.3 and 26.7.4 of Abramowitz and Stegun, with a = arctan(t / sqrt(freedom))."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine, cosine) if odd else (1.0, 1.0)
    for step in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine**2 * (step - 1) / step
        total += term
    if odd:
        return 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))
    return sine * total


_NORMAL_95: Final = 1.959963984540054  # the 97.5 % point of the standard normal distribution


def wilson_interval(correct: int, total: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson 1927).

    With n = total, p = correct / n and z = 1.96: centre (p + z^2 / 2n) / (1 + z^2 / n), half width z / (1 + z^2 / n) sqrt(p (1
    - p) / n + z^2 / 4n^2). It never leaves [0, 1], and is valid for few errors. Raises ValueError for no trials."""
    if total < 1 or not 0 <= correct <= total:
        raise ValueError(f"{correct} of {total}")
    share, square = correct / total, _NORMAL_95**2
    scale = 1 + square / total
    centre = (share + square / (2 * total)) / scale
    half = _NORMAL_95 / scale * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    return (0.0 if correct == 0 else centre - half), (1.0 if correct == total else centre + half)


def rate(hits: np.ndarray, of: np.ndarray) -> Interval:
    """The share sum(hits) / sum(of) of two columns of zeros and ones, with Wilson's interval; hits lie within ``of``."""
    top, bottom = round(float(hits.sum())), round(float(of.sum()))
    if not bottom:
        return Interval(value=None)
    low, high = wilson_interval(top, bottom)
    return Interval(value=top / bottom, low=low, high=high)


def rate_difference(one: tuple[np.ndarray, np.ndarray], two: tuple[np.ndarray, np.ndarray]) -> Interval:
    """The first rate minus the second with its interval, see the module; a side has hits and divisor of the same n examples."""
    first, second = rate(*one), rate(*two)
    if first.value is None or second.value is None:
        return Interval(value=None)
    value = first.value - second.value
    rest = [hits - found.value * of for (hits, of), found in zip((one, two), (first, second), strict=True)]
    common = float((rest[0] * rest[1]).sum())  # (ad - bc) / n of the two by two table
    spread = math.sqrt(float((rest[0] ** 2).sum()) * float((rest[1] ** 2).sum()))
    corrected = common if common < 0 else max(common - 0.5, 0.0)
    correlation = corrected / spread if spread else 0.0

    def together(ours: float, theirs: float) -> float:
        return math.sqrt(max(ours**2 - 2 * correlation * ours * theirs + theirs**2, 0.0))

    low, high = ([getattr(found, name) or 0.0 for found in (first, second)] for name in ("low", "high"))
    return Interval(
        value=value,
        low=value - together(first.value - low[0], high[1] - second.value),
        high=value + together(high[0] - first.value, second.value - low[1]),
    )
