"""Rates and their intervals, against plain arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from sememekit.measure.attack_rates import ExampleOutcome, attack_rates, paired_differences
from sememekit.measure.intervals import ratio_difference_interval, ratio_interval


def outcome(kind: str, queries: int = 1, correct: bool | None = True, changed: int = 0) -> ExampleOutcome:
    return ExampleOutcome(outcome=kind, correct=correct, queries=queries, words_changed=changed, num_words=10)


RECORDS = [
    outcome("success", 90, changed=2),
    outcome("success", 600, changed=4),
    outcome("failed", 3000),
    outcome("failed", 2),
    outcome("skipped", correct=False),
    outcome("skipped"),
    outcome("error", 7),
    outcome("error", 0, correct=None),
]


def test_rates_divide_by_what_was_attacked() -> None:
    rates = attack_rates(RECORDS)
    assert rates.outcomes == {"success": 2, "failed": 2, "skipped": 2, "error": 2}
    assert rates.attacked == 4
    assert rates.success_rate.value == 0.5
    assert {level: found.value for level, found in rates.success_at.items() if found} == {100: 0.25, 500: 0.25, 2000: 0.5}
    assert rates.accuracy.value == pytest.approx(5 / 6), "errors count on neither side"
    assert rates.accuracy_under_attack.value == pytest.approx(3 / 6)
    assert rates.mean_queries.value == pytest.approx((90 + 600 + 3000 + 2) / 4)
    assert rates.median_queries == pytest.approx((90 + 600) / 2)
    assert rates.mean_queries_of_successes == pytest.approx(345)
    assert rates.words_changed == pytest.approx(0.3)
    assert attack_rates(RECORDS, query_budget=500).success_at[2000] is None


def test_nothing_attacked_is_no_rate() -> None:
    rates = attack_rates([outcome("error", correct=None)])
    assert rates.success_rate.value is None
    assert rates.accuracy.value is None
    assert rates.median_queries is None


def test_the_bootstrap_of_a_share_is_near_the_binomial() -> None:
    hits = np.zeros(400)
    hits[:100] = 1
    found = ratio_interval(hits, np.ones(400), resamples=4000)
    half = 1.96 * np.sqrt(0.25 * 0.75 / 400)
    assert found.value == 0.25
    assert (found.low, found.high) == (pytest.approx(0.25 - half, abs=0.006), pytest.approx(0.25 + half, abs=0.006))
    assert found == ratio_interval(hits, np.ones(400), resamples=4000), "the same seed, the same interval"


def test_pairs_that_agree_have_a_narrower_difference() -> None:
    generator = np.random.default_rng(0)
    first = (generator.random(500) < 0.5).astype(float)
    second = first.copy()
    second[:40] = 0
    ones = np.ones(500)
    paired = ratio_difference_interval((first, ones), (second, ones))
    apart = ratio_difference_interval((first, ones), (generator.permutation(second), ones))
    assert paired.value == apart.value
    assert paired.high - paired.low < 0.5 * (apart.high - apart.low)
    assert paired.low > 0


def test_paired_differences_use_what_both_sides_have() -> None:
    first = dict(enumerate(RECORDS))
    second = {**first, 0: outcome("failed", 500), 9: outcome("success", 5)}
    rows = {row.name: row for row in paired_differences(first, second, budgets=(0, 500))}
    assert rows["success rate"].difference.value == pytest.approx(2 / 4 - 1 / 4)
    assert rows["accuracy"].difference.value == 0
    assert rows["accuracy"].excludes_zero is False
    assert "success rate at 500 queries" in rows
    assert "success rate at 2000 queries" not in rows
    assert rows["mean queries, attacked in both"].difference.value == pytest.approx((90 - 500) / 4)
