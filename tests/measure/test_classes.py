"""Accuracy, its interval, and scores by label."""

from __future__ import annotations

import numpy as np
import pytest

from sememekit.measure.classes import accuracy_of, wilson_interval


def test_scores_by_hand() -> None:
    found = accuracy_of(np.array([[3, 1, 0], [2, 4, 0], [0, 0, 0]]), ("a", "b", "c"))
    assert found.accuracy == 7 / 10
    assert [(s.precision, s.recall, s.support) for s in found.classes] == [(3 / 5, 3 / 4, 4), (4 / 5, 4 / 6, 6), (0, 0, 0)]
    assert [s.f1 for s in found.classes] == pytest.approx([2 * 0.6 * 0.75 / 1.35, 2 * 0.8 * (4 / 6) / (0.8 + 4 / 6), 0])
    assert found.macro_f1 == pytest.approx(sum(s.f1 for s in found.classes) / 2), "no example has c, and none was called so"
    called = accuracy_of(np.array([[3, 0, 1], [0, 4, 0], [0, 0, 0]]), ("a", "b", "c"))
    assert called.macro_f1 == pytest.approx(sum(s.f1 for s in called.classes) / 3)


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
