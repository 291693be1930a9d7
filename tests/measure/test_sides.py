"""Draws over seeds, and values at an equal budget, on figures that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sememekit.measure.intervals import ratio_difference_interval, resampled_ratios
from sememekit.measure.sides import at_equal_budget, best_within, mean_over_drawn_seeds


def test_a_side_of_one_training_keeps_it() -> None:
    draws = np.array([[1.0, 4.0], [2.0, 9.0], [3.0, 1.0]])
    assert mean_over_drawn_seeds(draws, [[1], [0]]).tolist() == [[4.0, 1.0], [9.0, 2.0], [1.0, 3.0]]


def test_the_seeds_of_each_side_are_drawn_by_themselves_with_replacement() -> None:
    draws = np.tile([0.0, 1.0, 100.0, 300.0], (20_000, 1))
    first, second = mean_over_drawn_seeds(draws, [[0, 1], [2, 3]]).T
    for values, possible in ((first, (0.0, 0.5, 1.0)), (second, (100.0, 200.0, 300.0))):
        found, counts = np.unique(values, return_counts=True)
        assert tuple(found) == possible
        np.testing.assert_allclose(counts / 20_000, [0.25, 0.5, 0.25], atol=0.015)
    together = np.corrcoef(first, second)[0, 1]
    assert abs(together) < 0.03, "they are no pairs"
    assert first.std() ** 2 == pytest.approx(0.25 / 2, rel=0.05), "the variance of the mean of two"


def test_of_one_seed_a_side_the_interval_is_that_of_the_paired_bootstrap() -> None:
    generator = np.random.default_rng(3)
    counts = generator.integers(1, 9, size=50)
    nats = counts[:, None] * generator.uniform(2, 4, size=(50, 2))
    values, draws = resampled_ratios(nats, np.stack([counts, counts], axis=1), seed=5)
    means = mean_over_drawn_seeds(draws, [[0], [1]])
    expected = ratio_difference_interval((nats[:, 1], counts), (nats[:, 0], counts), seed=5)
    assert values[1] - values[0] == pytest.approx(expected.value, rel=1e-12)
    low, high = np.quantile(means[:, 1] - means[:, 0], [0.025, 0.975])
    assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_the_budget_is_what_the_cheapest_side_spent_in_the_mean() -> None:
    dear = [[(1.0, 9.0), (10.0, 8.0)], [(2.0, 9.0), (20.0, 8.0)]]
    cheap = [[(3.0, 9.0), (6.0, 7.0)], [(3.0, 9.0), (12.0, 7.0)]]
    for sides in ([dear, cheap], [cheap, dear]):
        budget, found = at_equal_budget(sides)
        assert budget == 9.0
        assert found[sides.index(cheap)] == [7.0, 7.0], "each to its own end, though the second ended behind the mean"
        assert found[sides.index(dear)] == [9.0, 9.0]
    assert at_equal_budget([dear]) == (15.0, [[8.0, 8.0]])
    assert at_equal_budget([dear, dear])[1] == [[8.0, 8.0]] * 2
    late = [[(50.0, 1.0)], [(50.0, 1.0)]]
    assert at_equal_budget([cheap, late], higher=True)[1] == [[9.0, 9.0], None]


@pytest.mark.parametrize(
    ("budget", "higher", "reached"),
    [(0.5, False, None), (2.0, False, 4.0), (1.999, False, 4.0), (9.0, False, 3.0), (3.0, True, 6.0)],
)
def test_the_best_figure_within_the_budget(budget: float, higher: bool, reached: float | None) -> None:
    curve = [(1.0, 5.0), (2.0, 4.0), (3.0, 6.0), (4.0, 3.0)]
    assert best_within([curve, curve], budget, higher) == (None if reached is None else [reached] * 2)
    late = [(100.0, 1.0)]
    assert best_within([curve, late], budget, higher) is None, "a side has a value where all its trainings have one"
