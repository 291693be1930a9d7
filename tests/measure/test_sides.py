"""Values at an equal budget, on figures that can be worked out by hand."""

from __future__ import annotations

import pytest

from sememekit.measure.sides import at_equal_budget, best_within


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
