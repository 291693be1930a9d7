"""The training loop: what it learns, when it slows down, and how it ends when there is no point in going on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from sememekit.commands.train import train
from sememekit.decoders import DECODERS
from sememekit.errors import CheckpointError, TrainingError
from sememekit.runs.build import build_task, data_of, graph_of
from sememekit.runs.plan import read_plan
from sememekit.runs.run import Run
from sememekit.runs.train_report import TrainReport
from sememekit.tasks.base import PrimaryMetric
from sememekit.tasks.language_model import LanguageModel
from sememekit.training import EpochReport, Report, RunFolder, StepReport, Trainer
from tests.small_run import Place

ADAM = {"optimizer__name": "adam", "optimizer__learning_rate": 0.02}


def trained(place: Place, out: Path, decoder: str = "softmax", **changes: object) -> tuple[TrainReport, list[Report]]:
    reports: list[Report] = []
    return train(place.table(decoder, **changes), out, on_report=reports.append), reports


def script_validation(monkeypatch: pytest.MonkeyPatch, values: list[float]) -> None:
    """Let validation give these perplexities, one an epoch, whatever the model is."""
    coming: Iterator[float] = iter(values)
    monkeypatch.setattr(LanguageModel, "evaluate", lambda self, data, split: {"perplexity": next(coming)})
    monkeypatch.setattr(LanguageModel, "uniform", lambda self: 1e9)


def epochs(reports: list[Report]) -> list[EpochReport]:
    return [report for report in reports if isinstance(report, EpochReport)]


@pytest.mark.parametrize("decoder", DECODERS)
def test_eight_tokens_are_learnt_by_heart(place: Place, decoder: str) -> None:
    sizes = {"task__embedding_size": 16, "encoder__hidden_size": 16, "encoder__num_layers": 1}
    plan = read_plan(place.table(decoder, **sizes, run__seed=4), "test")
    task = build_task(plan, place.data.vocabulary, graph_of(plan))
    tokens = place.data.vocabulary.encode(["我", "吃", "苹果", "。", "人", "买", "电脑", "。", "我"])
    batch = torch.from_numpy(tokens)[:, None]
    optimizer = torch.optim.Adam(task.parameters(), lr=0.02)
    start = task.encoder.start(1)
    for _ in range(800):
        optimizer.zero_grad()
        loss = task.loss(batch, start)
        assert loss.count == 8
        (loss.nats / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(task.parameters(), 0.25)
        optimizer.step()
        if float(loss.nats.detach()) < 8 * 0.05:
            return
    pytest.fail(f"{float(loss.nats.detach()) / 8} nats a token are left")


@pytest.mark.parametrize("decoder", DECODERS)
def test_training_beats_word_frequencies(place: Place, tmp_path: Path, decoder: str) -> None:
    report, reports = trained(place, tmp_path / "run", decoder, schedule__epochs=6, **ADAM)
    plan = read_plan(place.table(decoder), "test")
    data = data_of(plan)
    baseline = build_task(plan, data.vocabulary, graph_of(plan)).unigram_baseline(data, "valid")["perplexity"]
    assert report.best_valid is not None
    assert report.best_valid < 0.8 * baseline
    done = epochs(reports)
    assert [one.epoch for one in done] == [1, 2, 3, 4, 5, 6]
    assert done[-1].train_nats < done[0].train_nats
    assert report.tokens_per_second > 0
    assert report.finished == "6 epochs done"


def test_reports_add_up(place: Place, tmp_path: Path) -> None:
    _, reports = trained(place, tmp_path / "run", run__report_every=7)
    steps = [report for report in reports if isinstance(report, StepReport) and report.epoch == 1]
    assert [report.batch for report in steps] == [7, 14, 21, 28, 30]
    assert {report.num_batches for report in steps} == {30}
    rows = len(place.data.tokens("train")) // 4 - 1
    weights = [7 * 5, 7 * 5, 7 * 5, 7 * 5, rows - 28 * 5]
    mean = sum(report.nats * weight for report, weight in zip(steps, weights, strict=True)) / rows
    assert epochs(reports)[0].train_nats == pytest.approx(mean, rel=1e-6)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(place: Place, tmp_path: Path) -> None:
    for name, seed in (("one", 5), ("two", 5), ("three", 6)):
        trained(place, tmp_path / name, run__seed=seed, task__input_dropout=0.2)
    one, two, three = (
        RunFolder.open(tmp_path / name).load("last", with_trainer=False).weights for name in ("one", "two", "three")
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not any(torch.equal(one[name], three[name]) for name in one)


def test_a_step_is_clipped_sgd_on_the_mean_loss(place: Place, tmp_path: Path) -> None:
    """By hand: one step with a rate of 2, a clip of 0.05 and weight decay."""
    own = {"optimizer__learning_rate": 2.0, "optimizer__clip": 0.05, "optimizer__weight_decay": 0.01}
    plan = read_plan(place.table(**own), "test")
    task, twin = (build_task(plan, place.data.vocabulary, None) for _ in range(2))
    folder = RunFolder.create(tmp_path / "run", {}, {}, {})
    trainer = Trainer(task, place.data, folder, plan.optimizer, plan.schedule, plan.run)
    steps = iter([False])
    list(trainer.run(lambda: next(steps, True) or True))
    batch = next(twin.batches(place.data, 1, 0))
    loss = twin.loss(batch, twin.start(place.data))
    (loss.nats / loss.count).backward()
    norm = torch.stack([parameter.grad.square().sum() for parameter in twin.parameters()]).sum().sqrt()
    assert norm > 0.05
    for ours, theirs in zip(task.parameters(), twin.parameters(), strict=True):
        expected = theirs - 2.0 * (theirs.grad * 0.05 / (norm + 1e-6) + 0.01 * theirs)
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-7)


def test_the_rate_is_cut_when_validation_is_no_better(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 40.0, 41.0, 39.0, 39.0, 38.0])
    _, reports = trained(place, tmp_path / "run", schedule__epochs=6, schedule__factor=0.5)
    done = epochs(reports)
    assert [report.rate for report in done] == [4.0, 4.0, 4.0, 2.0, 2.0, 1.0]
    assert [report.best for report in done] == [True, True, False, True, False, True]
    assert [report.rate_cut for report in done] == [False, False, True, False, True, False]


def test_no_cut_within_the_grace(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 51.0, 52.0, 53.0, 54.0])
    _, reports = trained(place, tmp_path / "run", schedule__epochs=5, schedule__factor=0.5, schedule__grace=3)
    assert [report.rate for report in epochs(reports)] == [4.0, 4.0, 4.0, 4.0, 2.0]


def test_a_factor_of_one_never_cuts(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 51.0, 52.0])
    _, reports = trained(place, tmp_path / "run", schedule__epochs=3, schedule__factor=1.0, schedule__minimum_rate=9.0)
    assert [(report.rate, report.rate_cut) for report in epochs(reports)] == [(4.0, False)] * 3


def test_the_rate_decays_after_every_epoch_beside_the_cuts(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_validation(monkeypatch, [50.0, 40.0, 41.0, 39.0])
    own = {"schedule__epochs": 4, "schedule__factor": 0.5, "schedule__decay": 0.9}
    _, reports = trained(place, tmp_path / "run", **own)
    assert [report.rate for report in epochs(reports)] == pytest.approx([4.0, 3.6, 3.24, 1.458])


def test_a_creeping_improvement_is_none_by_the_threshold(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 49.9, 40.0])
    own = {"schedule__epochs": 3, "schedule__factor": 0.5, "schedule__threshold": 0.01, "schedule__reload_best": True}
    report, reports = trained(place, tmp_path / "run", **own)
    done = epochs(reports)
    assert [(one.best, one.rate_cut) for one in done] == [(True, False), (True, True), (True, False)]
    assert report.best_valid == 40.0


def test_a_cut_after_a_creeping_best_keeps_its_weights(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """reload_best goes back to better weights only; those of a new best are not replaced by older ones."""
    common = {"schedule__epochs": 2, "schedule__factor": 0.5, "schedule__threshold": 0.01}
    weights = []
    for reload in (False, True):
        script_validation(monkeypatch, [50.0, 49.9])
        trained(place, tmp_path / f"run{reload}", **common, schedule__reload_best=reload)
        weights.append(RunFolder.open(tmp_path / f"run{reload}").load("best", with_trainer=False).weights)
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_the_best_weights_come_back_when_asked(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 60.0])
    trained(place, tmp_path / "run", schedule__epochs=2, schedule__reload_best=True)
    folder = RunFolder.open(tmp_path / "run")
    best, last = (folder.load(which, with_trainer=False).weights for which in ("best", "last"))
    assert all(torch.equal(best[name], last[name]) for name in best)
    script_validation(monkeypatch, [50.0, 60.0])
    trained(place, tmp_path / "plain", schedule__epochs=2)
    folder = RunFolder.open(tmp_path / "plain")
    best, last = (folder.load(which, with_trainer=False).weights for which in ("best", "last"))
    assert not any(torch.equal(best[name], last[name]) for name in best)


@pytest.mark.parametrize(
    ("changes", "num_epochs", "why"),
    [
        ({"schedule__stop_after": 2}, 4, "no better validation for 2 epochs"),
        ({"schedule__minimum_rate": 0.9, "schedule__factor": 0.5}, 5, "the rate fell below 0.9"),
        ({"schedule__epochs": 3}, 3, "3 epochs done"),
    ],
)
def test_a_run_ends_for_a_stated_reason(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], num_epochs: int, why: str
) -> None:
    script_validation(monkeypatch, [50.0, 40.0, 41.0, 42.0, 43.0, 44.0, 45.0])
    report, reports = trained(place, tmp_path / "run", **{"schedule__epochs": 7, **changes})
    assert (report.epochs, report.finished, report.best_epoch) == (num_epochs, why, 2)
    assert epochs(reports)[-1].finished == why


def test_waiting_longer_reopens_a_run(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 51.0, 40.0, 41.0])
    trained(place, tmp_path / "run", schedule__epochs=9, schedule__stop_after=1)
    report = train({"schedule": {"stop_after": 2, "epochs": 4}}, tmp_path / "run", resume=True)
    assert (report.epochs, report.best_valid, report.finished) == (4, 40.0, "4 epochs done")


def spoil(monkeypatch: pytest.MonkeyPatch, step: int, where: str) -> None:
    """Put NaN into a part of the model right before a step."""
    original = Trainer._step

    def spoiled(self: Any, batch: Any, window: Any) -> None:
        if self.progress.step == step:
            module = self.task.get_submodule(where)
            module.register_forward_hook(lambda module, inputs, output: output * float("nan"))
        original(self, batch, window)

    monkeypatch.setattr(Trainer, "_step", spoiled)


@pytest.mark.parametrize("where", ["embedding", "decoder.gate"])
def test_a_module_that_gives_nan_is_named_with_its_batch(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    spoil(monkeypatch, 37, where)
    pattern = (
        rf"not finite at epoch 2, batch 8, step 38: .*module '{where}'.*optimizer\.learning_rate=1\).*optimizer\.clip=0\.125"
    )
    with pytest.raises(TrainingError, match=pattern):
        trained(place, tmp_path / "run", "sdlm")
    assert RunFolder.open(tmp_path / "run").load("last", with_trainer=True).trainer["progress"]["step"] == 30


def test_a_parameter_that_is_nan_is_named(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Trainer._step

    def spoiled(self: Any, batch: Any, window: Any) -> None:
        if self.progress.step == 3:
            with torch.no_grad():
                self.task.decoder.bias[2] = float("inf")
        original(self, batch, window)

    monkeypatch.setattr(Trainer, "_step", spoiled)
    with pytest.raises(TrainingError, match=r"epoch 1, batch 4, step 4: parameter 'decoder\.bias' holds non-finite"):
        trained(place, tmp_path / "run")


def test_a_gradient_that_is_nan_is_named_before_it_is_applied(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Trainer._step

    def spoiled(self: Any, batch: Any, window: Any) -> None:
        if self.progress.step == 3:
            self.task.decoder.bias.register_hook(lambda gradient: gradient * float("nan"))
        original(self, batch, window)

    monkeypatch.setattr(Trainer, "_step", spoiled)
    with pytest.raises(TrainingError, match=r"step 4: .*the gradient of 'decoder\.bias'"):
        trained(place, tmp_path / "run")


def test_a_run_that_learns_nothing_ends_with_advice(place: Place, tmp_path: Path) -> None:
    slow = {"optimizer__learning_rate": 1e-6, "schedule__epochs": 9, "run__stall_epochs": 2}
    with pytest.raises(
        TrainingError,
        match=r"stuck: after 2 epochs.*knows word frequencies "
        r"only.*learning_rate=.*stall_epochs=4",
    ):
        trained(place, tmp_path / "run", **slow)
    folder = RunFolder.open(tmp_path / "run")
    assert [record["epoch"] for record in folder.metrics() if record["kind"] == "EpochReport"] == [1, 2]
    with pytest.raises(TrainingError, match="stuck: after 4 epochs"):
        train({"run": {"stall_epochs": 4}}, tmp_path / "run", resume=True)
    assert train({"run": {"stall_epochs": 0}, "schedule": {"epochs": 5}}, tmp_path / "run", resume=True).epochs == 5


def test_a_run_that_once_learnt_is_never_called_stuck(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [1000.0, 1.5, 1000.0, 1000.0, 1000.0])
    report, _ = trained(place, tmp_path / "run", schedule__epochs=5, run__stall_epochs=2)
    assert report.epochs == 5


@pytest.mark.parametrize(
    ("lower_is_better", "value", "stuck"),
    [(True, 95.0, True), (True, 80.0, False), (False, 0.52, True), (False, 0.6, False), (False, 0.0, True)],
)
def test_nine_tenths_of_guessing_is_learning_whichever_way_is_better(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lower_is_better: bool, value: float, stuck: bool
) -> None:
    baseline = 100.0 if lower_is_better else 0.5
    monkeypatch.setattr(LanguageModel, "metric", PrimaryMetric("figure", lower_is_better=lower_is_better))
    monkeypatch.setattr(LanguageModel, "evaluate", lambda self, data, split: {"figure": value})
    monkeypatch.setattr(LanguageModel, "unigram_baseline", lambda self, data, split: {"figure": baseline})
    monkeypatch.setattr(LanguageModel, "uniform", lambda self: None)
    settings = {"schedule__epochs": 2, "run__stall_epochs": 1, "run__stall_ratio": 0.9}
    if stuck:
        with pytest.raises(TrainingError, match="training is stuck: after 1 epochs validation figure"):
            trained(place, tmp_path / "run", **settings)
    else:
        assert trained(place, tmp_path / "run", **settings)[0].epochs == 2


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_validation_that_is_no_number_ends_the_run_and_the_last_good_checkpoint_stays(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: float
) -> None:
    script_validation(monkeypatch, [50.0, bad])
    message = (
        rf"^training diverged: validation perplexity is {bad} after epoch 2; start again .* and the best is that of epoch 1$"
    )
    with pytest.raises(TrainingError, match=message):
        trained(place, tmp_path / "run", schedule__epochs=3)
    folder = RunFolder.open(tmp_path / "run")
    pointer = folder.pointer()
    assert pointer["last"] == pointer["best"] == "step-00000030"
    assert Run.open(tmp_path / "run", which="last", device="cpu").snapshot == pointer["last"]
    script_validation(monkeypatch, [bad])
    with pytest.raises(TrainingError, match="no checkpoint was written"):
        trained(place, tmp_path / "first", schedule__epochs=3)
    assert RunFolder.open(tmp_path / "first").pointer() == {}


def test_worse_than_guessing_all_words_alike_is_divergence(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_validation(monkeypatch, [2.3e123])
    monkeypatch.setattr(LanguageModel, "uniform", lambda self: 1000.0)
    with pytest.raises(
        TrainingError, match=r"diverged: validation perplexity is 2\.3e\+123 after epoch 1, .* 1,000 words"
    ) as error:
        trained(place, tmp_path / "run")
    assert len(str(error.value)) < 400


def test_an_over_fitted_model_may_be_worse_than_guessing_on_new_text(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was better before, and it is better on the text that it learns."""
    script_validation(monkeypatch, [50.0, 2000.0])
    monkeypatch.setattr(LanguageModel, "uniform", lambda self: 1000.0)
    report, _ = trained(place, tmp_path / "run")
    assert (report.best_valid, report.finished) == (50.0, "2 epochs done")
    script_validation(monkeypatch, [0.5, 2000.0])
    monkeypatch.setattr(LanguageModel, "uniform", lambda self: 1.5)  # now the training loss is worse than that, too
    with pytest.raises(TrainingError, match="diverged: validation perplexity is 2000 after epoch 2"):
        trained(place, tmp_path / "other")


@pytest.mark.parametrize("which", ["epoch", "checkpoint", "signal"])
def test_weights_that_are_not_finite_are_never_written(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """The loss of a step is finite, and what the step leaves is not: seen before the snapshot, not at the next loss."""
    original = Trainer._step
    last = {"epoch": 60, "checkpoint": 36, "signal": 41}[which]

    def spoiled(self: Any, batch: Any, window: Any) -> None:
        original(self, batch, window)
        if self.progress.step == last:
            with torch.no_grad():
                self.task.decoder.bias[2] = float("nan")

    monkeypatch.setattr(Trainer, "_step", spoiled)
    plan = read_plan(place.table(run__checkpoint_every=12), "test")
    folder = RunFolder.create(tmp_path / "run", plan.table(), {}, {})
    trainer = Trainer(
        build_task(plan, place.data.vocabulary, None), place.data, folder, plan.optimizer, plan.schedule, plan.run
    )
    message = f"'decoder\\.bias' holds values that are not finite after step {last}, in epoch 2; .* best is that of epoch 1$"
    with pytest.raises(TrainingError, match=message):
        list(trainer.run(lambda: which == "signal" and trainer.progress.step == last))
    assert folder.pointer()["best"] == "step-00000030"
    weights = folder.load("last", with_trainer=False).weights
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


def test_a_model_whose_weights_are_not_finite_is_refused(place: Place, tmp_path: Path) -> None:
    trained(place, tmp_path / "run", schedule__epochs=1)
    run = Run.open(tmp_path / "run", device="cpu")
    with torch.no_grad():
        run.task.get_parameter("decoder.bias")[1] = float("inf")
    run.folder.revise(run.snapshot, run.task)
    with pytest.raises(CheckpointError, match=r"run: its best checkpoint .* diverged: 'decoder\.bias' holds values"):
        Run.open(tmp_path / "run", device="cpu").load()


def test_a_run_that_over_fits_ends_in_peace(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation near frequencies, worse than before, while the training text is learned: the best weights stand."""
    script_validation(monkeypatch, [50.0, 51.0, 52.0, 53.0, 54.0])
    monkeypatch.setattr(LanguageModel, "unigram_baseline", lambda self, data, split: {"perplexity": 50.5})
    changes = {"schedule__epochs": 9, "run__stall_epochs": 3}
    report, _ = trained(place, tmp_path / "run", **changes)
    assert (report.epochs, report.best_epoch) == (3, 1)
    assert report.finished.startswith("the model over-fits: since epoch 1 validation got worse")
    report = train({"run": {"stall_epochs": 5}}, tmp_path / "run", resume=True)
    assert report.epochs == 5


def test_the_advice_of_a_stuck_run_starts_from_its_first_rate(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_validation(monkeypatch, [1.0, 1.1, 1.2, 1.3])
    monkeypatch.setattr(LanguageModel, "unigram_baseline", lambda self, data, split: {"perplexity": 1.01})
    changes = {"schedule__epochs": 9, "run__stall_epochs": 4, "optimizer__learning_rate": 0.003}
    with pytest.raises(TrainingError, match="stuck") as error:
        trained(place, tmp_path / "run", **changes)
    rates = [float(rate) for rate in re.findall(r"optimizer\.learning_rate=([0-9.e-]+)", str(error.value))]
    assert rates, str(error.value)
    assert min(rates) >= 0.003
    assert "cut from 0.003 to 4.6875e-05" in str(error.value)


def test_bfloat16_trains_near_single_precision(place: Place, tmp_path: Path) -> None:
    exact, _ = trained(place, tmp_path / "exact", "sdlm", schedule__epochs=3, **ADAM)
    lowered, _ = trained(place, tmp_path / "lowered", "sdlm", schedule__epochs=3, **ADAM, run__dtype="bfloat16")
    assert lowered.best_valid == pytest.approx(exact.best_valid, rel=0.1)


def test_a_run_folder_is_all_that_is_needed(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    trained(place, tmp_path / "run", "sdlm", schedule__epochs=1)
    (tmp_path / "place").rename(tmp_path / "gone")
    run = Run.open(tmp_path / "run", device="cpu")
    assert run.graph is not None
    assert not run.task.training
