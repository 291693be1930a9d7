"""cluster-update: the run that it changes or copies, its M-step, and what a kill leaves."""

from __future__ import annotations

import json
import re
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sememekit.analysis.evaluate import evaluate
from sememekit.commands._options import WhichName
from sememekit.errors import CheckpointError, ConfigError
from sememekit.jobs.cluster_update import _opened, cluster_update, training_state
from sememekit.jobs.train import train
from sememekit.reports.run import report
from sememekit.runs.augment import FILE as AUGMENT_FILE
from sememekit.runs.run import Run
from sememekit.training import EpochReport, RunFolder
from sememekit.training.manifest import write_run_manifest
from sememekit.training.snapshots import step_of
from sememekit.training.trainer import epoch_seed
from tests.faults.fitted import fit


def test_an_update_in_place_is_the_run_with_other_clusters(organized_copy: Path) -> None:
    before = Run.open(organized_copy).task  # read before the update
    pointer = RunFolder.open(organized_copy).pointer()
    report = cluster_update(organized_copy, running_passes=2)
    after = Run.open(organized_copy)
    assert report.before.perplexity == pytest.approx(
        report.before.cluster_perplexity * report.before.in_cluster_perplexity, rel=1e-6
    )
    assert evaluate(organized_copy, split="valid").model_dump()["perplexity"] == pytest.approx(
        report.after.perplexity, rel=1e-6
    )
    assert report.tokens_read == 2 * (len(after.data().tokens("train")) - 1)
    moved = (before.decoder.clusters() != after.task.decoder.clusters()).double().mean().item()
    assert report.moved_words == pytest.approx(moved)
    assert moved > 0
    assert report.statistics == "running"
    for name, value in before.named_parameters():
        assert torch.equal(value, dict(after.task.named_parameters())[name]), name
    folder = RunFolder.open(organized_copy)
    assert report.new_checkpoint not in pointer.values()
    assert set(folder.pointer().values()) == {report.new_checkpoint}, "both pointed to the one snapshot"
    assert [entry.name for entry in (organized_copy / "checkpoints").iterdir() if entry.is_dir()] == [report.new_checkpoint]
    assert folder.metrics()[-1]["kind"] == "ClusterUpdate"


def test_a_run_goes_on_after_an_update(organized_copy: Path) -> None:
    cluster_update(organized_copy)
    loaded = Run.open(organized_copy).task.decoder.clusters()
    train({"schedule": {"epochs": 3}}, organized_copy, resume=True)
    assert torch.equal(Run.open(organized_copy, which="last").task.decoder.clusters(), loaded)


def test_what_an_update_was_worth_is_what_it_is_worth(organized_copy: Path) -> None:
    """The best value of the run is the value with the new clusters, so that a better epoch after it is kept."""
    with pytest.MonkeyPatch.context() as patch:  # the validation text is read twice, not thrice
        patch.setattr("sememekit.tasks.language_model.LanguageModel.evaluate", lambda *given: 1 / 0)
        report = cluster_update(organized_copy)
    state = RunFolder.open(organized_copy).load("best", with_trainer=True).trainer
    assert state["progress"]["best"] == pytest.approx(report.after.perplexity)


def test_a_killed_update_leaves_the_old_checkpoint(organized_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = evaluate(organized_copy, split="valid")

    def killed(*anything: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "_point", killed)
    with pytest.raises(KeyboardInterrupt):
        cluster_update(organized_copy)
    monkeypatch.undo()
    assert evaluate(organized_copy, split="valid") == before
    cluster_update(organized_copy)
    assert evaluate(organized_copy, split="valid") != before


def test_an_m_step_trains_with_the_clusters_held(organized_copy: Path, tmp_path: Path) -> None:
    """The epochs are the run's own with ``freeze_clusters``; later training assigns clusters again."""
    decoder = {"decoder": {"update_every": 7}}
    folder = RunFolder.open(organized_copy)
    folder.replace_plan({**folder.plan, "decoder": {**folder.plan["decoder"], **decoder["decoder"]}})
    report = cluster_update(organized_copy, epochs=2, out=tmp_path / "new")
    assert report.trained is not None
    assert report.epochs_trained == 2
    assert report.trained.perplexity < report.after.perplexity
    assert report.finished == "4 epochs done"
    assert report.best_epoch > 2
    last = Run.open(tmp_path / "new", which="last").task.decoder
    cluster_update(organized_copy, out=tmp_path / "assigned")
    assigned = Run.open(tmp_path / "assigned").task.decoder
    assert torch.equal(last.clusters(), assigned.clusters()), "held"
    assert torch.equal(last.scores, assigned.scores), "no statistics either"
    assert int(last.held_steps) == 0
    records = RunFolder.open(tmp_path / "new").metrics()
    begun = [record["kind"] for record in records].index("ClusterUpdate")
    assert not [record for record in records[begun:] if record["kind"] == "ChangeReport"]
    assert [record["epoch"] for record in records[begun:] if record["kind"] == "EpochReport"] == [3, 4]
    train({"schedule": {"epochs": 5}}, tmp_path / "new", resume=True)
    later = RunFolder.open(tmp_path / "new").metrics()[len(records) :]
    assert [record for record in later if record["kind"] == "ChangeReport"], "and assigns again"


def test_a_stopped_m_step_goes_on_to_the_same_bits(organized_copy: Path, tmp_path: Path) -> None:
    shutil.copytree(organized_copy, tmp_path / "twin")
    cluster_update(organized_copy, epochs=2)

    def kill(report: object) -> None:
        if isinstance(report, EpochReport):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster_update(tmp_path / "twin", epochs=2, on_report=kill)
    train({}, tmp_path / "twin", resume=True)
    whole, resumed = (Run.open(run, which="last").task.state_dict() for run in (organized_copy, tmp_path / "twin"))
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())


def test_an_m_step_never_drops_a_later_snapshot(organized_copy: Path, tmp_path: Path) -> None:
    folder = RunFolder.open(organized_copy)
    state = folder.load("best", with_trainer=True)
    later = folder.save(step_of(state.name) + 1, Run.open(organized_copy).task, state.trainer, best=False)
    with pytest.raises(ConfigError, match=rf"would delete the later {later} .*--out NEW_RUN, or .*--which last"):
        cluster_update(organized_copy, epochs=1)
    assert cluster_update(organized_copy, epochs=1, out=tmp_path / "new").trained is not None


def test_a_copy_leaves_the_run_as_it_was(organized_copy: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in organized_copy.rglob("*") if path.is_file()}
    report = cluster_update(organized_copy, out=tmp_path / "second")
    assert {path: path.read_bytes() for path in organized_copy.rglob("*") if path.is_file()} == before
    assert evaluate(tmp_path / "second", split="valid").model_dump()["perplexity"] == pytest.approx(
        report.after.perplexity, rel=1e-6
    )
    resumed = train({"schedule": {"epochs": 3}}, tmp_path / "second", resume=True)
    assert resumed.epochs == 3
    with pytest.raises(ConfigError, match="exists already; choose another --out"):
        cluster_update(organized_copy, out=tmp_path / "second")


def test_in_a_folder_of_its_own_the_snapshot_is_the_best_so_far(organized_copy: Path, tmp_path: Path) -> None:
    """A better snapshot of the run stays there, and the better epochs of the M-step are kept."""
    folder = RunFolder.open(organized_copy)
    state = folder.load("best", with_trainer=True)
    progress = {**state.trainer["progress"], "best": 1.0, "best_epoch": 1, "since_best": 1}
    folder.save(step_of(state.name) + 1, Run.open(organized_copy).task, {**state.trainer, "progress": progress}, best=False)
    report = cluster_update(organized_copy, which="last", out=tmp_path / "new")
    kept = RunFolder.open(tmp_path / "new").load("best", with_trainer=True).trainer["progress"]
    assert kept["best"] == pytest.approx(report.after.perplexity)
    assert (kept["best_epoch"], kept["since_best"]) == (2, 0)
    report = cluster_update(organized_copy, which="last", epochs=1, out=tmp_path / "trained")
    assert report.trained is not None
    assert report.trained.perplexity < report.after.perplexity
    assert report.best_epoch == 3


def best_of(run: Path) -> tuple[str, list[str]]:
    """Return the sentence of a run's page on its best weights, and the epochs that its table marks as the best."""
    report(run)
    page = (run / "report.html").read_text(encoding="utf-8")
    told = re.search(r'<p class="lead">[^<]* steps; ([^<]*)\. It [^<]*</p>', page)
    assert told is not None
    return told[1], re.findall(r'<tr><th scope="row">(\d+)</th>(?:<td[^>]*>[^<]*</td>)*<td>best</td></tr>', page)


@pytest.mark.parametrize("which", ["best", "last"])
def test_the_page_of_a_copy_marks_no_epoch_before_the_new_clusters(
    organized_copy: Path, tmp_path: Path, which: WhichName
) -> None:
    second = tmp_path / "second"
    assert best_of(organized_copy)[1] == ["2"]
    cluster_update(organized_copy, out=second, which=which)
    step = RunFolder.open(second).metrics()[-1]["step"]
    told = f"the best weights have the clusters that cluster-update gave them after {step:,} steps"
    assert best_of(second) == (told, [])
    train({"schedule": {"epochs": 3}}, second, resume=True)
    assert RunFolder.open(second).metrics()[-1]["best"], "an epoch is better than vectors that have not followed"
    assert best_of(second)[1] == ["3"]


def test_the_page_goes_by_the_best_weights_and_not_by_the_last_change(organized_copy: Path) -> None:
    """An update of the last weights leaves the best ones, and their epoch, as they are."""
    folder = RunFolder.open(organized_copy)
    state = folder.load("best", with_trainer=True)
    folder.save(step_of(state.name) + 1, Run.open(organized_copy).task, state.trainer, best=False)
    cluster_update(organized_copy, which="last")
    assert best_of(organized_copy)[1] == ["2"]
    kept = [record for record in folder.metrics() if record.get("epoch") != 2]
    (organized_copy / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")
    fit(organized_copy)
    told = f"the best weights are those after {step_of(state.name):,} steps, whose epoch is not in metrics.jsonl"
    assert best_of(organized_copy) == (told, [])


def test_an_update_of_the_best_weights_has_its_line_though_later_ones_are_there(organized_copy: Path) -> None:
    """The line stands behind the lines of the last snapshot; a line that somebody added before it does not become genuine."""
    folder = RunFolder.open(organized_copy)
    state = folder.load("best", with_trainer=True)
    folder.save(step_of(state.name) + 1, Run.open(organized_copy).task, state.trainer, best=False)
    folder.append_metrics({**folder.epochs()[-1], "valid": {"perplexity": 1.5}})
    cluster_update(organized_copy, which="best")
    measured = [record["kind"] for record in folder.metrics() if record["kind"] in ("EpochReport", "ClusterUpdate")]
    assert measured == ["EpochReport", "EpochReport", "ClusterUpdate"]
    assert all(record["valid"]["perplexity"] != 1.5 for record in folder.epochs())


@pytest.mark.parametrize("moment", ["create", "append_metrics", "save", "rename"])
def test_a_killed_copy_is_no_run_and_can_be_made_again(
    organized_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def killed(*anything: object, **named: object) -> None:
        raise KeyboardInterrupt

    (organized_copy / AUGMENT_FILE).write_text("{}\n")
    write_run_manifest(organized_copy)
    if moment == "rename":
        monkeypatch.setattr(Path, "replace", killed)
    else:
        monkeypatch.setattr(RunFolder, moment, killed)
    with pytest.raises(KeyboardInterrupt):
        cluster_update(organized_copy, out=tmp_path / "second")
    monkeypatch.undo()
    assert not (tmp_path / "second").exists()
    with pytest.raises(CheckpointError, match="does not exist"):
        train({}, tmp_path / "second", resume=True)
    cluster_update(organized_copy, out=tmp_path / "second")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "second"]
    kept = {path.name for path in organized_copy.iterdir() if path.is_file()} - {"report.html"}
    assert {path.name for path in (tmp_path / "second").iterdir() if path.is_file()} == kept
    assert (tmp_path / "second" / AUGMENT_FILE).read_text() == "{}\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epochs": -1}, "--epochs -1 is below 0; give 0 or more"),
        ({"running_passes": -2}, "--running-passes -2 is below 0; give 0 or more"),
        ({"running_passes": -1, "epochs": -1}, "--running-passes -1 is below 0; give 0 or more"),
    ],
)
def test_numbers_below_zero_are_refused(organized_copy: Path, given: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cluster_update(organized_copy, **given)  # type: ignore[arg-type]


def test_a_new_run_is_written_to_an_empty_folder_alone(organized_copy: Path, tmp_path: Path) -> None:
    for name in ("empty", "full"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "file").touch()
    options: dict[str, Any] = {"which": "best", "device": "cpu", "dtype": None}
    for out in (None, tmp_path / "absent", tmp_path / "empty"):
        assert _opened(organized_copy, 0, 0, out, **options)[0].folder.path == organized_copy
    for out in (tmp_path / "full", tmp_path / "full" / "file"):
        with pytest.raises(ConfigError, match=f"cluster-update: {out} exists already; choose another --out"):
            _opened(organized_copy, 0, 0, out, **options)


@pytest.mark.parametrize("stops", [False, True])
def test_a_longer_schedule_is_put_back_after_the_m_step(organized_copy: Path, stops: bool) -> None:
    """If a signal stopped it, the run ends with the M-step when it continues. The run uses the given device."""
    folder = RunFolder.open(organized_copy)
    schedule = {**folder.plan["schedule"], "epochs": 9}
    folder.replace_plan({**folder.plan, "schedule": schedule, "run": {**folder.plan["run"], "device": "auto"}})

    def on_report(report: object) -> None:
        if stops and isinstance(report, EpochReport):
            signal.raise_signal(signal.SIGTERM)

    report = cluster_update(organized_copy, epochs=2, device="cpu", on_report=on_report)
    plan = RunFolder.open(organized_copy).plan
    assert (plan["schedule"]["epochs"], plan["run"]["device"]) == (4 if stops else 9, "cpu")
    assert (report.epochs_trained, report.stopped) == (1 if stops else 2, stops)


def test_a_killed_m_step_in_a_new_folder_ends_with_its_epochs_when_it_is_resumed(organized_copy: Path, tmp_path: Path) -> None:
    """Without an M-step the new run has the schedule of the old one."""
    folder = RunFolder.open(organized_copy)
    folder.replace_plan({**folder.plan, "schedule": {**folder.plan["schedule"], "epochs": 9}})

    def kill(report: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster_update(organized_copy, epochs=2, out=tmp_path / "killed", on_report=kill)
    cluster_update(organized_copy, out=tmp_path / "new")
    epochs = [RunFolder.open(tmp_path / name).plan["schedule"]["epochs"] for name in ("killed", "new")]
    assert epochs == [4, 9]


def test_the_best_value_is_of_the_validation_split_whatever_was_measured(organized_copy: Path, tmp_path: Path) -> None:
    report = cluster_update(organized_copy, split="test", out=tmp_path / "new")
    state = RunFolder.open(tmp_path / "new").load("best", with_trainer=True).trainer
    valid = evaluate(tmp_path / "new", split="valid").model_dump()["perplexity"]
    assert state["progress"]["best"] == pytest.approx(valid, rel=1e-6) != pytest.approx(report.after.perplexity, rel=1e-3)
    record = RunFolder.open(tmp_path / "new").metrics()[-1]
    assert (record["split"], record["statistics"], report.statistics) == ("test", "exact", "exact")
    assert record["values"]["objective_after"] == report.objective_after


@pytest.mark.parametrize(
    ("best", "finished", "epochs", "alone", "wanted"),
    [
        (True, "", 0, False, ({"epoch": 5, "finished": "", "best": 9.0, "best_epoch": 3, "since_best": 2}, 4, 0)),
        (True, "done", 0, False, ({"epoch": 5, "finished": "done", "best": 9.0, "best_epoch": 3, "since_best": 2}, 5, 0)),
        (False, "done", 0, False, ({"epoch": 5, "finished": "done", "best": 1.0, "best_epoch": 3, "since_best": 2}, 5, 0)),
        (False, "done", 0, True, ({"epoch": 5, "finished": "done", "best": 9.0, "best_epoch": 5, "since_best": 0}, 5, 0)),
        (True, "done", 2, True, ({"epoch": 6, "finished": "", "best": 9.0, "best_epoch": 3, "since_best": 0}, 7, 16)),
        (True, "", 2, False, ({"epoch": 5, "finished": "", "best": 9.0, "best_epoch": 3, "since_best": 0}, 6, 16)),
    ],
)
def test_training_goes_on_from_the_state_of_the_snapshot(
    best: bool, finished: str, epochs: int, alone: bool, wanted: tuple[dict[str, Any], int, int]
) -> None:
    """Each epoch of the M-step has 10 batches, 4 of which are done."""
    progress = {"epoch": 5, "finished": finished, "batch": 4, "best": 1.0, "best_epoch": 3, "since_best": 2}
    trainers = {"best" if best else "last": {"progress": progress, "other": 1}}
    orders: list[int] = []

    def num_batches(data: Any, order: int) -> int:
        orders.append(order)
        return 10

    folder = SimpleNamespace(
        pointer=lambda: {"best": "a", "last": "b"},
        load=lambda which, with_trainer: SimpleNamespace(trainer=trainers[which] if with_trainer else None),
    )
    loaded: Any = SimpleNamespace(
        folder=folder,
        snapshot="a" if best else "b",
        plan=SimpleNamespace(run=SimpleNamespace(seed=3, earlier_epochs=7)),
        task=SimpleNamespace(num_batches=num_batches),
    )
    state, last, steps = training_state(loaded, loaded, 9.0, epochs, alone=alone)
    stand, wanted_last, wanted_steps = wanted
    assert (state, last, steps) == ({"progress": {**stand, "batch": 4}, "other": 1}, wanted_last, wanted_steps)
    assert orders == [epoch_seed(3, 7 + epoch) for epoch in range(last - epochs + 1, last + 1)]
