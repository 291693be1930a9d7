"""Steps, reports, stops and checkpoints of the training of one number, by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from sememekit.errors import TrainingError
from sememekit.training import ChangeReport, EpochReport, RunFolder, StepReport, StopReport
from sememekit.training.trainer import epoch_seed
from tests.training.toy import PARTS, Toy, number, reports_of, seen, trainer_of


def test_a_model_of_one_parameter_is_trained(tmp_path: Path) -> None:
    task = Toy()
    trainer = trainer_of(task, tmp_path / "run")
    (report,) = reports_of(trainer, EpochReport)
    assert number(task.w) == 1 - (1 + 2 + 3) / 2, "the mean over two predictions is differentiated"
    nats = 1 * 1 + 2 * 0.5 + 3 * -0.5
    assert (report.epoch, report.step, report.train_nats) == (1, 3, pytest.approx(nats / 6))
    assert seen(task, "batch") == [(1.0, 0.0, True), (2.0, 1.0, True), (3.0, 2.0, True)]
    assert seen(task, "updates") == [3]
    assert trainer.device == task.w.device
    assert (trainer.progress.batch, trainer.progress.step, trainer.carry) == (0, 3, ())


@pytest.mark.parametrize(
    ("parts", "step"),
    [
        ([replace(PARTS, divisor=8)], 6 / 8),
        ([replace(PARTS, penalty=torch.tensor(0.25))], 6 / 2 + 0.25),
        ([replace(PARTS, rate_scale=0.5)], 0.5 * 6 / 2),
        ([replace(PARTS, share=0.25), replace(PARTS, count=4, share=0.75)], 0.25 * 6 / 2 + 0.75 * 6 / 4),
        ([replace(PARTS, rate_scale=9.0, share=0.5), replace(PARTS, share=0.5)], 6 / 2),
    ],
)
def test_what_a_step_is_made_of(tmp_path: Path, parts: list[Any], step: float) -> None:
    task = Toy(batches=(6.0,))
    task.parts = parts
    trainer = trainer_of(task, tmp_path / "run")
    (report,) = reports_of(trainer, StepReport)
    assert number(task.w) == pytest.approx(1 - step)
    assert report.nats == pytest.approx(6.0 * len(parts) / sum(part.count for part in parts))
    assert report.rate == 1.0, "the schedule's, without the scale of a batch"


def test_reports_come_every_few_steps_of_the_run_and_at_the_end_of_an_epoch(tmp_path: Path) -> None:
    trainer = trainer_of(Toy(batches=(1.0,) * 5), tmp_path / "run", run__report_every=3, schedule__epochs=2)
    steps = reports_of(trainer, StepReport)
    assert [(one.epoch, one.batch, one.step, one.num_batches) for one in steps] == [
        (1, 3, 3, 5),
        (1, 5, 5, 5),
        (2, 1, 6, 5),
        (2, 4, 9, 5),
        (2, 5, 10, 5),
    ]
    # w falls by a half a step from 1; each report has the mean over its own steps alone
    assert [one.nats for one in steps] == pytest.approx([0.25, -0.375, -0.75, -1.25, -1.75])
    assert all(one.tokens_per_second > 0 for one in steps)


def test_epochs_begin_anew_each_in_its_own_order(tmp_path: Path) -> None:
    task = Toy(batches=(2.0, 2.0), valid=(50.0, 60.0, 40.0))
    trainer = trainer_of(task, tmp_path / "run", schedule__epochs=3, schedule__factor=0.5, run__seed=7)
    epochs = reports_of(trainer, EpochReport)
    assert seen(task, "epoch") == [(epoch_seed(7, epoch), 0) for epoch in (1, 2, 3)]
    assert seen(task, "updates") == [6, 6, 6]
    assert [carry for _, carry, _ in seen(task, "batch")] == [0, 1, 0, 1, 0, 1], "what is carried does not pass an epoch"
    assert [one.rate for one in epochs] == [1.0, 1.0, 0.5]
    assert [one.train_nats for one in epochs] == pytest.approx([0.5, -1.5, -3.25]), "losses are of the epoch alone"
    assert [(one.best, one.rate_cut, one.finished) for one in epochs] == [
        (True, False, ""),
        (False, True, ""),
        (True, False, "3 epochs done"),
    ]
    assert seen(task, "cut") == [None]
    assert (trainer.progress.epoch, trainer.progress.first_nats) == (3, pytest.approx(0.5))
    assert all(one.cpu_seconds > 0 for one in epochs)
    assert all(one.seconds > 0 and one.tokens_per_second == pytest.approx(4 / one.seconds) for one in epochs)


def test_the_order_of_an_epoch_is_of_its_seed_and_its_number() -> None:
    assert epoch_seed(0, 3) == 3
    assert epoch_seed(2, 3) == 2_000_009
    seeds = {epoch_seed(seed, epoch) for seed in range(20) for epoch in range(1, 1000)}
    assert len(seeds) == 20 * 999


def test_a_checkpoint_inside_an_epoch_closes_what_was_not_reported(tmp_path: Path) -> None:
    task = Toy(batches=(1.0,) * 5)
    trainer = trainer_of(task, tmp_path / "run", run__report_every=3, run__checkpoint_every=2)
    saved: list[int] = []
    save = trainer.folder.save
    trainer.folder.save = lambda step, *given, **named: saved.append(step) or save(step, *given, **named)  # type: ignore
    steps = reports_of(trainer, StepReport)
    assert saved == [2, 4, 5]
    assert [one.step for one in steps] == [2, 3, 4, 5], "nothing is reported twice"
    assert sum(one.nats * count for one, count in zip(steps, (2, 1, 1, 1), strict=True)) == pytest.approx(5 - 0.5 * 10)


def test_writing_a_checkpoint_is_no_training_time(tmp_path: Path) -> None:
    """Runs with another run.checkpoint_every stay comparable at equal CPU time."""
    trainer = trainer_of(Toy(batches=(1.0,) * 6), tmp_path / "run", run__checkpoint_every=2)
    save = trainer.folder.save

    def slowly(*given: Any, **named: Any) -> Any:
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        return save(*given, **named)

    trainer.folder.save = slowly  # type: ignore[method-assign]
    (epoch,) = reports_of(trainer, EpochReport)
    assert epoch.cpu_seconds < 0.3, "two checkpoints inside the epoch take 0.6"
    assert epoch.seconds < 0.3


def test_no_checkpoint_twice_at_the_end_of_an_epoch(tmp_path: Path) -> None:
    trainer = trainer_of(Toy(batches=(1.0,) * 4), tmp_path / "run", run__checkpoint_every=4)
    saved: list[int] = []
    save = trainer.folder.save
    trainer.folder.save = lambda step, *given, **named: saved.append(step) or save(step, *given, **named)  # type: ignore
    reports_of(trainer, StepReport)
    assert saved == [4]


@pytest.mark.parametrize(("after", "batch", "epochs"), [(2, 2, 0), (3, 3, 0), (4, 1, 1)])
def test_a_stop_is_heard_after_each_step(tmp_path: Path, after: int, batch: int, epochs: int) -> None:
    trainer = trainer_of(Toy(), tmp_path / "run", schedule__epochs=3)
    reports = list(trainer.run(lambda: trainer.progress.step == after))
    assert reports[-1] == StopReport(epochs + 1, after, f"step-{after:08d}")
    assert (trainer.progress.epoch, trainer.progress.batch) == (epochs + 1, batch)
    assert sum(isinstance(one, EpochReport) for one in reports) == epochs
    told = [one for one in reports if isinstance(one, StepReport)]
    assert told[-1].step == after, "no step goes unreported"
    stored = trainer.folder.load("last", with_trainer=True).trainer
    assert stored["progress"] == trainer.progress.stored()
    assert [part.tolist() for part in stored["carry"]] == [[float(batch)]]


def test_a_stop_while_validating_ends_after_the_epoch(tmp_path: Path) -> None:
    task = Toy()
    trainer = trainer_of(task, tmp_path / "run", schedule__epochs=2)
    asked: list[int] = []

    def stop() -> bool:
        asked.append(trainer.progress.batch)
        return asked[-3:] == [2, 3, 0]

    reports = list(trainer.run(stop))
    assert reports[-1] == StopReport(2, 3, "step-00000003")
    assert asked == [1, 2, 3, 0]
    last = trainer_of(Toy(), tmp_path / "other")
    assert not any(isinstance(one, StopReport) for one in last.run(lambda: last.progress.batch == 0)), "the run is over"


def test_a_run_goes_on_from_its_checkpoint_to_the_same_number(tmp_path: Path) -> None:
    whole, first, second = (Toy(valid=(50.0, 60.0)) for _ in range(3))
    changes = {"schedule__epochs": 2, "schedule__factor": 0.5, "run__seed": 2}
    list(trainer_of(whole, tmp_path / "whole", **changes).run())
    stopped = trainer_of(first, tmp_path / "stopped", **changes)
    list(stopped.run(lambda: stopped.progress.step == 2))
    going = trainer_of(second, tmp_path / "going", **changes)
    going.restore(stopped.folder.load("last", with_trainer=True))
    (epoch, _) = reports_of(going, EpochReport)
    assert number(second.w) == number(whole.w)
    assert epoch.train_nats == pytest.approx((1 + 2 * 0.5 + 3 * -0.5) / 6), "of the whole epoch, both halves"
    assert seen(second, "epoch")[0] == (epoch_seed(2, 1), 2)
    assert seen(second, "batch")[0] == (3.0, 2.0, True)


def test_what_changes_beside_gradients_is_reported_with_its_step(tmp_path: Path) -> None:
    class Changing(Toy):
        def after_step(self, step: int) -> dict[str, float] | None:
            return {"moved": 2.0} if step == 2 else None

    assert reports_of(trainer_of(Changing(), tmp_path / "run"), ChangeReport) == [ChangeReport(1, 2, {"moved": 2.0})]


def test_a_gradient_is_clipped_to_its_norm(tmp_path: Path) -> None:
    task = Toy(batches=(8.0,))
    list(trainer_of(task, tmp_path / "run", optimizer__clip=0.5).run())
    assert number(task.w) == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ((), (float("nan"),), "no checkpoint was written$"),
        ((50.0,), (float("nan"),), r"the best is from epoch 1, step-\d+$"),
    ],
)
def test_a_figure_that_is_no_number_says_what_is_left(tmp_path: Path, before: Any, after: Any, left: str) -> None:
    trainer = trainer_of(Toy(valid=(*before, *after)), tmp_path / "run", schedule__epochs=3)
    with pytest.raises(TrainingError, match=rf"validation figure is nan after epoch {len(before) + 1}; .*{left}"):
        list(trainer.run())


def test_weights_that_a_run_begins_with_are_its_best_until_an_epoch_beats_them(tmp_path: Path) -> None:
    task = Toy(valid=(50.0, 60.0, 40.0))
    trainer = trainer_of(task, tmp_path / "run", schedule__epochs=2, schedule__factor=1.0)
    trainer.keep_initial_weights()
    assert (trainer.progress.best, trainer.progress.best_epoch) == (50.0, 0)
    epochs: Iterator[Any] = iter(trainer.run())
    first = next(one for one in epochs if isinstance(one, EpochReport))
    assert not first.best
    assert number(trainer.folder.load("best", with_trainer=False).weights["w"]) == 1.0
    assert next(one for one in epochs if isinstance(one, EpochReport)).best
    assert list(epochs) == []
    assert number(RunFolder.open(tmp_path / "run").load("best", with_trainer=False).weights["w"]) == -5.0
    with pytest.raises(
        TrainingError,
        match=r"--from .*: before any training its model has the validation figure inf on these data; choose another run",
    ):
        trainer_of(Toy(valid=(float("inf"),)), tmp_path / "bad").keep_initial_weights()
