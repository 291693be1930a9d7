"""Success times validity: by hand, and against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sememekit.measure.attack_rates import ExampleOutcome, Verdict, attack_rates, product_interval, validity_of
from sememekit.measure.intervals import Interval, wilson_interval

GOOD, OTHER = Verdict(True, True, True, True), Verdict(False, True, True, True)


def wilson(correct: int, total: int) -> Interval:
    low, high = wilson_interval(correct, total)
    return Interval(value=correct / total, low=low, high=high)


def outcome(name: str, queries: int = 10) -> ExampleOutcome:
    return ExampleOutcome(outcome=name, correct=True, queries=queries, words_changed=1, num_words=9)  # type: ignore[arg-type]


def test_by_hand() -> None:
    records = [*(outcome("success", 50) for _ in range(30)), *(outcome("success", 300) for _ in range(30))]
    records += [outcome("failed") for _ in range(40)] + [outcome("skipped"), outcome("error"), outcome("no_candidates")]
    verdicts = {place: GOOD if place % 3 else OTHER for place in range(0, 60, 2)}
    verdicts[2] = Verdict(True, False, True, False)
    verdicts[4] = Verdict(True, True, False, True)
    found = validity_of(records, verdicts, 31, query_budget=500)
    assert (found.rated, found.ratings) == (30, 31)
    assert [found.meaning.value, found.label.value, found.fluent.value] == pytest.approx([20 / 30, 29 / 30, 29 / 30])
    assert (found.valid.value, found.originals.value) == pytest.approx((18 / 30, 29 / 30))
    assert found.valid_success.value == pytest.approx(0.6 * 0.6)
    quick = found.valid_success_at[100]
    assert quick is not None
    assert quick.value == pytest.approx(0.3 * 8 / 15), "quick successes alone, of all that could be tried"
    assert found.valid_success_at[500] == found.valid_success
    assert found.valid_success_at[2000] is None, "above the budget"
    assert found.valid_success.value < attack_rates(records).success_rate.value  # type: ignore[operator]


def test_at_the_ends_and_where_nothing_is_known() -> None:
    nothing = Interval(value=None, low=None, high=None)
    assert product_interval(wilson(3, 9), nothing) == nothing
    none, all_of = product_interval(wilson(50, 100), wilson(0, 20)), product_interval(wilson(100, 100), wilson(20, 20))
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(0.5 * wilson(0, 20).high)  # type: ignore[operator]
    assert (all_of.value, all_of.high) == (1.0, 1.0)
    assert all_of.low == pytest.approx(1 - math.hypot(1 - wilson(100, 100).low, 1 - wilson(20, 20).low))  # type: ignore[operator]


@pytest.mark.parametrize(("num", "success", "valid", "most"), [(200, 0.9, 0.25, 60), (300, 0.5, 0.9, 40), (80, 0.6, 0.5, 99)])
def test_the_interval_holds_the_true_rate_in_about_95_of_100_samples(num: int, success: float, valid: float, most: int) -> None:
    """``num`` examples, each fooled with ``success``, each success valid with ``valid``; at most ``most`` are rated."""
    source, held, draws = np.random.default_rng(3), 0, 4000
    for _ in range(draws):
        won = int(source.binomial(num, success))
        rated = min(won, most)
        interval = product_interval(wilson(won, num), wilson(int(source.binomial(rated, valid)), rated))
        assert interval.low is not None
        assert interval.high is not None
        held += interval.low <= success * valid <= interval.high
    assert 0.938 <= held / draws <= 0.965
