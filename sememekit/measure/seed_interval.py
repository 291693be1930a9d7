"""The difference between two systems that were each trained with several seeds, with an interval over the seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sememekit.measure.intervals import Estimate


def seed_difference(first: Sequence[float], second: Sequence[float], confidence: float = 0.95) -> Estimate:
    """mean(second) - mean(first) with Student's interval for two samples of one variance.

    The seeds of the two systems are no pairs: a seed fixes the order of the data alike, but not the course of the training.
    With n and m seeds the interval is the difference +- t s sqrt(1/n + 1/m), where s is the pooled standard deviation and t the
    quantile of Student's distribution with n + m - 2 degrees of freedom. With one seed a side there is no variance to
    estimate, and the limits are NaN.

    Args:
        first, second: a value for each seed.
        confidence: probability of the interval, above 0 and below 1.
    """
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    value = float(two.mean() - one.mean())
    freedom = len(one) + len(two) - 2
    if freedom < 1:
        return Estimate(value, math.nan, math.nan)
    squares = float(((one - one.mean()) ** 2).sum() + ((two - two.mean()) ** 2).sum())
    error = math.sqrt(squares / freedom * (1 / len(one) + 1 / len(two)))
    half = student_quantile(0.5 + confidence / 2, freedom) * error
    return Estimate(value, value - half, value + half)


def seed_mean(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The mean over seeds with Student's interval for one sample, n - 1 degrees of freedom; with one seed the limits are NaN.

    Args:
        values: a value for each seed.
        confidence: probability of the interval, above 0 and below 1.
    """
    own = np.asarray(values, dtype=np.float64)
    value, freedom = float(own.mean()), len(own) - 1
    if freedom < 1:
        return Estimate(value, math.nan, math.nan)
    half = student_quantile(0.5 + confidence / 2, freedom) * float(own.std(ddof=1)) / math.sqrt(len(own))
    return Estimate(value, value - half, value + half)


def combined(sentences: Estimate, seeds: Estimate) -> Estimate:
    """A difference with an interval over the sentences of a text and over trainings.

    ``sentences`` holds the trained models fixed, and ``seeds`` the text, so that their errors are independent: on each side the
    distance d of the limit is sqrt(d_sentences^2 + d_seeds^2), the rule for the limits of a sum (method of variance estimates
    recovery, Zou and Donner 2008). Without limits where one of them has none.
    """
    value = sentences.value
    below, above = (math.hypot(*(abs(getattr(one, end) - one.value) for one in (sentences, seeds))) for end in ("low", "high"))
    return Estimate(value, value - below, value + above)


def student_quantile(probability: float, freedom: int) -> float:
    """The t with P(T <= t) = ``probability`` for Student's distribution, by bisection.

    Args:
        probability: at least 0.5 and below 1.
        freedom: degrees of freedom, at least 1.
    """
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
