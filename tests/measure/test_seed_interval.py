"""Intervals over seeds, against the tables of Student's distribution and against many draws."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from sememekit.measure.intervals import (
    combined,
    from_draws,
    interval,
    resampled_ratios,
    seed_difference,
    seed_mean,
    student_quantile,
)


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (10, 2.228), (30, 2.042)]
)
def test_quantiles_are_those_of_printed_tables(freedom: int, quantile: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(quantile, abs=5e-4)


def test_the_interval_is_the_pooled_one() -> None:
    found = seed_difference([1.0, 2.0, 3.0], [5.0, 6.0, 7.0])
    half = 2.776445 * 1.0 * math.sqrt(2 / 3)  # both samples have the variance 1
    assert (found.value, found.low, found.high) == pytest.approx((4.0, 4.0 - half, 4.0 + half), abs=1e-5)


def test_two_seeds_against_one_have_an_interval() -> None:
    found = seed_difference([1.0, 2.0], [4.0])
    half = 12.7062 * math.sqrt(0.5 * (1 / 2 + 1))
    assert (found.value, found.low, found.high) == pytest.approx((2.5, 2.5 - half, 2.5 + half), abs=1e-3)


@pytest.mark.parametrize(("values", "quantile"), [((1.0, 3.0), 12.7062), ((1.0, 2.0, 3.0), 4.30265)])
def test_the_mean_of_one_sample_has_students_interval(values: tuple[float, ...], quantile: float) -> None:
    found = seed_mean(values)
    half = quantile * statistics.stdev(values) / math.sqrt(len(values))
    assert (found.value, found.low, found.high) == pytest.approx((2.0, 2.0 - half, 2.0 + half), abs=1e-3)
    assert seed_mean(values[:1]).low is None


def test_one_seed_a_side_has_no_interval() -> None:
    found = seed_difference([1.0], [3.0])
    assert found.value == 2.0
    assert found.low is None
    assert found.high is None


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    drawn = np.random.default_rng(0).normal(size=(4000, 6))
    found = [seed_difference(row[:3].tolist(), (row[3:] + 0.5).tolist()) for row in drawn]
    covered = sum(estimate.low <= 0.5 <= estimate.high for estimate in found)
    assert covered / len(found) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("seeds", [2, 4])
def test_over_sentences_and_seeds_the_truth_is_covered_at_least_as_often_as_it_says(seeds: int) -> None:
    """Runs that differ by 0.02 nats, and 60 sentences by 0.2 of their own on each side: either alone holds it less often."""
    generator = np.random.default_rng(seeds)
    held = {"sentences": 0, "seeds": 0, "both": 0}
    for _ in range(400):
        runs = np.concatenate([generator.normal(5.0, 0.03, seeds), generator.normal(4.9, 0.03, seeds)])
        sentences = generator.normal(0.0, 0.2, (60, 2)).repeat(seeds, axis=1)
        nats = runs + sentences
        values, draws = resampled_ratios(nats, np.ones_like(nats), resamples=200)
        first, second = slice(0, seeds), slice(seeds, None)
        value = float(values[second].mean() - values[first].mean())
        over_text = from_draws(value, draws[:, second].mean(axis=1) - draws[:, first].mean(axis=1))
        over_runs = seed_difference(values[first].tolist(), values[second].tolist())
        for name, found in (("sentences", over_text), ("seeds", over_runs), ("both", combined(over_text, over_runs))):
            held[name] += found.low <= -0.1 <= found.high
    assert held["both"] >= 0.93 * 400
    assert held["sentences"] < 0.92 * 400


def test_over_both_the_limits_are_those_of_independent_errors() -> None:
    found = combined(interval(1.0, 0.7, 1.05), interval(1.0, 0.6, 1.12))
    assert (found.value, found.low, found.high) == pytest.approx((1.0, 0.5, 1.13))
    assert combined(interval(1.0, 0.7, 1.4), interval(1.0, math.nan, math.nan)).low is None
