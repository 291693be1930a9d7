"""Agreement of proxies with raters: by hand, and its interval against simulation."""

from __future__ import annotations

import numpy as np
import pytest

from sememekit.measure.attack_rates import Verdict
from sememekit.measure.intervals import Interval
from sememekit.measure.proxies import Proxy, area


def test_the_area_by_hand() -> None:
    assert area([3.0, 2.0, 2.0, 1.0], [True, True, False, False]).value == pytest.approx(3.5 / 4), "a tie is a half"
    assert area([1.0, 2.0], [True, False]).value == 0.0
    assert area([1.0, 2.0], [True, True]).value is area([], []).value is None
    one, two = area([1.0, 2.0, 3.0, 4.0] * 5, [False, True, False, True] * 5), area([1.0, 2.0, 3.0, 4.0], [False, True] * 2)
    assert one.value == two.value == 0.75
    assert one.high - one.low < two.high - two.low  # type: ignore[operator]


def test_the_interval_of_the_area_holds_the_true_area() -> None:
    """Scores of both answers are normal with means 1 apart: the area is Phi(1 / sqrt 2)."""
    source, true, held, draws = np.random.default_rng(5), 0.7602, 0, 600
    for _ in range(draws):
        yes = np.arange(90) < 30
        found = area(source.normal(size=90) + yes, yes)
        held += found.low <= true <= found.high  # type: ignore[operator]
    assert 0.92 < held / draws < 0.98


def test_a_proxy_is_compared_on_the_rated_texts_alone() -> None:
    proxy = Proxy(name="similarity", source="v", scores={1: 0.9, 2: 0.2, 3: 0.8, 9: 0.1}, after=Interval(value=0.5))
    verdicts = {1: Verdict(True, True, True, True), 2: Verdict(False, True, True, True), 3: Verdict(True, False, True, True)}
    found = proxy.compared(verdicts)
    assert found.rated == 3
    assert {name: one.value for name, one in found.areas.items()} == {"meaning": 1.0, "valid": 1.0}
    label = proxy.model_copy(update={"name": "label"}).compared(verdicts)
    assert {name: one.value for name, one in label.areas.items()} == {"label": 0.5, "valid": 1.0}
    assert proxy.areas == {}
