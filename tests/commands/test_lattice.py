"""Lattice models from text to perplexity: train, resume, evaluate, and what is refused on the way."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.analysis.score import score
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.runs.run import Run
from sememekit.runs.start_from import table_of_run
from sememekit.runs.training import open_training
from sememekit.tasks.lattice.model import Lattice
from sememekit.training import EpochReport, RunFolder, Trainer
from tests.small_run import Place, write_text


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("lattice"), end_of_sentence=True, chunks=8, chunk_length=3)


def table(place: Place, **changes: Any) -> dict[str, Any]:
    """A plan of a tiny lattice model; ``task__state="tree"`` changes a key."""
    plain: dict[str, Any] = {
        "data": {"path": str(place.data.folder)},
        "task": {"name": "lattice", "embedding_size": 6, "sub_size": 5, "longest_chunk": 3, "batch_size": 8},
        "encoder": {"name": "lattice_lstm", "hidden_size": 6},
        "optimizer": {"name": "adam", "learning_rate": 0.02, "clip": 1.0},
        "schedule": {"epochs": 3},
        "run": {"threads": 1, "device": "cpu", "stall_epochs": 0, "report_every": 5},
    }
    for path, value in changes.items():
        slot, _, key = path.partition("__")
        plain[slot][key] = value
    return plain


def run_of(place: Place, folder: Path, **changes: Any) -> list[EpochReport]:
    reports: list[Any] = []
    train(table(place, **changes), folder, on_report=reports.append)
    return [report for report in reports if isinstance(report, EpochReport)]


@pytest.mark.parametrize("state", ["marginal", pytest.param("segmental", marks=pytest.mark.slow)])
def test_a_model_learns_and_is_judged_from_its_folder_alone(place: Place, tmp_path: Path, state: str) -> None:
    epochs = run_of(place, tmp_path / "run", task__state=state)
    assert epochs[-1].valid["perplexity"] < epochs[0].valid["perplexity"] < len(place.data.vocabulary)
    report = evaluate_ppl(tmp_path / "run", split="valid")
    assert report.perplexity == pytest.approx(min(epoch.valid["perplexity"] for epoch in epochs))
    assert report.tokens == len(place.data.tokens("valid"))
    size = place.data.signature.splits["valid"]
    assert report.bits_per_byte == pytest.approx(report.nats / math.log(2) / size.bytes)
    assert report.marginal == ("exact marginal" if state == "segmental" else "exact marginal (marginal)")
    assert f"marginal:{report.marginal}" in report.signature
    assert "state:sentence" in report.signature


def test_the_perplexity_is_that_of_the_sentences_one_by_one(place: Place, tmp_path: Path) -> None:
    run_of(place, tmp_path / "run", schedule__epochs=1)
    task = Run.open(tmp_path / "run").task
    assert isinstance(task, Lattice)
    stream, bounds = task.sentences(place.data, "test")
    alone = [float(task.lattices([stream[a:b]]).log_probabilities()[0]) for a, b in pairwise(bounds)]
    assert evaluate_ppl(tmp_path / "run").nats == pytest.approx(-sum(alone), rel=1e-5)


SLOW = [pytest.param(state, marks=pytest.mark.slow) for state in ("direct", "monte_carlo", "marginal", "tree")]


@pytest.mark.parametrize("state", ["gumbel", "gumbel_tree", "segmental", *SLOW])
def test_a_run_that_was_stopped_has_the_bits_of_one_that_was_not(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    plan = table(place, task__state=state, task__output_dropout=0.3, task__input_dropout=0.3, schedule__epochs=2)
    plan["task"] |= {"copies": 2, "inner_layers": 2, "inner_dropout": 0.2, "batch_size": 30}
    if state == "gumbel_tree":
        plan["task"] |= {"temperature_every": 3}  # that of "gumbel" falls in proportion to the run
    plan["encoder"] |= {"dropout": 0.3, "recurrent_dropout": 0.3}
    train(plan, tmp_path / "straight")
    original = Trainer.run

    def stopping(self: Trainer, should_stop: Callable[[], bool] = lambda: False) -> Any:
        return original(self, lambda: self.progress.step >= 7)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "run", stopping)
        assert train(plan, tmp_path / "stopped").stopped
    train(plan, tmp_path / "stopped", resume=True)
    one, other = (RunFolder.open(tmp_path / name).load("last", with_trainer=True) for name in ("straight", "stopped"))
    assert one.name == other.name
    assert set(one.weights) == set(other.weights)
    for name, weight in one.weights.items():
        assert torch.equal(weight, other.weights[name]), name


def test_a_loss_per_sentence_has_a_gradient_of_the_mean_sentence(place: Place, tmp_path: Path) -> None:
    """One plain step that no clip touches: all sentences have five tokens, so it is five times as long."""
    steps = []
    for per in ("token", "sentence"):
        changes = {"task__loss_per": per, "task__batch_size": 1000, "optimizer__name": "sgd", "optimizer__clip": 1e9}
        plan = table(place, schedule__epochs=1, **changes)
        before = build_task(read_plan(plan, "case"), place.data.vocabulary, None, chunks=place.data.chunks()).state_dict()
        train(plan, tmp_path / per)
        after = RunFolder.open(tmp_path / per).load("last", with_trainer=False).weights
        steps.append(after["output.weight"] - before["output.weight"])
    torch.testing.assert_close(steps[1], 5 * steps[0], rtol=1e-3, atol=1e-6)


def test_a_run_is_told_how_long_it_is(place: Place, tmp_path: Path) -> None:
    """The temperature of its last update is the floor, however few there are."""
    run_of(place, tmp_path / "run", task__state="gumbel", task__temperature_share=1.0, task__batch_size=30, schedule__epochs=2)
    plan = read_plan(RunFolder.open(tmp_path / "run").plan, "case")
    task = Run.open(tmp_path / "run", which="last").task
    assert isinstance(task, Lattice)
    task.expect_updates(plan.schedule.epochs * task.num_batches(place.data, 0))
    assert task.temperature == pytest.approx(0.25)


class BeforeTrainingError(Exception):
    """An error in place of a training, after its remark."""


def stop_before_training(remark: str) -> None:
    raise BeforeTrainingError(remark)


def test_long_sentences_are_left_out_with_a_remark_and_still_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_text(tmp_path / "text")
    for split in ("train", "valid"):
        path = folder / f"{split}.txt"
        path.write_text(path.read_text(encoding="utf-8") + "苹果 梨 " * 300 + "\n", encoding="utf-8")
    preprocess(
        "plain", folder, tmp_path / "data", PreprocessSettings(min_count=1, end_of_sentence=True, chunks=8, chunk_length=3)
    )
    place = Place(tmp_path / "place", end_of_sentence=True, chunks=8, chunk_length=3)
    data = PreparedData.open(tmp_path / "data")
    said: list[str] = []
    plan = table(place, data__path=str(data.folder), schedule__epochs=1)
    train(plan, tmp_path / "run", on_remark=said.append)
    assert len(said) == 1
    assert said[0].startswith(
        "1 of 151 training sentences have more than task.max_length=400 tokens and are left out, 44.5 % of"
    )
    assert "task.max_length=0" in said[0]
    task = Run.open(tmp_path / "run").task
    assert isinstance(task, Lattice)
    assert max(batch.num_tokens for batch in task.batches(data, 1, 0)) == 5
    places: list[int] = []
    original = Lattice.batch_of

    def watched(self: Lattice, sentences: Any) -> Any:
        batch = original(self, sentences)
        places.append(batch.tokens.numel())
        return batch

    with monkeypatch.context() as patch:
        patch.setattr(Lattice, "batch_of", watched)
        assert evaluate_ppl(tmp_path / "run", split="valid").tokens == len(data.tokens("valid"))
    assert max(places) <= 40 * 400, "the long sentence does not make 37 short ones as long as itself"
    expected = (
        "1 of 151 training sentences have more than 400 tokens, the longest 600, and memory grows with the longest of a batch; "
        "task.max_length=400 leaves them out"
    )
    with pytest.raises(BeforeTrainingError, match=re.escape(expected)):
        train({**plan, "task": {**plan["task"], "max_length": 0}}, tmp_path / "all", on_remark=stop_before_training)


def test_settings_without_effect_are_remarked(place: Place, tmp_path: Path) -> None:
    said: list[str] = []
    plan = table(place, task__sub_model=False, task__sub_size=4, task__batch_size=40, schedule__epochs=1)
    train(plan, tmp_path / "run", on_remark=said.append)
    assert said == ["task.sub_size=4 changes nothing: it is read with sub_model=True only, and task.sub_model is False"]


def test_batches_hold_every_sentence_once_and_long_ones_are_left_out_of_training(place: Place) -> None:
    plan = read_plan(table(place, task__max_length=3), "case")
    task = build_task(plan, place.data.vocabulary, None, chunks=place.data.chunks())
    assert isinstance(task, Lattice)
    stream, bounds = task.sentences(place.data, "train")
    lengths = np.diff(bounds)
    assert set(lengths.tolist()) == {5}
    with pytest.raises(DataError, match="the shortest has 4"):
        task.num_batches(place.data, 0)
    other = build_task(read_plan(table(place), "case"), place.data.vocabulary, None, chunks=place.data.chunks())
    assert isinstance(other, Lattice)
    seen = sum(len(batch.lengths) for batch in other.batches(place.data, 4, 0))
    assert seen == len(lengths)
    assert len(list(other.batches(place.data, 4, 2))) == other.num_batches(place.data, 4) - 2
    assert len(stream) == lengths.sum()


def test_what_a_lattice_cannot_do_is_said(place: Place, tmp_path: Path) -> None:
    run_of(place, tmp_path / "run", schedule__epochs=1)
    with pytest.raises(ConfigError, match="whole sentences"):
        evaluate_ppl(tmp_path / "run", batch_size=3)
    with pytest.raises(ConfigError, match="evaluate-ppl RUN"):
        score(tmp_path / "run", ["我 吃"])
    preprocess("plain", place.text, tmp_path / "endless", PreprocessSettings(min_count=1, end_of_sentence=False))
    with pytest.raises(ConfigError, match="chunk-length 3"):
        train(table(place, data__path=str(tmp_path / "endless")), tmp_path / "none")
    with pytest.raises(ConfigError, match="end-of-sentence"):
        train(table(place, data__path=str(tmp_path / "endless"), task__longest_chunk=1), tmp_path / "none")
    assert not (tmp_path / "none").exists()
    assert PreparedData.open(tmp_path / "endless").vocabulary.end_id is None


def test_an_output_layer_that_only_estimates_is_refused(place: Place, tmp_path: Path) -> None:
    """Such a layer would be the exact one at its full price, with settings that nothing reads; no run is left behind."""
    for decoder in ({"name": "sampled", "samples": 4}, {"name": "mos", "num_components": 2, "samples": 4}):
        pattern = f"drawing words, as decoder '{decoder['name']}' does, saves no time; .* --set decoder.samples=0"
        with pytest.raises(ConfigError, match=pattern):
            train({**table(place), "decoder": decoder}, tmp_path / "run")
        assert not (tmp_path / "run").exists()
    train({**table(place, schedule__epochs=1), "decoder": {**decoder, "samples": 0}}, tmp_path / "run")


def test_an_output_layer_that_would_never_learn_its_clusters_is_refused(place: Place, tmp_path: Path) -> None:
    small = {"name": "self_organized", "gamma": 3.0, "frequency_budget": 0.5}
    pattern = "'self_organized' learns its clusters from .* take --decoder class_hsm.* or .*--set decoder.update_every=0"
    with pytest.raises(ConfigError, match=pattern):
        train({**table(place), "decoder": {**small, "update_every": 5}}, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    train({**table(place, schedule__epochs=1), "decoder": {**small, "update_every": 0}}, tmp_path / "run")


def test_the_temperature_counts_the_updates_of_its_own_run(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count comes neither with the best weights of an earlier epoch nor with the weights of another run."""
    values = iter([5.0, 6.0, 7.0])
    monkeypatch.setattr(Lattice, "evaluate", lambda self, data, split: {"perplexity": next(values)})
    run_of(place, tmp_path / "run", schedule__epochs=2, schedule__reload_best=True)
    folder = RunFolder.open(tmp_path / "run")
    best, last = (folder.load(which, with_trainer=True) for which in ("best", "last"))
    assert torch.equal(best.weights["output.weight"], last.weights["output.weight"])
    assert 0 < best.trainer["progress"]["step"] < last.trainer["progress"]["step"]
    for snapshot in (best, last):
        assert int(snapshot.weights["updates"]) == snapshot.trainer["progress"]["step"]
    with open_training(table_of_run(folder.path), tmp_path / "tuned", resume=False, on_remark=print) as training:
        begun = training.task.state_dict()
        assert int(begun["updates"]) == 0
        assert torch.equal(begun["output.weight"], best.weights["output.weight"])


@pytest.mark.parametrize(("changes", "copies"), [({}, 1), ({"task__copies": 2, "task__sub_model": False}, 2)])
def test_biases_begin_with_the_frequencies_of_entries(
    place: Place, tmp_path: Path, changes: dict[str, Any], copies: int
) -> None:
    decoder = {"name": "mos", "num_components": 2}
    plan = {**table(place, schedule__epochs=1, optimizer__learning_rate=1e-9, **changes), "decoder": decoder}
    train(plan, tmp_path / "run")
    task = Run.open(tmp_path / "run", which="last").task
    assert isinstance(task, Lattice)
    words, entries = place.data.vocabulary, task.entries
    lines = (place.text / "train.txt").read_text(encoding="utf-8").splitlines()
    sentences = [[*line.split(), "<eos>"] for line in lines]
    expected = torch.zeros(len(entries.names), dtype=torch.float64)
    for chunk in range(len(entries.chunks)):
        text = list(entries.chunks.text(chunk))
        known = [[word if word in words else "<unk>" for word in sentence] for sentence in sentences]
        met = sum(line[begin : begin + len(text)] == text for line in known for begin in range(len(line)))
        for row in entries.rows[chunk].tolist():
            expected[row] = math.log(met // copies + 1)
    if entries.sentinel is not None:
        expected[entries.sentinel] = expected.max()
    bias = task.decoder.bias.double()
    assert bias.std() > 0.3
    torch.testing.assert_close(bias, expected - expected.mean(), atol=1e-5, rtol=0)
