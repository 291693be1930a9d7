"""Sums of nats and tokens, against plain arithmetic."""

from __future__ import annotations

import math

import pytest

from sememekit.measure.perplexity import Tally


def test_tallies_add_up_and_the_mean_is_over_all_tokens() -> None:
    found = Tally(6.0, 2) + Tally(1.0, 5)
    assert (found.nats, found.count) == (7.0, 7)
    assert (found.mean, found.perplexity) == pytest.approx((1.0, math.e))
    assert sum([Tally(2.0, 1), Tally(4.0, 3)], Tally()) == Tally(6.0, 4)


def test_nothing_has_no_mean_and_too_much_is_infinite() -> None:
    assert math.isnan(Tally().mean)
    assert math.isnan(Tally().perplexity)
    assert Tally(800.0, 1).perplexity == math.inf
