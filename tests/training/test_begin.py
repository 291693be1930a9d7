"""Comparisons of a resumed run, and remarks on a plan, on tables and plans alone."""

from __future__ import annotations

from typing import Any

import pytest

from sememekit.runs.plan import read_plan, remarks_on
from sememekit.runs.training import _clusters_that_stay, _holds


@pytest.mark.parametrize(
    ("stored", "given", "holds"),
    [
        (3, 3, True),
        (3, 4, False),
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {"a": 2}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}, True),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, False),
        ({"a": None}, {"a": None}, True),
        ({}, {"a": None}, False),
        ({"a": 1}, 1, False),
        (1, {"a": 1}, False),
        (None, {}, False),
    ],
)
def test_a_table_may_be_given_in_part(stored: Any, given: Any, holds: bool) -> None:
    assert _holds(stored, given) is holds


@pytest.mark.parametrize(("every", "steps", "stays"), [(20, 5, False), (21, 5, True), (4000, 1000, False), (4001, 1000, True)])
def test_clusters_that_no_step_updates_are_told(every: int, steps: int, stays: bool) -> None:
    plan = read_plan({"decoder": {"name": "self_organized", "update_every": every}, "schedule": {"epochs": 4}}, "a test")
    told = f"decoder.update_every={every}: training has {steps * 4:,} steps, so the clusters stay as they began; set it lower"
    assert _clusters_that_stay(plan, steps) == ((told,) if stays else ())
    assert _clusters_that_stay(read_plan({"schedule": {"epochs": 4}}, "a test"), 1) == ()
    assert _clusters_that_stay(read_plan({"task": {"name": "classification"}}, "a test"), 1) == ()


FIRST_CUT = "decoder.samples_until = first-cut changes nothing: schedule.factor is 1 and never cuts the rate"
MILESTONES = "schedule.milestones: nothing is trained after epoch 4, since schedule.epochs is 4"


@pytest.mark.parametrize(
    ("changes", "begins"),
    [
        ({}, []),
        ({"schedule": {"epochs": 4, "milestones": [3]}}, []),
        ({"schedule": {"epochs": 4, "milestones": [3, 4, 9]}}, [MILESTONES]),
        ({"decoder": {"samples": 2, "samples_until": "first-cut"}, "schedule": {"factor": 1.0}}, [FIRST_CUT]),
        ({"decoder": {"samples": 1, "samples_until": "first-cut"}, "schedule": {"factor": 1.0}}, [FIRST_CUT]),
        ({"decoder": {"samples": 2, "samples_until": "first-cut"}, "schedule": {"factor": 0.5}}, []),
        ({"decoder": {"samples": 2, "samples_until": "end"}, "schedule": {"factor": 1.0}}, []),
        ({"graph": {"path": "g.json"}}, ["the graph g.json changes nothing: task 'language_model' and encoder 'lstm' and "]),
        ({"graph": {"path": "g.json"}, "decoder": {"name": "sdlm"}}, []),
    ],
)
def test_settings_without_effect_are_told(changes: dict[str, Any], begins: list[str]) -> None:
    found = remarks_on(read_plan(changes, "a test"))
    assert [text[: len(begin)] for text, begin in zip(found, begins, strict=True)] == begins
