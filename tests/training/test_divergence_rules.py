"""The rules of divergence and the rate that is proposed then, on figures alone."""

from __future__ import annotations

import pytest

from sememekit.training.divergence import how_to_go_on, worse_than_guessing
from sememekit.training.settings import OptimizerSettings, ScheduleSettings
from sememekit.training.state import Ending, TrainingState, ending_text

UNIFORM = 1000.0


def state(nats: float, start: float, best: float | None = None, **more: float) -> TrainingState:
    """Return the state after an epoch of ten predictions, by the mean training loss and the loss of the first batch."""
    return TrainingState(nats=10 * nats, count=10, start_nats=start, best=best, best_epoch=2 if best else 0, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "nats", "start", "diverged"),
    [
        (1000.0, 9.0, 7.0, False),
        (1001.0, 9.0, 7.0, True),
        (1001.0, 7.04, 7.0, False),
        (1001.0, 6.95, 7.0, False),
        (1001.0, 6.5, 6.0, False),
        (1499.0, 6.95, 7.0, False),
        (1501.0, 6.95, 7.0, True),
        (1200.0, 9.0, 0.0, False),
        (2.3e123, 280.0, 7.0, True),
    ],
)
def test_a_model_that_got_worse_than_guessing_has_diverged(value: float, nats: float, start: float, diverged: bool) -> None:
    """ln 1000 is 6.91 nats. Just above it lies any model that has hardly begun, whose training loss fell all the same."""
    assert worse_than_guessing(state(nats, start), value, UNIFORM) == diverged


@pytest.mark.parametrize(("nats", "diverged"), [(6.5, False), (7.0, True)])
def test_a_model_that_was_better_over_fits_while_it_knows_its_training_text(nats: float, diverged: bool) -> None:
    assert worse_than_guessing(state(nats, 7.0, best=80.0), 1001.0, UNIFORM) == diverged


@pytest.mark.parametrize(("rate", "proposed"), [(8.0, "2"), (4.0, "4"), (0.5, "2")])
def test_no_rate_is_proposed_below_that_of_the_schedule(rate: float, proposed: str) -> None:
    optimizer = OptimizerSettings(learning_rate=8.0, clip=0.5)
    said = how_to_go_on(state(9.0, 7.0, rate=rate), optimizer, {})
    assert f"--set optimizer.learning_rate={proposed})" in said
    assert "--set optimizer.clip=0.25)" in said


def test_the_checkpoint_that_is_left_is_named() -> None:
    optimizer, pointer = OptimizerSettings(), {"last": "step-00000090", "best": "step-00000060"}
    assert how_to_go_on(state(9.0, 7.0, best=80.0), optimizer, pointer).endswith("the best is from epoch 2, step-00000060")
    assert how_to_go_on(state(9.0, 7.0), optimizer, {}).endswith("no checkpoint was written")


def test_what_a_run_says_that_ended_for_its_rate() -> None:
    ended = state(5.0, 7.0, best=80.0, rate=3e-9)
    ended.finished = Ending.NO_RATE
    said = "the rate was cut to nothing (3e-09); the best weights are from epoch 2"
    assert ending_text(ended, ScheduleSettings()) == said
    assert TrainingState.from_stored(ended.stored()) == ended
