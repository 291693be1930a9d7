"""The training loop: what it learns, and how it ends when there is no point in going on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from sememekit.decoders import DECODERS
from sememekit.errors import TrainingError
from sememekit.jobs.train import train
from sememekit.runs.build import build_task, data_of, graph_of
from sememekit.runs.plan import read_plan
from sememekit.runs.run import Run
from sememekit.tasks.base import PrimaryMetric
from sememekit.tasks.language_model import LanguageModel
from sememekit.training import RunFolder, StepReport, Trainer
from tests.small_run import Place
from tests.training.scripted import ADAM, epochs, script_validation, trained


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


@pytest.mark.parametrize(
    "decoder",
    [
        decoder if decoder in ("adaptive", "mos", "sdlm", "self_organized") else pytest.param(decoder, marks=pytest.mark.slow)
        for decoder in DECODERS
    ],
)
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
    """One step agrees by hand, with a rate of 2, a clip of 0.05 and weight decay."""
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
    monkeypatch.setattr("sememekit.training.divergence.uniform_perplexity", lambda task: None)
    settings = {"schedule__epochs": 2, "run__stall_epochs": 1, "run__stall_ratio": 0.9}
    if stuck:
        with pytest.raises(TrainingError, match="training is stuck: after 1 epochs validation figure"):
            trained(place, tmp_path / "run", **settings)
    else:
        assert trained(place, tmp_path / "run", **settings)[0].epochs == 2


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
