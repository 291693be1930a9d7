"""Expected scores of rankings with equal scores, against the mean over all orders."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest

from sememekit.measure.ties import average_precision, reciprocal_rank, share_of_best


def orders(scores: tuple[int, ...]) -> list[list[int]]:
    """Every order of the items, best first, as often as it comes out of a shuffle followed by a stable sort."""
    return [sorted(shuffled, key=lambda item: -scores[item]) for shuffled in permutations(range(len(scores)))]


@pytest.mark.parametrize(
    "scores", [*product((0, 1), repeat=4), *product((0, 1, 2), repeat=3), (2, 1, 1, 1, 0), (0, 0, 0, 3, 3)]
)
def test_precision_and_accuracy_are_means_over_all_orders(scores: tuple[int, ...]) -> None:
    ways = orders(scores)
    for size in range(1, len(scores) + 1):
        for gold in combinations(range(len(scores)), size):
            ranks = [sorted(order.index(item) + 1 for item in gold) for order in ways]
            precisions = [np.mean([(place + 1) / rank for place, rank in enumerate(own)]) for own in ranks]
            assert average_precision(scores, gold) == pytest.approx(np.mean(precisions))
            assert share_of_best(scores, gold) == pytest.approx(np.mean([order[0] in gold for order in ways]))


def test_rounding_makes_no_difference_of_scores() -> None:
    assert share_of_best([0.1 + 0.2, 0.3, 0.0], {1}) == 0.5
    assert share_of_best([0.3 + 1e-6, 0.3, 0.0], {1}) == 0.0


@pytest.mark.parametrize("scores", [(1, 1, 1, 0), (2, 1, 1, 0, 1), (0, 0), (3, 2, 1)])
def test_reciprocal_ranks_are_means_over_all_orders(scores: tuple[int, ...]) -> None:
    values = np.array(scores)
    above, equal = ((values[None] > values[:, None]).sum(axis=1), (values[None] == values[:, None]).sum(axis=1))
    expected = [np.mean([1 / (order.index(item) + 1) for order in orders(scores)]) for item in range(len(scores))]
    np.testing.assert_allclose(reciprocal_rank(above, equal), expected)
    assert reciprocal_rank(above[:0], equal[:0]).shape == (0,)
