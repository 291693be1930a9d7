"""train --seeds: a folder each, mean and spread, resumed with more seeds, stopped, and what fails."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.config import trusting_code
from sememekit.errors import CheckpointError, ConfigError, DataError, TrainingError
from sememekit.files import read_sealed, sealed
from sememekit.jobs.seeds import _of_earlier_calls, _report, of_engine, train_seeds
from sememekit.jobs.train import TrainReport, train
from sememekit.training import RunFolder
from tests.commands.processes import play_processes
from tests.faults.fitted import fit
from tests.small_run import Place

runner = CliRunner()


def seeded(place: Place, seed: int, **changes: object) -> dict[str, object]:
    return place.table(run__seed=seed, **changes)


def test_each_seed_is_the_run_that_train_makes_of_it(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_processes(monkeypatch)
    table, out = place.table(), tmp_path / "three"
    seen: list[tuple[str, int, int | None]] = []
    report = train_seeds(table, out, (1, 7), jobs=1, progress=lambda *told: seen.append(told))
    alone = [train(seeded(place, seed), tmp_path / str(seed)).best_valid for seed in (1, 7)]
    assert [run.best_valid for run in report.runs] == alone
    assert [run.run for run in report.runs] == [str(out / "seed-1"), str(out / "seed-7")]
    assert report.mean == statistics.fmean(alone)
    assert report.sd == statistics.stdev(alone)
    assert alone[0] != alone[1]
    assert seen[-1] == ("train seed-7", 1, 1)
    assert seen[0] == ("train seed-1", 1, 60), "30 batches in each of two epochs"
    assert read_sealed(out / "seeds.json", CheckpointError) == report.model_dump(mode="json")

    further = train_seeds({}, out, (1, 7, 9), jobs=1, resume=True)
    assert [run.best_valid for run in further.runs][:2] == alone
    plans = [RunFolder.open(out / f"seed-{seed}").plan for seed in (1, 9)]
    assert [plan["run"].pop("seed") for plan in plans] == [1, 9]
    assert plans[0] == plans[1]
    assert plans[0]["encoder"]["hidden_size"] == 6


def test_the_settings_are_there_before_a_seed_is_trained(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first call that was killed can be resumed."""
    monkeypatch.setattr("sememekit.jobs.seeds.train_all", lambda *rest, **more: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train_seeds(place.table(), tmp_path / "out", (1, 7))
    kept = read_sealed(tmp_path / "out" / "seeds.json", CheckpointError)
    assert (kept["seeds"], kept["runs"], kept["table"]["encoder"]["hidden_size"]) == ([], [], 6)


def test_resumed_seeds_are_not_tracked_because_a_file_says_so(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_processes(monkeypatch)
    out = tmp_path / "runs"
    train_seeds(place.table(schedule__epochs=1), out, (1,), jobs=1)
    table = read_sealed(out / "seeds.json", CheckpointError)
    table["table"]["run"]["track"] = ["mlflow"]
    (out / "seeds.json").write_bytes(sealed(table))
    assert len(train_seeds({}, out, (1, 2), jobs=1, resume=True).runs) == 2
    assert RunFolder.open(out / "seed-2").plan["run"]["track"] == []


def test_what_is_there_is_not_trained_over_and_other_settings_are_refused(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_processes(monkeypatch)
    out = tmp_path / "runs"
    with pytest.raises(CheckpointError, match=r"seeds\.json is missing, so there is nothing to resume"):
        train_seeds(place.table(), out, (1,), resume=True)
    train_seeds(place.table(schedule__epochs=1), out, (1,), jobs=1)
    kept = (out / "seeds.json").read_bytes()
    with pytest.raises(CheckpointError, match=r"seed-1 exists already; continue with --resume"):
        train_seeds(place.table(), out, (1, 2))
    with pytest.raises(CheckpointError, match=r"seed-1 exists already; continue with --resume"):
        train_seeds(place.table(encoder__hidden_size=99), out, (3,))
    with pytest.raises(ConfigError, match=r"seed-1: --resume: .* has encoder\.hidden_size=6, given 99"):
        train_seeds({"encoder": {"hidden_size": 99}}, out, (1,), jobs=1, resume=True)
    assert (out / "seeds.json").read_bytes() == kept
    assert train_seeds({"schedule": {"epochs": 3}}, out, (1,), jobs=1, resume=True).runs[0].epochs == 3


def test_a_seed_that_none_can_have_is_told_before_any_is_trained(place: Place, tmp_path: Path) -> None:
    for seed in (2**43, -1):
        with pytest.raises(ConfigError, match=rf"the plan \[run\]: key 'seed': .*, given {seed}"):
            train_seeds(place.table(), tmp_path / "runs", (1, seed))
    assert not (tmp_path / "runs").exists()


def test_a_seed_that_fails_is_named_with_its_folder(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_processes(monkeypatch)
    table = place.table(optimizer__learning_rate=1e30, optimizer__clip=1e30)
    with pytest.raises(TrainingError, match=r"runs/seed-4: .*start again with a lower rate"):
        train_seeds(table, tmp_path / "runs", (4, 5), jobs=1)
    assert not (tmp_path / "runs" / "seed-5" / "plan.json").exists()


def test_a_stop_keeps_what_has_begun(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_processes(monkeypatch)
    report = train_seeds(place.table(), tmp_path / "runs", (1, 2), jobs=1, should_stop=lambda: True)
    assert report.stopped
    assert (report.mean, report.sd) == (None, None)
    assert train_seeds({}, tmp_path / "runs", (1, 2), jobs=1, resume=True).mean is not None


def test_seeds_of_earlier_calls_stay_in_the_table(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_processes(monkeypatch)
    out, remarks = tmp_path / "runs", list[str]()
    first = train_seeds(place.table(), out, (3, 1, 2), jobs=1)
    by_seed = dict(zip(first.seeds, first.runs, strict=True))
    assert all(run.tokens_per_second > 0 for run in first.runs)
    again = train_seeds({}, out, (2, 4), jobs=1, resume=True, on_remark=remarks.append)
    assert again.runs[0].tokens_per_second > 0, "of the epochs of the call that trained it"
    assert again.seeds == (2, 4, 1, 3)
    assert (again.runs[2], again.runs[3]) == (by_seed[1], by_seed[3])
    assert again.mean == statistics.fmean(run.best_valid or 0 for run in again.runs)
    assert remarks == []
    assert read_sealed(out / "seeds.json", CheckpointError) == again.model_dump(mode="json")

    longer = train_seeds({"schedule": {"epochs": 3}}, out, (1, 2), jobs=1, resume=True, on_remark=remarks.append)
    assert longer.seeds == (1, 2), "a mean of unlike trainings is of nothing"
    (remark,) = remarks
    assert remark.startswith("left out of seeds.json: seed-3, seed-4, which this call did not train")
    assert remark.endswith(f"sememekit train --out {out} --seeds 1,2,3,4 --resume")
    assert train_seeds({}, out, (1, 2, 3, 4), jobs=1, resume=True).seeds == (1, 2, 3, 4)


def test_a_folder_of_seeds_is_no_run_to_resume_and_train_says_what_to_type(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    for seed in (10, 2):
        (out / f"seed-{seed}").mkdir(parents=True)
        (out / f"seed-{seed}" / "plan.json").write_text("{}")
    done = runner.invoke(app, ["train", "--out", str(out), "--resume"])
    assert done.exit_code == 1
    assert done.stderr == (
        f"sememekit: error: {out} holds runs of 2 seeds; go on with all of them: sememekit train --out {out} --seeds 2,10 "
        f"--resume, or with one: sememekit train --out {out}/seed-2 --resume\n"
    )


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("--seeds", "1,x"), "--seeds '1,x': expected numbers with commas between, such as 1,2,3"),
        (("--seeds", "1,2,1"), "--seeds 1,2,1: a seed is given twice"),
        (("--jobs", "2"), "add --seeds 1,2,3"),
        (("--seeds", "1", "--seed", "1"), "--seed and --seeds exclude each other"),
    ],
)
def test_wrong_seeds_are_usage_errors(place: Place, tmp_path: Path, typed: tuple[str, ...], message: str) -> None:
    done = runner.invoke(app, ["train", "--data", str(place.data.folder), "--out", str(tmp_path / "out"), *typed])
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_signal_stops_all_with_one_line_and_the_same_command_goes_on(place: Place, tmp_path: Path) -> None:
    settings = [
        "task.embedding_size=4",
        "encoder.hidden_size=4",
        "schedule.epochs=400",
        "run.stall_epochs=0",
        "optimizer.learning_rate=1",
    ]
    sets = [part for setting in settings for part in ("--set", setting)]
    command = [sys.executable, "-m", "sememekit", "train", "--data", str(place.data.folder), "--seeds", "1,2,3", *sets]
    command += ["--out", str(tmp_path / "runs")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 200
    while not all((tmp_path / f"runs/seed-{seed}/metrics.jsonl").is_file() for seed in (1, 2)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=200)
    assert child.returncode == 75, err
    *epochs, last = err.splitlines()
    assert last == f"stopped by a signal; go on with: sememekit train --out {tmp_path / 'runs'} --seeds 1,2,3 --resume"
    assert all(": epoch " in line for line in epochs), "of the run that began first"
    assert "stopped" in out
    assert not (tmp_path / "runs" / "seed-3" / "plan.json").exists(), "two at a time"
    done = subprocess.run(
        [*command, "--resume", "--set", "schedule.epochs=4", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [run["run"][-1] for run in json.loads(done.stdout)["runs"]] == ["1", "2", "3"]


def test_code_that_the_folder_names_is_not_imported(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_processes(monkeypatch)
    out, traces = tmp_path / "runs", tmp_path / "imported"
    train_seeds(place.table(schedule__epochs=1), out, (1, 2), jobs=1)
    (tmp_path / "stranger.py").write_text(f"open({str(traces)!r}, 'w').close()\nclass Act: ...\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def name_code(path: Path, *slots: str) -> bytes:
        before = path.read_bytes()
        found = inner = json.loads(before)
        for slot in slots:
            inner = inner[slot]
        inner["name"] = "stranger:Act"
        path.write_text(json.dumps(found), encoding="utf-8")
        fit(out)
        return before

    for slot in ("decoder", "encoder", "task"):
        for path, inside in ((out / "seeds.json", ("table",)), (out / "seed-2" / "plan.json", ())):
            if path.name == "seeds.json":
                table = read_sealed(path, CheckpointError)
                table["table"].setdefault(slot, {})
                kept = path.read_bytes()
                path.write_bytes(sealed(table))
                name_code(path, *inside, slot)
            else:
                kept = name_code(path, *inside, slot)
            with trusting_code(False), pytest.raises(ConfigError, match=r"stranger:Act"):
                train_seeds({}, out, (1, 3), jobs=1, resume=True)
            path.write_bytes(kept)
            fit(out)
    assert not traces.exists()
    (out / "seeds.json").write_bytes(sealed({"table": 3}))
    with pytest.raises(CheckpointError, match=r"seeds\.json has no table of settings"):
        train_seeds({}, out, (1,), jobs=1, resume=True)


def test_a_figure_that_was_typed_into_the_report_is_refused(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_processes(monkeypatch)
    out = tmp_path / "runs"
    train_seeds(place.table(schedule__epochs=1), out, (1,), jobs=1)
    table = json.loads((out / "seeds.json").read_text(encoding="utf-8"))
    table["runs"][0]["best_valid"] = 1.5
    (out / "seeds.json").write_text(json.dumps(table), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"seeds\.json does not match its own checksum"):
        train_seeds({}, out, (2,), jobs=1, resume=True)
    del table["sha256"]
    (out / "seeds.json").write_text(json.dumps(table), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"seeds\.json does not match its own checksum"):
        train_seeds({}, out, (2,), jobs=1, resume=True)


def report_of(seed: int, valid: float | None = 9.0, stopped: bool = False) -> TrainReport:
    return TrainReport(
        run=f"elsewhere/seed-{seed}",
        epochs=2,
        metric="" if valid is None else "perplexity",
        best_valid=valid,
        best_epoch=1,
        tokens_per_second=5.0,
        parameters=3,
        finished="",
        stopped=stopped,
    )


def test_seeds_of_before_stay_if_they_were_finished_with_the_same_model(tmp_path: Path) -> None:
    plan = {"encoder": {"hidden_size": 6}, "run": {"seed": 0}}
    for seed in range(1, 7):
        own = {**plan, "run": {"seed": seed}} if seed != 4 else {"encoder": {"hidden_size": 8}}
        RunFolder.create(tmp_path / f"seed-{seed}", own, {}, {})
    told = {seed: report_of(seed, stopped=seed == 3).model_dump(mode="json") for seed in (1, 2, 3, 4)}
    before = {"seeds": [*told, 5], "runs": [*told.values(), "no report"]}
    remarks: list[str] = []
    found = _of_earlier_calls(tmp_path, (1, 7), before, plan, remarks.append)
    assert found == {2: report_of(2).model_copy(update={"run": str(tmp_path / "seed-2")})}
    assert remarks == [
        "left out of seeds.json: seed-3, seed-4, seed-5, seed-6, which this call did not train and that are unfinished, of "
        "other settings or not in the seeds.json of before; to have all: "
        f"sememekit train --out {tmp_path} --seeds 1,2,3,4,5,6,7 --resume"
    ]
    assert _of_earlier_calls(tmp_path, (1, 3, 4, 5, 6), before, plan, remarks.append).keys() == {2}
    assert len(remarks) == 1, "nothing was left out"


@pytest.mark.parametrize(
    ("values", "mean", "sd", "metric"),
    [((), None, None, ""), ((8.0,), 8.0, None, "perplexity"), ((None, 8.0, 10.0), 9.0, 2**0.5, "perplexity")],
)
def test_mean_and_spread_are_of_seeds_with_a_value(
    values: tuple[float | None, ...], mean: float | None, sd: float | None, metric: str
) -> None:
    runs = tuple(report_of(seed, value, stopped=value is None) for seed, value in enumerate(values))
    report = _report(Path("out"), {"run": {}}, tuple(range(len(values))), runs)
    assert (report.mean, report.sd, report.metric) == (mean, None if sd is None else pytest.approx(sd), metric)
    assert (report.stopped, report.seeds, report.table) == (None in values, tuple(range(len(values))), {"run": {}})


def test_what_every_seed_lacks_is_told_before_there_is_a_folder(place: Place, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="absent"):
        train_seeds(place.table(data__path=str(tmp_path / "absent")), tmp_path / "runs", (1,))
    with pytest.raises(ConfigError, match="engine 'none'"):
        train_seeds(place.table(), tmp_path / "runs", (1,), engine="none")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("table", "message"), [(3, "has no table of settings"), ({"encoder": 3}, "encoder")])
def test_a_table_that_is_none_is_refused(place: Place, tmp_path: Path, table: Any, message: str) -> None:
    (tmp_path / "seeds.json").write_bytes(sealed({"table": table}))
    with pytest.raises((CheckpointError, ConfigError), match=message):
        train_seeds({}, tmp_path, (1,), resume=True)


@pytest.mark.parametrize("engine", ["local", "slurm"])
def test_the_command_that_goes_on_names_the_engine(engine: str) -> None:
    assert of_engine(engine) == ("" if engine == "local" else " --engine slurm")
