"""Shares of examples and their differences: intervals that hold, near 0 and 100 % too."""

from __future__ import annotations

import numpy as np
import pytest

from sememekit.measure.intervals import rate_difference, wilson_interval


def test_the_interval_holds_what_the_share_does_not_refute() -> None:
    """At both ends p, (share - p) / sqrt(p (1 - p) / n) is 1.96 in absolute value."""
    for correct, total in ((81, 263), (1, 29), (7000, 9824)):
        for end in wilson_interval(correct, total):
            assert abs(correct / total - end) / np.sqrt(end * (1 - end) / total) == pytest.approx(1.959964, rel=1e-6)
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)


def test_the_interval_stays_inside() -> None:
    assert wilson_interval(0, 20)[0] == 0
    assert wilson_interval(20, 20)[1] == 1
    assert 0.8 < wilson_interval(20, 20)[0] < 1
    assert wilson_interval(1, 1)[0] == pytest.approx(1 / (1 + 1.959964**2), rel=1e-6)
    for correct, total in ((3, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match=f"{correct} of {total}"):
            wilson_interval(correct, total)


def test_differences_of_rates_hold_what_is_true_in_19_of_20() -> None:
    """Over the same examples and where each side divides by its own, near 0 and 100 % too; the outcomes of both are alike."""
    generator = np.random.default_rng(0)
    for number, right, same, rates in (
        (40, 1.0, 1.0, (0.5, 0.4)),
        (40, 1.0, 1.0, (0.9, 0.85)),
        (50, 0.7, 0.8, (0.5, 0.45)),
        (50, 0.7, 0.8, (0.05, 0.02)),
        (50, 0.7, 0.0, (0.5, 0.5)),
    ):
        held = 0
        for _ in range(400):
            one = generator.random(number) < right
            two = np.where(generator.random(number) < same, one, generator.random(number) < right)
            luck = generator.random(number)
            other = np.where(generator.random(number) < 0.8, luck, generator.random(number))
            found = rate_difference((one * (luck < rates[0]), 1.0 * one), (two * (other < rates[1]), 1.0 * two))
            held += found.low <= rates[0] - rates[1] <= found.high
        assert held >= 368, (number, right, same, rates)


def test_sides_without_a_common_example_are_independent() -> None:
    one, two = np.zeros(60), np.zeros(60)
    one[:30], two[30:] = 1, 1
    hits = np.array([1.0, 0.0] * 30)
    found = rate_difference((hits * one, one), (hits * two, two))
    low, high = wilson_interval(15, 30)
    assert found.high == pytest.approx(np.hypot(high - 0.5, 0.5 - low))
    assert rate_difference((hits * 0, one), (hits * two, two * 0)).value is None
