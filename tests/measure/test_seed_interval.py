"""Intervals over seeds, against the tables of Student's distribution and against many draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sememekit.measure.seed_interval import seed_difference, student_quantile


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (10, 2.228), (30, 2.042)]
)
def test_quantiles_are_those_of_printed_tables(freedom: int, quantile: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(quantile, abs=5e-4)


def test_the_interval_is_the_pooled_one() -> None:
    found = seed_difference([1.0, 2.0, 3.0], [5.0, 6.0, 7.0])
    half = 2.776445 * 1.0 * math.sqrt(2 / 3)  # both samples have the variance 1
    assert (found.value, found.low, found.high) == pytest.approx((4.0, 4.0 - half, 4.0 + half), abs=1e-5)


def test_one_seed_a_side_has_no_interval() -> None:
    found = seed_difference([1.0], [3.0])
    assert found.value == 2.0
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    drawn = np.random.default_rng(0).normal(size=(4000, 6))
    found = [seed_difference(row[:3].tolist(), (row[3:] + 0.5).tolist(), confidence=0.8) for row in drawn]
    covered = sum(estimate.low <= 0.5 <= estimate.high for estimate in found)
    assert covered / len(found) == pytest.approx(0.8, abs=0.02)
