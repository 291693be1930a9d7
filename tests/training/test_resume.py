"""Stopping and going on leaves no trace: on the CPU the bits are equal to a run that never stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.jobs.train import train
from sememekit.runs.run import Run
from sememekit.training import EpochReport, Report, RunFolder, StepReport, StopReport
from sememekit.word_classes.file import write_clusters
from tests.small_run import Place
from tests.training.resuming import assert_same_bits, last, numbers, stop_after

DROPOUT = {"task__input_dropout": 0.3, "task__output_dropout": 0.3, "encoder__dropout": 0.3}


@pytest.fixture(scope="module")
def straight(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], tuple[Path, list[Report]]]:
    """Runs of 120 steps that never stop, trained once for each decoder and optimiser."""

    @cache
    def run(decoder: str, optimizer: str) -> tuple[Path, list[Report]]:
        folder, reports = tmp_path_factory.mktemp("straight") / "run", []
        train(long_table(place, decoder, optimizer), folder, on_report=reports.append)
        return folder, reports

    return run


def long_table(place: Place, decoder: str, optimizer: str) -> dict[str, Any]:
    rate = {"adam": 0.01, "adagrad": 0.1, "sgd": 4.0}[optimizer]
    own = {"optimizer__name": optimizer, "optimizer__learning_rate": rate, "schedule__factor": 0.5, "run__seed": 3}
    return place.table(decoder, **DROPOUT, **own, schedule__epochs=4)


CUTS = {"middle": 100, "middle-of-a-report": 73, "end-of-an-epoch": 90, "first-steps": 3}
FEW = (
    ("softmax", "sgd", "end-of-an-epoch"),
    ("softmax", "sgd", "first-steps"),
    ("sdlm", "adam", "middle-of-a-report"),
    ("softmax", "adagrad", "middle-of-a-report"),
    ("self_organized", "sgd", "middle"),
)
"""Every place of a stop, every optimiser, and every kind of state that an output layer has."""


@pytest.mark.parametrize(
    ("decoder", "optimizer", "cut"),
    [
        pytest.param(decoder, optimizer, at, id=f"{where}-{decoder}-{optimizer}", marks=() if few else pytest.mark.slow)
        for where, at in CUTS.items()
        for decoder, optimizer in (
            ("softmax", "sgd"),
            ("sdlm", "sgd"),
            ("sdlm", "adam"),
            ("softmax", "adagrad"),
            ("self_organized", "sgd"),
        )
        for few in [(decoder, optimizer, where) in FEW]
    ],
)
def test_120_steps_are_the_same_with_a_stop_among_them(
    place: Place, straight: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimizer: str, decoder: str, cut: int
) -> None:
    whole, reports = straight(decoder, optimizer)
    assert last(whole).trainer["progress"]["step"] == 4 * 30, "90 steps are three epochs"

    resumed: list[Report] = []
    table = long_table(place, decoder, optimizer)
    with monkeypatch.context() as patch:
        stop_after(patch, cut)
        report = train(table, tmp_path / "resumed", on_report=resumed.append)
    assert report.stopped
    assert isinstance(resumed[-1], StopReport)
    assert resumed[-1].step == cut
    train(table, tmp_path / "resumed", resume=True, on_report=resumed.append)

    one, other = last(whole), last(tmp_path / "resumed")
    assert one.name == other.name
    assert_same_bits(one.weights, other.weights)
    assert_same_bits(one.trainer, other.trainer)
    assert numbers(reports, EpochReport) == numbers(resumed, EpochReport)
    if cut % table["run"]["report_every"] == 0:
        assert numbers(reports, StepReport) == numbers(resumed, StepReport)
    records = [record for record in RunFolder.open(tmp_path / "resumed").metrics() if record["kind"] == "EpochReport"]
    assert [record["epoch"] for record in records] == list(range(1, 5))
    best = [RunFolder.open(folder).load("best", with_trainer=False) for folder in (whole, tmp_path / "resumed")]
    assert_same_bits(best[0].weights, best[1].weights)


def test_words_drawn_in_training_are_drawn_again(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = place.table("sampled", schedule__epochs=1)
    table["decoder"]["samples"] = 3
    train(table, tmp_path / "straight")
    with monkeypatch.context() as patch:
        stop_after(patch, 13)
        assert train(table, tmp_path / "stopped").stopped
    train({}, tmp_path / "stopped", resume=True)
    assert_same_bits(last(tmp_path / "straight").weights, last(tmp_path / "stopped").weights)
    train({**table, "decoder": {**table["decoder"], "samples": 4}}, tmp_path / "other")
    key = "embedding.weight"
    assert not torch.equal(last(tmp_path / "straight").weights[key], last(tmp_path / "other").weights[key])


def test_a_checkpoint_inside_an_epoch_is_a_place_to_go_on_from(place: Place, tmp_path: Path) -> None:
    table = place.table(**DROPOUT, schedule__epochs=3)
    train(table, tmp_path / "straight")

    class KilledError(Exception):
        pass

    def kill(report: Report) -> None:
        if report.step >= 40:
            raise KilledError

    with pytest.raises(KilledError):
        train(place.table(**DROPOUT, schedule__epochs=3, run__checkpoint_every=7), tmp_path / "killed", on_report=kill)
    assert last(tmp_path / "killed").trainer["progress"]["step"] == 35
    train({}, tmp_path / "killed", resume=True)
    assert_same_bits(last(tmp_path / "straight").weights, last(tmp_path / "killed").weights)


def test_more_epochs_later_equal_more_epochs_at_once(place: Place, tmp_path: Path) -> None:
    train(place.table(**DROPOUT, schedule__epochs=4), tmp_path / "straight")
    train(place.table(**DROPOUT, schedule__epochs=2), tmp_path / "longer")
    report = train({"schedule": {"epochs": 4}}, tmp_path / "longer", resume=True)
    assert (report.epochs, report.finished) == (4, "4 epochs done")
    assert_same_bits(last(tmp_path / "straight").weights, last(tmp_path / "longer").weights)
    assert RunFolder.open(tmp_path / "longer").plan["schedule"]["epochs"] == 4, "the plan says what was done"


def test_a_finished_run_is_left_as_it_is(place: Place, tmp_path: Path) -> None:
    first = train(place.table(), tmp_path / "run")
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    again = train({}, tmp_path / "run", resume=True)
    assert (again.epochs, again.best_valid, again.finished) == (first.epochs, first.best_valid, first.finished)
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


def test_a_run_stopped_before_its_first_checkpoint_starts_over(place: Place, tmp_path: Path) -> None:
    train(place.table(), tmp_path / "straight")

    def fail(report: Report) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(place.table(), tmp_path / "run", on_report=fail)
    assert not RunFolder.open(tmp_path / "run").pointer()
    with pytest.raises(CheckpointError, match=r"no best checkpoint yet.*--resume"):
        Run.open(tmp_path / "run").load()
    train({}, tmp_path / "run", resume=True)
    assert_same_bits(last(tmp_path / "straight").weights, last(tmp_path / "run").weights)


@pytest.fixture(scope="module")
def finished(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one epoch, which nothing may change."""
    run = tmp_path_factory.mktemp("finished") / "run"
    train(place.table(schedule__epochs=1), run)
    return run


@pytest.mark.parametrize(
    ("slot", "key", "value"),
    [
        ("encoder", "hidden_size", 7),
        ("decoder", "name", "sdlm"),
        ("optimizer", "learning_rate", 3.0),
        ("schedule", "factor", 0.9),
        ("run", "seed", 77),
        ("run", "dtype", "bfloat16"),
        ("task", "chunk_length", 9),
        ("optimizer", "learning_rat", 4.0),
    ],
)
def test_a_plan_that_contradicts_the_run_is_refused(finished: Path, slot: str, key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"--resume.*{slot}\.{key}.*{value}.*may change.*train --from .* --out OTHER"):
        train({slot: {key: value}}, finished, resume=True)


def test_the_same_plan_again_is_no_contradiction(place: Place, tmp_path: Path) -> None:
    table = place.table("sdlm", schedule__epochs=1)
    train(table, tmp_path / "run")
    assert train(table, tmp_path / "run", resume=True).epochs == 1


def test_another_graph_is_refused(place: Place, finished: Path, tmp_path: Path) -> None:
    from sememekit.sememes import SememeGraph

    train(place.table("sdlm", schedule__epochs=1), tmp_path / "run")
    other = tmp_path / "other.graph"
    SememeGraph.load(place.graph).drop_edges(0.5, seed=1).save(other)
    with pytest.raises(ConfigError, match=r"another sememe graph.*leave --graph out"):
        train({"graph": {"path": str(other)}}, tmp_path / "run", resume=True)
    with pytest.raises(ConfigError, match="another sememe graph"):
        train({"graph": {"path": str(other)}}, finished, resume=True)


def test_clusters_travel_with_the_run_and_others_are_refused(place: Place, finished: Path, tmp_path: Path) -> None:
    words = place.data.vocabulary
    for name, count in (("two", 2), ("three", 3)):
        write_clusters(tmp_path / name, words, [number % count for number in range(len(words))])
    taking: dict[str, Any] = {"schedule__epochs": 1, "clusters__path": str(tmp_path / "two")}
    table = place.table("class_hsm", **taking)
    table["decoder"]["classes"] = "file"
    train(table, tmp_path / "run")
    train({"clusters": {"path": str(tmp_path / "two")}}, tmp_path / "run", resume=True)
    with pytest.raises(ConfigError, match=r"other word clusters.*leave --clusters out"):
        train({"clusters": {"path": str(tmp_path / "three")}}, tmp_path / "run", resume=True)
    (tmp_path / "two").unlink()
    run = Run.open(tmp_path / "run")
    assert run.clusters.tolist() == [number % 2 for number in range(len(words))]
    with pytest.raises(ConfigError, match=r"decoder 'softmax' .*takes no word clusters; leave --clusters out"):
        train(place.table(**taking), tmp_path / "refused")
    with pytest.raises(ConfigError, match=r"'class_hsm' .*needs a file of word clusters; give it with --clusters FILE"):
        train({slot: keys for slot, keys in table.items() if slot != "clusters"}, tmp_path / "refused")
    with pytest.raises(ConfigError, match="other word clusters"):
        train({"clusters": {"path": str(tmp_path / "three")}}, finished, resume=True)


def test_other_text_of_the_same_words_is_refused(place: Place, finished: Path, tmp_path: Path) -> None:
    """The vocabulary does not tell: its counts are over all splits."""
    from sememekit.jobs.preprocess import preprocess
    from sememekit.prepare.settings import PreprocessSettings

    text = tmp_path / "text"
    text.mkdir()
    for name, source in (("train", "train"), ("valid", "test"), ("test", "valid")):
        (text / f"{name}.txt").write_bytes((place.text / f"{source}.txt").read_bytes())
    preprocess("plain", text, tmp_path / "data", PreprocessSettings(min_count=1, end_of_sentence=False))
    with pytest.raises(CheckpointError, match=r"another valid text.*--data"):
        train({"data": {"path": str(tmp_path / "data")}}, finished, resume=True)


def test_other_words_are_refused(finished: Path, tmp_path: Path) -> None:
    other = Place(tmp_path / "other", max_vocabulary=5)
    with pytest.raises(CheckpointError, match=r"vocabulary.*--data"):
        train({"data": {"path": str(other.data.folder)}}, finished, resume=True)


def test_data_that_have_moved_are_told_with_how_to_say_where(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(place.data.folder, "data")
    train(place.table(data__path="data", schedule__epochs=1), Path("run"))
    Path("data").rename("moved")
    with pytest.raises(
        DataError,
        match=rf"run was begun with the data in data, which are not there \(looked for in {tmp_path}\); "
        "say where they are: sememekit train --out run --resume --data DIR",
    ):
        train({}, Path("run"), resume=True)
    with pytest.raises(DataError, match="elsewhere: no such folder"):
        train({"data": {"path": "elsewhere"}}, Path("run"), resume=True)
    again = train({"data": {"path": "moved"}, "schedule": {"epochs": 2}}, Path("run"), resume=True)
    assert again.epochs == 2


def test_the_folder_of_another_run_is_not_written_into(place: Place, tmp_path: Path) -> None:
    train(place.table(schedule__epochs=1), tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"exists already; continue it with --resume"):
        train(place.table(), tmp_path / "run")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("keep me")
    with pytest.raises(CheckpointError, match=r"exists already and holds other files \(mine\.txt\)"):
        train(place.table(), tmp_path / "notes")
    with pytest.raises(CheckpointError, match=r"mine\.txt exists already and is a file"):
        train(place.table(), tmp_path / "notes" / "mine.txt")
    with pytest.raises(CheckpointError, match=r"is no run folder \(it has no plan\.json\)"):
        train({}, tmp_path / "notes", resume=True)
    with pytest.raises(CheckpointError, match="does not exist"):
        train({}, tmp_path / "nowhere", resume=True)
