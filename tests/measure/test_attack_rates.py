"""Rates and their intervals, against plain arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from sememekit.measure.attack_rates import (
    ExampleOutcome,
    SpaceSize,
    agreement_of,
    attack_rates,
    coverage_of,
    paired_differences,
)
from sememekit.measure.intervals import FEWEST_EXAMPLES, from_draws, ratio_difference_interval, ratio_interval


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
    assert rates.outcomes == {"success": 2, "failed": 2, "no_candidates": 0, "skipped": 2, "error": 2}
    assert (rates.attackable, rates.attacked, rates.untried) == (4, 4, 2)
    assert rates.success_rate.value == 0.5
    assert {level: found.value for level, found in rates.success_at.items() if found} == {100: 0.25, 500: 0.25, 2000: 0.5}
    assert rates.accuracy.value == pytest.approx(6 / 7), "an error without an answer counts on neither side"
    assert rates.accuracy_under_attack.value == pytest.approx(2 / 7), "right and skipped or with an error: does not survive"
    assert rates.accuracy_at_most.value == pytest.approx(4 / 7)
    assert rates.mean_queries.value == pytest.approx((90 + 600 + 3000 + 2) / 4)
    assert rates.median_queries == pytest.approx((90 + 600) / 2)
    assert rates.mean_queries_of_successes == pytest.approx(345)
    assert rates.words_changed == pytest.approx(0.3)
    budget = attack_rates(RECORDS, query_budget=500).success_at
    assert (budget[2000], budget[500]) == (None, rates.success_at[500])


def test_nothing_to_try_is_not_robust() -> None:
    nothing = outcome("no_candidates")
    rates = attack_rates([*RECORDS, *[nothing] * 4])
    assert (rates.attackable, rates.attacked, rates.untried) == (4, 8, 6)
    assert (rates.success_rate.value, rates.success_of_attacked.value) == (0.5, 0.25)
    assert rates.accuracy_under_attack.value == pytest.approx(2 / 11)
    assert rates.accuracy_at_most.value == pytest.approx(8 / 11)
    assert rates.mean_queries.value == attack_rates(RECORDS).mean_queries.value
    rates = attack_rates([nothing] * 9)
    assert rates.success_rate.value is None
    assert rates.success_of_attacked.value == 0
    assert (rates.accuracy_under_attack.value, rates.accuracy_at_most.value) == (0, 1)


def test_a_victim_that_raises_does_not_bias_accuracy() -> None:
    """300 examples, 160 of them right; 150 of the right ones end in an error of a later query."""
    records = [outcome("skipped", correct=False)] * 140 + [outcome("error", 9)] * 150 + [outcome("failed", 9)] * 10
    rates = attack_rates(records)
    assert rates.accuracy.value == pytest.approx(160 / 300)
    assert (rates.attackable, rates.untried) == (10, 150)
    assert (rates.accuracy_under_attack.value, rates.accuracy_at_most.value) == pytest.approx((10 / 300, 160 / 300))
    whole = dict(enumerate([*records[:140], *[outcome("success", 9)] * 150, *records[290:]]))
    rows = {row.name: row for row in paired_differences(dict(enumerate(records)), whole)}
    assert (rows["accuracy"].first.value, rows["accuracy"].difference.value) == (pytest.approx(160 / 300), 0)
    assert rows["accuracy under attack"].difference.value == 0
    assert rows["accuracy under attack, untried as surviving"].difference.value == pytest.approx(150 / 300)
    mirrored = {row.name: row for row in paired_differences(whole, dict(enumerate(records)))}
    for row in (rows["success rate"], mirrored["success rate"]):
        assert (row.first.value, row.second.value) == (0, 0), "of the ten without an error on either side"


def test_rates_of_none_and_all_have_an_interval() -> None:
    never = attack_rates([outcome("failed", 10)] * 36)
    assert never.success_rate.value == 0
    assert (never.success_rate.low, never.success_rate.high) == (0, pytest.approx(0.0964, abs=1e-4)), "Wilson, 0 of 36"
    always = attack_rates([outcome("success", 10, changed=1)] * 4)
    assert (always.success_rate.low, always.success_rate.high) == (pytest.approx(0.5101, abs=1e-4), 1)
    assert (always.accuracy_under_attack.low, always.accuracy_under_attack.high) == (0, pytest.approx(0.4899, abs=1e-4))


def test_coverage_adds_up() -> None:
    sizes = [
        SpaceSize(words=10, with_candidates=5, changeable=1, substitutes=4, texts_log10=0.6),
        SpaceSize(words=30, with_candidates=7, changeable=5, substitutes=20, texts_log10=3.0),
        SpaceSize(words=0, with_candidates=0, changeable=0, substitutes=0, texts_log10=None),
    ]
    found = coverage_of(sizes)
    assert (found.examples, found.words, found.with_candidates, found.changeable) == (3, 40, 12, 6)
    assert (found.share_with_candidates, found.share_changeable, found.mean_substitutes) == (0.3, 0.15, 4.0)
    assert found.median_texts_log10 == pytest.approx(1.8)
    assert found.low
    assert not coverage_of(sizes[:0]).low


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
    assert "success rate at 2,000 queries" not in rows
    assert "success rate at 2,000 queries" in {row.name for row in paired_differences(first, second, budgets=(0, 0))}
    assert rows["mean queries, attacked in both"].difference.value == pytest.approx((90 - 500) / 4)


def test_draws_without_anything_to_divide_by_are_left_out() -> None:
    """Ten of a million examples count, and one draw in 22,000 has none of them."""
    counted = np.zeros(1_000_000)
    counted[::100_000] = 1.0
    found = ratio_interval(counted, counted, resamples=1)
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)
    assert from_draws(1.0, np.array([np.nan, np.nan])).low is None
    assert from_draws(1.0, np.array([np.nan, 2.0])).low == 2.0
    assert ratio_interval([0.0], [0.0]).value is None


def test_few_examples_have_no_interval() -> None:
    """Draws of one example do not differ at all, and would exclude zero for any two models."""
    for number, has_limits in ((1, False), (FEWEST_EXAMPLES - 1, False), (FEWEST_EXAMPLES, True)):
        top, of = np.arange(1.0, 31.0), np.zeros(30)
        of[:number] = 1.0
        found = [ratio_interval(top * of, of), ratio_difference_interval((top * of, of), (2 * top, np.ones(30)))]
        assert [one.low is None for one in found] == [not has_limits] * 2
        assert found[0].value == pytest.approx((number + 1) / 2)


def test_two_equal_models_differ_in_few_of_the_groups_that_have_an_interval() -> None:
    """Groups of words in 10 to 40 sentences of two models that differ by noise alone: not many more than one in twenty."""
    generator = np.random.default_rng(5)
    for number in (10, 20, 40):
        of = np.concatenate([np.ones(number), np.zeros(60 - number)])
        wrong = 0
        for _ in range(100):
            nats = generator.exponential(5, size=(60, 2)) * of[:, None]
            found = ratio_difference_interval((nats[:, 0], of), (nats[:, 1], of), resamples=400)
            assert found.low < found.value < found.high
            wrong += found.low > 0 or found.high < 0
        assert wrong <= 14, number


def test_sides_of_a_difference_have_intervals_and_no_difference_is_certain() -> None:
    """Newcombe 1998, table II: 0 of 36 against 0 of 36 is not 0 to 0; 1 against 0 is wide, too."""
    never, always = (dict(enumerate([outcome(kind, 5, changed=1)] * 36)) for kind in ("failed", "success"))
    bound = attack_rates(list(never.values())).success_rate.high
    rows = {row.name: row for row in paired_differences(never, never)}
    row = rows["success rate"]
    assert (row.first.low, row.first.high, row.second.high) == (0, bound, bound)
    assert bound == pytest.approx(0.0964, abs=1e-4)
    assert (row.difference.low, row.difference.high) == (pytest.approx(-bound), pytest.approx(bound))
    row = {row.name: row for row in paired_differences(always, never)}["success rate"]
    assert (row.difference.value, row.difference.low) == (1, pytest.approx(1 - np.hypot(bound, bound)))
    assert row.difference.high == 1
    assert rows["mean queries, attacked in both"].difference.high == 0, "a mean has no such interval"
    half = {**never, **dict(list(always.items())[:9])}
    row = {row.name: row for row in paired_differences(half, half)}["success rate"]
    low, high = (getattr(attack_rates(list(half.values())).success_rate, name) for name in ("low", "high"))
    wide = np.hypot(0.25 - low, high - 0.25)
    assert (row.difference.low, row.difference.high) == pytest.approx(newcombe(9, 0, 0, 27), abs=1e-6)
    assert row.difference.high < 0.45 * wide, "equal outcomes are not those of two attacks that have nothing in common"


def newcombe(both: int, first: int, second: int, neither: int) -> tuple[float, float]:
    """Newcombe 1998, Statistics in Medicine 17, 2635-2650, method 10, out of the four counts as the paper writes it."""
    n, z = both + first + second + neither, 1.959964
    one, two = both + first, both + second

    def roots(hits: int) -> tuple[float, float]:
        """The p with (p - hits / n)^2 = z^2 p (1 - p) / n."""
        low, high = sorted(np.roots([1 + z * z / n, -(2 * hits / n + z * z / n), (hits / n) ** 2]).real)
        return low, high

    margins = one * (second + neither) * two * (first + neither)
    crossed = both * neither - first * second
    phi = (max(crossed - n / 2, 0) if crossed > 0 else crossed) / margins**0.5 if margins else 0.0
    (low_one, high_one), (low_two, high_two) = roots(one), roots(two)
    below, above = (one / n - low_one, high_two - two / n), (high_one - one / n, two / n - low_two)
    shift = [(a * a - 2 * phi * a * b + b * b) ** 0.5 for a, b in (below, above)]
    return (one - two) / n - shift[0], (one - two) / n + shift[1]


@pytest.mark.parametrize(
    "counts", [(20, 12, 2, 16), (36, 0, 0, 14), (36, 3, 2, 9), (0, 1, 0, 36), (3, 20, 18, 4), (25, 0, 0, 0), (8, 1, 0, 2)]
)
def test_a_difference_over_the_same_examples_has_newcombes_paired_interval(counts: tuple[int, int, int, int]) -> None:
    kinds = [("success", "success"), ("success", "failed"), ("failed", "success"), ("failed", "failed")]
    pairs = [pair for pair, number in zip(kinds, counts, strict=True) for _ in range(number)]
    first, second = (dict(enumerate(outcome(pair[side], 5, changed=1) for pair in pairs)) for side in (0, 1))
    rows = {row.name: row for row in paired_differences(first, second)}
    low, high = newcombe(*counts)
    for name in ("success rate", "success rate at 100 queries", "success rate, attacked in both"):
        found = rows[name].difference
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6), name
        assert rows[name].excludes_zero is bool(low > 0 or high < 0)
    under = rows["accuracy under attack"].difference
    assert (under.low, under.high) == pytest.approx((-high, -low), abs=1e-6), "what is not fooled survives"


def test_the_paired_interval_is_that_of_others() -> None:
    """Complete response before and after a therapy (Cavo et al. 2012), as the R package contingencytables gives it."""
    assert newcombe(59, 6, 16, 80) == pytest.approx((-0.1186, -0.0046), abs=5e-5)


def test_a_clear_difference_excludes_zero_in_either_direction() -> None:
    weak, strong = (dict(enumerate([outcome(kind, 5, changed=1)] * 40)) for kind in ("failed", "success"))
    for first, second in ((weak, strong), (strong, weak)):
        rows = {row.name: row for row in paired_differences(first, second, budgets=(0, 0))}
        assert rows["success rate"].excludes_zero is True


def test_every_accuracy_of_a_pair_is_that_of_its_own_side() -> None:
    """Five texts classified by both; the second attack alone beats one of them, and tries one that the first left alone; the
    second victim alone is right on the last."""
    records = [outcome("failed"), outcome("failed"), outcome("success"), outcome("skipped"), outcome("skipped", correct=False)]
    first = dict(enumerate(records))
    second = {**first, 0: outcome("success"), 3: outcome("failed"), 4: outcome("failed")}
    rows = {row.name: (row.first.value, row.second.value, row.difference.value) for row in paired_differences(first, second)}
    assert rows["accuracy"] == pytest.approx((4 / 5, 5 / 5, -1 / 5))
    assert rows["accuracy under attack"] == pytest.approx((2 / 5, 3 / 5, -1 / 5))
    assert rows["accuracy under attack, untried as surviving"] == pytest.approx((3 / 5, 3 / 5, 0))
    assert rows["success rate"] == pytest.approx((1 / 3, 2 / 5, 1 / 3 - 2 / 5))
    assert rows["success rate at 100 queries"] == rows["success rate"]
    assert rows["success rate, attacked in both"] == pytest.approx((1 / 3, 2 / 3, -1 / 3))
    assert rows["mean queries, attacked in both"] == pytest.approx((1, 1, 0))
    slower = {**second, 2: outcome("success", 5)}
    slow = {row.name: row for row in paired_differences(first, slower)}["mean queries, attacked in both"]
    assert (slow.first.value, slow.second.value) == pytest.approx((1, 7 / 3))


def test_alpha_is_that_of_an_example_worked_by_hand() -> None:
    """Two raters and four texts: yes yes, yes no, no no, no no. 3 of 8 answers are yes and 5 no, and one text is divided:
    the observed disagreement is 2, the expected 2 * 3 * 5 / 7, so that alpha is 1 - 7 * 2 / 30."""
    assert agreement_of([(1, 1), (1, 0), (0, 0), (0, 0)]) == pytest.approx(1 - 7 * 2 / 30)
    assert agreement_of([(1, 1), (1, 0), (0, 0), (0, 0), (1,)]) == pytest.approx(1 - 7 * 2 / 30), "one answer agrees with none"
    assert agreement_of([(1, 1), (1, 1)]) is None
    assert agreement_of([(1,), (0,)]) is None
