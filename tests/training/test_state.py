"""The state of a run, as snapshots hold it, and the reason for its end, for a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sememekit.errors import CheckpointError
from sememekit.jobs.train import train
from sememekit.training import RunFolder, ScheduleSettings
from sememekit.training.state import Ending, TrainingState, ending_text
from tests.small_run import Place

SCHEDULE = ScheduleSettings(epochs=6, stop_after=3, minimum_rate=0.1, stop_non_monotone=5)
ENDINGS = {
    Ending.EPOCHS: "6 epochs done",
    Ending.PATIENCE: "no better validation for 3 epochs",
    Ending.RATE: "the rate fell below 0.1",
    Ending.NO_RATE: "the rate was cut to nothing (0); the best weights are from epoch 2",
    Ending.NON_MONOTONE: "validation is worse than the best of all but the last 5 epochs before",
    Ending.OVER_FITS: "the model over-fits: since epoch 2 validation got worse while the training loss fell; for a "
    "better model take more text, more dropout or a smaller size",
}
"""Each ending with its sentence."""


def test_every_ending_has_a_sentence_and_is_read_from_its_value() -> None:
    assert set(ENDINGS) == set(Ending)
    for ending, sentence in ENDINGS.items():
        progress = TrainingState(epoch=6, best_epoch=2, since_best=3, finished=ending)
        assert ending_text(progress, SCHEDULE) == sentence
        stored = json.loads(json.dumps(progress.stored()))
        assert stored["finished"] == ending.value
        assert TrainingState.from_stored(stored) == progress
    assert TrainingState().stored()["finished"] == ending_text(TrainingState(), SCHEDULE) == ""
    assert TrainingState.from_stored(TrainingState().stored()) == TrainingState()
    assert ending_text(TrainingState(epoch=1, finished=Ending.EPOCHS), SCHEDULE) == "1 epoch done"
    with pytest.raises(ValueError, match="tired"):
        TrainingState.from_stored({"finished": "tired"})


def test_a_run_begins_with_nothing_done() -> None:
    """These keys are stored: a snapshot of a version that had fewer of them is read with these values for the rest."""
    assert TrainingState().stored() == {
        "epoch": 1,
        "batch": 0,
        "step": 0,
        "rate": 0.0,
        "best": None,
        "best_epoch": 0,
        "since_best": 0,
        "stalled": 0,
        "nats": 0.0,
        "count": 0,
        "seconds": 0.0,
        "finished": "",
        "averaging": False,
        "history": [],
        "first_nats": 0.0,
        "start_nats": 0.0,
        "cpu_seconds": 0.0,
    }


def store_ending(run: Path, finished: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the last snapshot of a run state this ending."""
    load = RunFolder.load

    def loaded(*arguments: Any, **options: Any) -> object:
        snapshot = load(*arguments, **options)
        if options["with_trainer"]:
            snapshot.trainer["progress"]["finished"] = finished
        return snapshot

    monkeypatch.setattr(RunFolder, "load", loaded)


def test_an_unknown_ending_is_no_state_of_training(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(place.table(schedule__epochs=1), tmp_path / "run")
    store_ending(tmp_path / "run", "tired", monkeypatch)
    with pytest.raises(CheckpointError, match=r"no state of training .*'tired' is not a valid Ending.*train --from"):
        train({}, tmp_path / "run", resume=True)
