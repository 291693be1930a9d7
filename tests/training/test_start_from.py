"""A run that begins with the best weights of another: finetuning."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.commands._progress import epoch_line
from sememekit.commands._typed_table import typed_table
from sememekit.data.prepared import PreparedData
from sememekit.errors import CheckpointError
from sememekit.jobs.train import train
from sememekit.runs.run import Run
from sememekit.runs.start_from import table_of_run
from sememekit.runs.training import open_training
from sememekit.sememes import build_graph, open_lexicon
from sememekit.tasks.language_model import LanguageModel
from sememekit.training import EpochReport, RunFolder
from sememekit.training.trainer import epoch_seed
from tests.small_run import Place
from tests.training.resuming import assert_same_bits, last, stop_after
from tests.training.scripted import script_validation

runner = CliRunner()


@pytest.fixture(scope="module")
def trained(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("trained") / "first"
    train(place.table("sdlm", schedule__epochs=2, optimizer__learning_rate=3.0), run)
    return run


@pytest.fixture
def first(trained: Path, tmp_path: Path) -> Path:
    """A run to begin from, which a test may change."""
    return shutil.copytree(trained, tmp_path / "first")


def tuning(run: Path, *overrides: str) -> dict[str, dict[str, object]]:
    return typed_table("mixture/finetune", overrides, {}, {}, table_of_run(run))


def test_the_plan_comes_along_and_the_recipe_lies_on_top(first: Path) -> None:
    table = tuning(first, "schedule.epochs=3")
    assert table["optimizer"]["learning_rate"] == 3.0
    assert table["optimizer"]["averaging"] == "from_start"
    assert (table["schedule"]["stop_non_monotone"], table["schedule"]["epochs"]) == (5, 3)
    assert table["decoder"]["name"] == "sdlm"
    assert table["graph"]["path"] == str(first / "graph.json")
    assert table["run"]["start_from"] == str(first)


def test_a_claim_stays_with_the_run_that_made_it(place: Place, tmp_path: Path) -> None:
    claim = {"paper": "p", "table": "1", "row": "r", "metric": "perplexity", "value": 1.0}
    train({**place.table(schedule__epochs=1), "claim": claim}, tmp_path / "first")
    assert "claim" not in table_of_run(tmp_path / "first")


def test_what_is_no_better_than_the_start_is_not_kept(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = script_validation(monkeypatch, [40.0, 41.0, 42.0])
    report = train(tuning(first, "schedule.epochs=2"), tmp_path / "tuned")
    assert (report.best_valid, report.best_epoch, report.epochs) == (40.0, 0, 2)
    start = RunFolder.open(first).load("best", with_trainer=False).weights
    assert_same_bits(start, judged[0])
    assert_same_bits(start, RunFolder.open(tmp_path / "tuned").load("best", with_trainer=False).weights)
    assert not torch.equal(judged[1]["embedding.weight"], start["embedding.weight"])


def test_a_better_epoch_is_kept(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = script_validation(monkeypatch, [40.0, 39.0])
    report = train(tuning(first, "schedule.epochs=1"), tmp_path / "tuned")
    assert (report.best_valid, report.best_epoch) == (39.0, 1)
    assert_same_bits(judged[1], RunFolder.open(tmp_path / "tuned").load("best", with_trainer=False).weights)
    (first / "plan.json").unlink()
    assert Run.open(tmp_path / "tuned", device="cpu").graph is not None, "a run needs nothing but its folder"


@pytest.mark.parametrize("cut", [1, 41, pytest.param(30, marks=pytest.mark.slow)])
def test_stopping_and_going_on_leaves_no_trace(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    table = tuning(first, "schedule.epochs=2", "task.input_dropout=0.2")
    train(table, tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_after(patch, cut)
        assert train(table, tmp_path / "cut").stopped
    train(table, tmp_path / "cut", resume=True)
    assert_same_bits(last(tmp_path / "whole").weights, last(tmp_path / "cut").weights)
    assert_same_bits(last(tmp_path / "whole").trainer, last(tmp_path / "cut").trainer)


def test_a_run_killed_before_its_first_checkpoint_begins_with_those_weights_again(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tuning(first, "schedule.epochs=1")
    train(table, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr("sememekit.training.trainer.Trainer.keep_initial_weights", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(table, tmp_path / "killed")
    train({}, tmp_path / "killed", resume=True)
    assert_same_bits(last(tmp_path / "whole").weights, last(tmp_path / "killed").weights)


def test_what_does_not_fit_is_said_before_anything_is_written(place: Place, first: Path, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("苹果\n水果\n", encoding="utf-8")
    other_graph = tmp_path / "other.graph"
    build_graph(place.data.vocabulary, [open_lexicon(f"list:{tmp_path / 'list.txt'}")]).save(other_graph)
    for changes, told in (
        (
            ("encoder.hidden_size=8", "encoder.output_size=6", "task.input_dropout=0.3", "task.batch_size=3"),
            r"encoder.hidden_size is 6 there, given 8; .*leave out the recipe",
        ),
        (
            ("encoder.num_layers=3", "encoder.dropout=0.3", "decoder.num_bases=3"),
            r".*decoder.num_bases is 2 there, given 3; .*encoder.num_layers is 2 there, given 3; .*leave out the recipe",
        ),
        (
            ("encoder.name=gru", "encoder.hidden_size=6", "task.batch_size=3", "task.input_dropout=0.3"),
            r"encoder.name is 'lstm' there, given 'gru'; .*leave out the recipe",
        ),
        (
            ("graph.path=" + str(tmp_path / "other.graph"),),
            r"graph.path is '.*first/graph.json' there, given '.*other.graph'; ",
        ),
    ):
        with pytest.raises(CheckpointError, match=rf"--from .*first: its weights do not fit this model: {told}"):
            train(tuning(first, *changes), tmp_path / "tuned")
    other = Place(tmp_path / "other", max_vocabulary=5)
    with pytest.raises(
        CheckpointError, match=r"--from .*first: it was trained on vocabulary .*\(10 words\).*\(5 words\).*--data"
    ):
        train(
            {**place.table(), "data": {"path": str(other.data.folder)}, "run": {"start_from": str(first)}}, tmp_path / "tuned"
        )
    with pytest.raises(CheckpointError, match="does not exist"):
        table_of_run(tmp_path / "nowhere")
    assert not (tmp_path / "tuned").exists()


def test_words_are_sampled_again_until_the_rate_is_cut_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_validation(monkeypatch, [50.0, 60.0, 40.0, 40.0])
    table = place.table(schedule__epochs=3, decoder__samples=5, decoder__samples_until="first-cut")
    train(table, tmp_path / "first")
    best = RunFolder.open(tmp_path / "first").load("best", with_trainer=False).weights
    assert int(best["decoder.sampler.exact"]) == 1
    epochs = RunFolder.open(tmp_path / "first").epochs()
    assert [epoch["estimated"] for epoch in epochs] == [True, True, False], "the cut is after the second epoch"
    page = (tmp_path / "first" / "report.html").read_text("utf-8")
    assert page.count("(estimated)") == 2
    assert "estimated from 5 sampled words, exact from the first cut on" in page
    lines = [epoch_line(EpochReport(**{key: value for key, value in epoch.items() if key != "kind"})) for epoch in epochs]
    assert ["nats/token (estimated from sampled words), valid" in line for line in lines] == [True, True, False]
    with open_training(table_of_run(tmp_path / "first"), tmp_path / "two", resume=False, on_remark=print) as training:
        assert isinstance(training.task, LanguageModel)
        assert training.task.decoder.estimates_in_training
        assert torch.equal(training.task.embedding.weight, best["embedding.weight"])


def test_exact_training_goes_on_from_sampled_training(place: Place, tmp_path: Path) -> None:
    """The first run's record of a cut rate has no place in a model that samples nothing."""
    train(place.table(schedule__epochs=1, decoder__samples=5, decoder__samples_until="first-cut"), tmp_path / "first")
    best = RunFolder.open(tmp_path / "first").load("best", with_trainer=False).weights
    table = table_of_run(tmp_path / "first")
    table["decoder"]["samples"] = 0
    with open_training(table, tmp_path / "exact", resume=False, on_remark=print) as training:
        assert isinstance(training.task, LanguageModel)
        assert not training.task.decoder.estimates_in_training
        assert torch.equal(training.task.embedding.weight, best["embedding.weight"])


def test_order_and_masks_are_not_those_that_the_weights_have_met(place: Place, tmp_path: Path) -> None:
    """Batches and masks that come again together are known by heart."""
    met: list[tuple[int, bytes]] = []
    batches = LanguageModel.batches

    def noted(task: LanguageModel, data: PreparedData, seed: int, first: int) -> Iterator[Any]:
        met.append((seed, torch.get_rng_state().numpy().tobytes()))
        return batches(task, data, seed, first)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LanguageModel, "batches", noted)
        train(place.table(schedule__epochs=2), tmp_path / "one")
        for before, name in (("one", "two"), ("two", "three")):
            table = table_of_run(tmp_path / before)
            table["schedule"]["epochs"] = 1
            train(table, tmp_path / name)
    seeds, states = zip(*met, strict=True)
    assert len({states[0], *states[2:]}) == 3  # the first epoch of each run: nothing is drawn inside of them here
    assert seeds == tuple(epoch_seed(1, epoch) for epoch in (1, 2, 3, 4))


def test_the_same_command_resumes_after_the_first_run_was_trained_longer(place: Place, tmp_path: Path) -> None:
    train(place.table(schedule__epochs=1), tmp_path / "first")
    table = table_of_run(tmp_path / "first")
    train(table, tmp_path / "tuned")
    train(place.table(schedule__epochs=2), tmp_path / "first", resume=True)
    train({**table_of_run(tmp_path / "first"), "schedule": table["schedule"]}, tmp_path / "tuned", resume=True)
    plans = [RunFolder.open(tmp_path / "tuned").plan["run"]["earlier_epochs"]]
    train(table_of_run(tmp_path / "first"), tmp_path / "other")
    plans += [RunFolder.open(tmp_path / "other").plan["run"]["earlier_epochs"]]
    assert plans == [1, 2]


def test_as_a_person_types_it(first: Path, tmp_path: Path) -> None:
    flags = ["--from", str(first), "--recipe", "mixture/finetune", "--set", "schedule.epochs=1", "--json", "--quiet"]
    result = runner.invoke(app, ["train", *flags, "--out", str(tmp_path / "tuned")])
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["epochs"] == 1
    result = runner.invoke(app, ["train", "--from", str(tmp_path / "no"), "--out", str(tmp_path / "two")])
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert "does not exist" in result.stderr
