"""Proxies of the validity of known results, the second classifier that they need, and probabilities made of logits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sememekit.attack.examples import Change
from sememekit.errors import ConfigError, DataError
from sememekit.runs.attacks.adapters import _of_logits
from sememekit.runs.attacks.proxies import check_judge, proxies
from tests.runs.test_attack_parts import Answers, result


def judge(identity: dict[str, str], labels: Sequence[str] = ("no", "yes"), name: str = "v") -> Any:
    return SimpleNamespace(identity=identity, victim=SimpleNamespace(labels=labels, name=name))


def test_the_judge_is_another_classifier_with_the_labels() -> None:
    check_judge(judge({"weights": "1", "sha256": "3"}), judge({"weights": "2", "sha256": "3"}))
    check_judge(judge({}, ("maybe", "yes", "no"), name="w"), judge({}))
    for same in ({"weights": "1"}, {"sha256": "1"}, {}):
        with pytest.raises(ConfigError, match="--judge v: it is the victim itself"):
            check_judge(judge(same), judge(same))
    with pytest.raises(ConfigError) as caught:
        check_judge(judge({}, ("yes", "z"), name="w"), judge({}, ("yes", "no", "maybe")))
    assert str(caught.value) == "--judge w: its labels are yes, z; name a classifier that also has maybe, no"


def test_proxies_are_over_all_changed_fields() -> None:
    """The losses of a text are the numbers in it, and the judge is sure of ``no`` where it reads a 9."""
    won = [
        result(4, "success", fields=("1 2 3", "4"), adversarial=("1 5 3", "4"), label="no", changes=(
            Change(field=0, place=1, begin=2, old="2", new="5"),)),
        result(7, "success", fields=("1", "2 2"), adversarial=("9", "2 4"), label="yes", changes=(
            Change(field=0, place=0, begin=0, old="1", new="9"), Change(field=1, place=1, begin=2, old="2", new="4"))),
    ]  # fmt: skip
    results = [result(1), *won]

    def nats_of(texts: list[list[str]]) -> list[list[float]]:
        return [[float(word) / 10 for word in text] for text in texts]

    nats: Any = nats_of
    nats.identity = {"run": "lm"}
    assert proxies([result(1)], None, (), nats, None) == ((), None, None)
    assert proxies(results, None, (), None, None) == ((), None, None)
    [ratio], before, after = proxies(results, None, (), nats, None)
    assert (ratio.name, ratio.source, ratio.before) == ("perplexity ratio", "lm", None)
    rises = {4: 0.1, 7: 1.5 / 3 - 0.5 / 3}
    assert ratio.scores == pytest.approx({index: -rise for index, rise in rises.items()})
    assert ratio.after.value == pytest.approx(math.exp(sum(rises.values()) / 2))
    assert (before, after) == pytest.approx((math.exp(1.1 / 6), math.exp(2.4 / 6)))

    def says(text: str) -> Any:
        return np.array([0.9, 0.1]) if "9" in text else np.array([0.5, 0.5]) if "5" in text else np.array([0.75, 0.25])

    third: Any = SimpleNamespace(victim=Answers(says), identity={})
    [label], *_ = proxies(results, third, (), None, None)
    assert (label.name, label.source) == ("label", "v")
    assert label.scores == pytest.approx({4: 0.0, 7: -0.8})
    assert label.before is not None
    assert (label.before.value, label.after.value) == (0.5, 0.0)
    silent: Any = SimpleNamespace(victim=Answers(lambda text: "the victim fell"), identity={})
    with pytest.raises(DataError, match=r"--judge v: example 4: the judge fell"):
        proxies(results, silent, (), None, None)


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([[0.5, 0.5], [0.0, 1.0]], True),
        ([[0.5, 0.495], [0.25, 0.755]], True),
        ([[0.5, 0.5], [0.5, 0.52]], False),
        ([[0.5, 0.5], [0.5, 0.48]], False),
        ([[-0.5, 1.5]], False),
        ([[0.0, 0.0]], False),
    ],
)
def test_rows_that_sum_to_one_are_probabilities_where_a_wrapper_may_give_both(rows: list[list[float]], kept: bool) -> None:
    table = np.array(rows)
    softened = np.exp(table) / np.exp(table).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(_of_logits(lambda texts: rows, where_needed=True)([]), table if kept else softened)
    np.testing.assert_allclose(_of_logits(lambda texts: rows)([]), softened)
