"""The small protocols of the claims: every training ends where validation says so, and both models are equally wide."""

from __future__ import annotations

from typing import Any

import pytest

from sememekit.claims.claims import load_claims
from sememekit.config import apply_overrides, load_recipe
from sememekit.runs.plan import Plan, read_plan

CLAIMS = {name: found for name, found in load_claims().items() if found[1].small}

OTHER_WIDTH = {"lattice-e2-half-below-baseline", "lattice-chinese-e2", "lstm-cell-below-large", "lstm-cell-below-one-layer"}
"""Claims about the width or the depth itself."""


def plan_of(name: str, arm_name: str) -> Plan:
    arm = CLAIMS[name][0].arm[arm_name]
    return read_plan(apply_overrides(load_recipe(arm.recipe), arm.set), arm.recipe)


def plans(name: str) -> list[Plan]:
    small = CLAIMS[name][1].small
    assert small is not None
    return [plan_of(name, arm) for arm in small]


@pytest.mark.parametrize("name", CLAIMS)
def test_training_ends_when_validation_stands_still(name: str) -> None:
    """No number of epochs ends it: at least thirty are allowed, and rates fall to a sixteenth before the end."""
    for plan in plans(name):
        schedule = plan.schedule
        assert schedule.epochs >= 30
        assert schedule.stop_after >= 3
        assert schedule.factor < 1.0
        assert 0.0 < schedule.threshold <= 0.005
        assert 0.0 < schedule.minimum_rate <= plan.optimizer.learning_rate / 16


@pytest.mark.parametrize("name", CLAIMS)
def test_both_arms_have_one_schedule_and_one_width(name: str) -> None:
    """The rate at which a run ends is the same, or the same share of the rate that each begins with."""
    baseline, other = plans(name)
    ends = [plan.schedule.minimum_rate for plan in (baseline, other)]
    shares = [plan.schedule.minimum_rate / plan.optimizer.learning_rate for plan in (baseline, other)]
    assert ends[0] == ends[1] or shares[0] == pytest.approx(shares[1])
    assert baseline.schedule.model_copy(update={"minimum_rate": 0.0}) == other.schedule.model_copy(update={"minimum_rate": 0.0})
    assert baseline.optimizer.name == other.optimizer.name
    assert (size_of(baseline) == size_of(other)) is (name not in OTHER_WIDTH)


@pytest.mark.parametrize("name", CLAIMS)
def test_equal_time_is_judged_by_what_epochs_are_validated_by(name: str) -> None:
    file, claim = CLAIMS[name]
    measures = [file.arm[arm].evaluate for arm in claim.small or ()]
    changed = ("--dynamic", "--cache", "train --from")
    plain = claim.value in ("perplexity", "accuracy") and not any(
        option in str(each) for option in changed for each in measures
    )
    plain = plain and not claim.over
    assert claim.validated is plain


def size_of(plan: Plan) -> tuple[Any, ...]:
    return plan.task.settings.embedding_size, plan.encoder.settings.hidden_size, plan.encoder.settings.num_layers
