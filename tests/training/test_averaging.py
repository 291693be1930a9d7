"""Averaged weights: when the averaging begins, what is evaluated and kept, and that training itself is not touched by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sememekit.jobs.train import train
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.runs.run import Run
from sememekit.tasks.base import PrimaryMetric
from sememekit.tasks.language_model import LanguageModel
from sememekit.training import EpochReport, Report, RunFolder, Trainer
from sememekit.training.optimizers import Average
from sememekit.training.schedule import non_monotone_trigger
from tests.small_run import Place
from tests.training.resuming import assert_same_bits, last, numbers, stop_after
from tests.training.scripted import epochs, script_validation, trained

AWD = {
    "encoder__name": "awd_lstm",
    "encoder__dropout": 0.2,
    "encoder__weight_drop": 0.3,
    "task__word_dropout": 0.1,
    "task__locked_dropout": True,
    "task__input_dropout": 0.2,
    "task__output_dropout": 0.2,
    "task__activation_penalty": 0.5,
    "task__temporal_penalty": 0.5,
    "task__random_lengths": True,
    "task__chunk_length": 12,
    "task__shortest_chunk": 2,
    "optimizer__weight_decay": 1e-4,
    "schedule__factor": 1.0,
    "run__seed": 3,
}


@pytest.mark.parametrize(
    ("history", "new", "spared", "worse"),
    [
        ([5.0, 6.0, 6.0, 6.0, 6.0], 9.0, 5, False),  # five are stored: none but the last five
        ([5.0, 6.0, 6.0, 6.0, 6.0, 6.0], 5.5, 5, True),  # better than five of six, worse than the first
        ([5.0, 6.0, 6.0, 6.0, 6.0, 6.0], 5.0, 5, False),  # equal is not worse
        ([6.0, 6.0, 2.0, 2.0, 2.0, 2.0, 2.0], 5.5, 5, False),  # the last five do not count
        ([5.0], 6.0, 1, False),
        ([5.0, 7.0], 6.0, 1, True),
        ([5.0, 7.0], float("nan"), 1, False),
    ],
)
def test_the_trigger_is_the_published_one(history: list[float], new: float, spared: int, worse: bool) -> None:
    assert non_monotone_trigger(PrimaryMetric("perplexity", lower_is_better=True), new, history, spared) == worse
    mirrored = [-value for value in history]
    assert non_monotone_trigger(PrimaryMetric("accuracy", lower_is_better=False), -new, mirrored, spared) == worse


def test_an_average_is_the_mean_of_all_steps_and_leaves_the_weights_alone() -> None:
    torch.manual_seed(1)
    model = nn.ModuleDict({"words": nn.Embedding(3, 2), "out": nn.Linear(2, 3)}).double()
    model["out"].weight = model["words"].weight
    average = Average(list(model.parameters()))
    assert len(average.parameters) == 2, "a shared matrix counts once"
    seen: list[dict[str, Tensor]] = []
    for _ in range(5):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        average.update()
        seen.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
    with average.averaged_weights():
        for name, tensor in model.state_dict().items():
            torch.testing.assert_close(tensor, torch.stack([one[name] for one in seen]).mean(dim=0), rtol=0, atol=1e-12)
        assert model["out"].weight is model["words"].weight
        state = average.state()
    assert all(torch.equal(tensor, seen[-1][name]) for name, tensor in model.state_dict().items())
    assert model["out"].weight is model["words"].weight
    assert state["count"] == 5
    with pytest.raises(RuntimeError, match="inside 'averaged_weights'"):
        average.state()
    average.restart()
    with average.averaged_weights():
        assert all(torch.equal(tensor, seen[-1][name]) for name, tensor in model.state_dict().items())


def test_weights_come_back_when_validation_fails() -> None:
    linear = nn.Linear(2, 2)
    average = Average(list(linear.parameters()))
    average.update()
    with torch.no_grad():
        linear.weight.add_(1.0)
    before = linear.weight.detach().clone()
    with pytest.raises(KeyboardInterrupt), average.averaged_weights():
        raise KeyboardInterrupt
    assert torch.equal(linear.weight, before)


def test_averaging_begins_after_the_epoch_that_triggers_it(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = script_validation(monkeypatch, [50.0, 40.0, 45.0, 44.0, 39.0, 42.0])
    own = {"optimizer__averaging": "triggered", "optimizer__trigger": 1, "schedule__epochs": 6, "schedule__factor": 1.0}
    done = epochs(trained(place, tmp_path / "run", **own)[1])
    assert [report.averaging_begins for report in done] == [False, False, False, True, False, False]
    assert [report.averaged for report in done] == [False, False, False, False, True, True]
    assert [report.best for report in done] == [True, True, False, False, True, False]
    assert {report.rate for report in done} == {4.0}, "the rate stays"
    folder = RunFolder.open(tmp_path / "run")
    best, snapshot = folder.load("best", with_trainer=False), folder.load("last", with_trainer=True)
    assert all(torch.equal(best.weights[name], judged[4][name]) for name in judged[4]), "the mean that was judged is kept"
    assert all(torch.equal(snapshot.weights[name], judged[5][name]) for name in judged[5])
    assert snapshot.trainer["average"]["count"] == 60, "two epochs of steps"
    script_validation(monkeypatch, [50.0, 40.0, 45.0, 44.0, 39.0, 42.0])
    trained(place, tmp_path / "plain", **{**own, "optimizer__averaging": "never"})
    plain = last(tmp_path / "plain")
    parameters = dict(Run.open(tmp_path / "plain", which="last", device="cpu").task.named_parameters())
    for name, ours in zip(parameters, snapshot.trainer["average"]["training"], strict=True):
        assert torch.equal(ours, plain.weights[name]), "training goes on as if nothing was averaged"
        assert not torch.equal(ours, snapshot.weights[name])


def test_averages_are_kept_only_when_they_are_better(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = script_validation(monkeypatch, [50.0, 51.0, 49.0, 52.0])
    own = {"optimizer__averaging": "from_start", "schedule__epochs": 4, "schedule__factor": 1.0}
    report, reports = trained(place, tmp_path / "run", **own)
    done = epochs(reports)
    assert (report.best_epoch, [one.best for one in done]) == (3, [True, False, True, False])
    best = RunFolder.open(tmp_path / "run").load("best", with_trainer=False).weights
    assert all(torch.equal(best[name], judged[2][name]) for name in best)


def test_tails_of_an_adaptive_softmax_are_trained_and_averaged_too(place: Place, tmp_path: Path) -> None:
    own = {"optimizer__averaging": "from_start", "schedule__epochs": 2}
    trained(place, tmp_path / "run", "adaptive", **own)
    snapshot = last(tmp_path / "run")
    start = build_task(read_plan(place.table("adaptive", **own), "test"), place.data.vocabulary, None)
    names = [name for name, _ in start.named_parameters()]
    tails = [name for name in names if "tail" in name]
    assert tails
    now = dict(zip(names, snapshot.trainer["average"]["training"], strict=True))
    for name in tails:
        assert not torch.equal(now[name], start.get_parameter(name))
        assert not torch.equal(now[name], snapshot.weights[name])


def test_a_run_ends_when_it_is_worse_than_long_ago(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 47.0, 46.0, 48.0, 46.5, 47.5, 10.0])
    own = {"optimizer__averaging": "from_start", "schedule__stop_non_monotone": 2, "schedule__factor": 1.0}
    report, _ = trained(place, tmp_path / "run", **own, schedule__epochs=7)
    assert (report.epochs, report.best_epoch) == (6, 3)
    assert report.finished == "validation is worse than the best of all but the last 2 epochs before"


@pytest.mark.parametrize(
    ("cut", "averaging"),
    [
        (33, "from_start"),
        (52, "triggered"),
        *(
            pytest.param(cut, averaging, marks=pytest.mark.slow)
            for cut, averaging in ((40, "from_start"), (40, "triggered"), (33, "triggered"), (52, "from_start"))
        ),
    ],
)
def test_awd_training_with_a_stop_in_it_is_the_same(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, averaging: str, cut: int
) -> None:
    """Lengths, masks, averages, trigger: all of it resumes bit for bit."""
    table = place.table(
        **AWD, task__small_batch_size=3, optimizer__averaging=averaging, optimizer__trigger=1, schedule__epochs=5
    )
    values = [50.0, 48.0, 51.0, 47.0, 46.0]
    one: list[Report] = []
    two: list[Report] = []
    script_validation(monkeypatch, values)
    train(table, tmp_path / "whole", on_report=one.append)
    script_validation(monkeypatch, values)
    with monkeypatch.context() as patch:
        stop_after(patch, cut)
        assert train(table, tmp_path / "cut", on_report=two.append).stopped
    train(table, tmp_path / "cut", resume=True, on_report=two.append)
    assert_same_bits(last(tmp_path / "whole").weights, last(tmp_path / "cut").weights)
    assert_same_bits(last(tmp_path / "whole").trainer, last(tmp_path / "cut").trainer)
    assert last(tmp_path / "whole").trainer["average"]["count"] > 0
    assert numbers(one, EpochReport) == numbers(two, EpochReport)


def test_a_reload_begins_the_mean_anew(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 60.0, 40.0])
    own = {"optimizer__averaging": "from_start", "schedule__reload_best": True, "schedule__factor": 0.5}
    trained(place, tmp_path / "run", **own, schedule__epochs=3)
    assert last(tmp_path / "run").trainer["average"]["count"] == 30, "one epoch"


def test_what_a_batch_draws_depends_on_seed_and_epoch(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    original = LanguageModel.batches

    def batches(self: LanguageModel, data: Any, epoch_seed: int, first: int) -> Any:
        asked.append(epoch_seed)
        return original(self, data, epoch_seed, first)

    monkeypatch.setattr(LanguageModel, "batches", batches)
    for seed in (1, 2):
        plan = read_plan(place.table(run__seed=seed, schedule__epochs=2), "test")
        task = build_task(plan, place.data.vocabulary, None)
        folder = RunFolder.create(tmp_path / f"run{seed}", {}, {}, {})
        list(Trainer(task, place.data, folder, plan.optimizer, plan.schedule, plan.run).run())
    assert len(set(asked)) == len(asked) == 4
