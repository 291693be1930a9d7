"""Accuracy, its interval, and scores by label."""

from __future__ import annotations

import numpy as np
import pytest

from sememekit.measure.classes import accuracy_of


def test_scores_by_hand() -> None:
    found = accuracy_of(np.array([[3, 1, 0], [2, 4, 0], [0, 0, 0]]), ("a", "b", "c"))
    assert found.accuracy == 7 / 10
    assert [(s.precision, s.recall, s.support) for s in found.classes] == [(3 / 5, 3 / 4, 4), (4 / 5, 4 / 6, 6), (0, 0, 0)]
    assert [s.f1 for s in found.classes] == pytest.approx([2 * 0.6 * 0.75 / 1.35, 2 * 0.8 * (4 / 6) / (0.8 + 4 / 6), 0])
    assert found.macro_f1 == pytest.approx(sum(s.f1 for s in found.classes) / 2), "no example has c, and none was called so"
    called = accuracy_of(np.array([[3, 0, 1], [0, 4, 0], [0, 0, 0]]), ("a", "b", "c"))
    assert called.macro_f1 == pytest.approx(sum(s.f1 for s in called.classes) / 3)
