"""Shares of examples, and differences between two shares, with intervals that hold at 0 and 100 % as well.

A share has Wilson's interval. A difference of two rates has the interval of Newcombe for paired proportions (Statistics in
Medicine 17, 1998, p. 2635, method 10): the limits of Wilson, put together with the correlation of the two rates. Over the same
examples that correlation is the phi of the two by two table, drawn towards zero by Newcombe's continuity correction. Where each
side divides by examples of its own, it is that of the two ratios by the delta method, to which only the examples of both
contribute: phi where all are common, and 0 where none is, as in Newcombe's interval for independent rates.
"""

import math
from typing import Final

import numpy as np

from sememekit.measure.intervals import Interval

_NORMAL_95: Final = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""


def wilson_interval(correct: int, total: int) -> tuple[float, float]:
    """The 95 % score interval of a share (Wilson 1927): the shares p that correct / total does not refute.

    With n = total, p = correct / n and z = 1.96: centre (p + z^2 / 2n) / (1 + z^2 / n), half width z / (1 + z^2 / n) sqrt(p (1
    - p) / n + z^2 / 4n^2). It never leaves [0, 1], and is right for few errors, too. Raises ValueError for no trials.
    """
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
        return Interval(value=None, low=None, high=None)
    low, high = wilson_interval(top, bottom)
    return Interval(value=top / bottom, low=low, high=high)


def rate_difference(one: tuple[np.ndarray, np.ndarray], two: tuple[np.ndarray, np.ndarray]) -> Interval:
    """The first rate minus the second with its interval, see the module; a side is a column of hits and one of the
    divisor, both over the same n examples."""
    first, second = rate(*one), rate(*two)
    if first.value is None or second.value is None:
        return Interval(value=None, low=None, high=None)
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
