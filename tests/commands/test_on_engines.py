"""Trainings, steps of claims and attacks on engines: the same results as here, and what a killed process costs."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.attack.folder import AttackFolder
from sememekit.claims.chain import Step
from sememekit.commands._program import app
from sememekit.engines.base import open_engine
from sememekit.errors import EngineError, TrainingError
from sememekit.jobs.attack import attack
from sememekit.jobs.recipes import toml_text
from sememekit.jobs.seeds import train_seeds
from sememekit.jobs.steps import call
from sememekit.jobs.sweep import sweep
from sememekit.jobs.train import train
from sememekit.signals import Stopped, StopRequest
from sememekit.training import EpochReport, Report, RunFolder
from tests.attack import toys
from tests.commands import attacks
from tests.small_run import Place

SLURM = "slurm:cluster=local,timeout_min=60"


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL, and Slurm's jobs")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("place"))


def kill_the_trainer_of(run: Path) -> None:
    """Kill the process that holds the run, as a machine that is switched off does."""
    os.kill(int((run / ".lock").read_text().split()[1]), signal.SIGKILL)


@pytest.mark.parametrize("engine", ["tests.engines.work:Here", pytest.param(SLURM, marks=pytest.mark.slow)])
def test_seeds_on_an_engine_are_those_of_this_machine(engine: str, place: Place, tmp_path: Path) -> None:
    pytest.importorskip("submitit" if engine == SLURM else "sys")
    told: list[str] = []

    def on_report(run: str, report: Report) -> None:
        if isinstance(report, EpochReport):
            told.append(run)

    report = train_seeds(place.table(), tmp_path / "there", (1, 2), engine=engine, on_report=on_report)
    here = [train(place.table(run__seed=seed, run__threads=1), tmp_path / str(seed)) for seed in (1, 2)]
    assert [run.best_valid for run in report.runs] == [run.best_valid for run in here]
    assert sorted(told) == ["seed-1", "seed-1", "seed-2", "seed-2"], "two epochs each"
    assert not report.stopped


@pytest.mark.slow
def test_a_killed_job_of_slurm_is_told_and_gone_on_with(place: Place, tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    killed: list[str] = []

    def on_report(run: str, report: Report) -> None:
        if isinstance(report, EpochReport) and not killed:
            killed.append(run)
            kill_the_trainer_of(tmp_path / "there" / run)

    table = place.table(schedule__epochs=6)
    with pytest.raises(
        TrainingError, match=rf"seed-1: job .* ended before it was done.* go on with: .*--resume --engine {SLURM}"
    ):
        train_seeds(table, tmp_path / "there", (1,), engine=SLURM, on_report=on_report)
    assert killed == ["seed-1"]
    report = train_seeds({}, tmp_path / "there", (1,), engine=SLURM, resume=True)
    assert (
        report.runs[0].best_valid
        == train(place.table(schedule__epochs=6, run__threads=1, run__seed=1), tmp_path / "1").best_valid
    )


@pytest.mark.slow
def test_a_lost_worker_of_dask_loses_no_epoch_and_nobody_types_anything(place: Place, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    killed: list[str] = []

    def on_report(run: str, report: Report) -> None:
        if isinstance(report, EpochReport) and report.epoch == 2 and not killed:
            killed.append(run)
            kill_the_trainer_of(tmp_path / "there" / run)

    report = train_seeds(place.table(schedule__epochs=6), tmp_path / "there", (1, 2), engine="dask", on_report=on_report)
    assert len(killed) == 1
    here = [train(place.table(run__seed=seed, run__threads=1, schedule__epochs=6), tmp_path / str(seed)) for seed in (1, 2)]
    assert [run.best_valid for run in report.runs] == [run.best_valid for run in here]
    epochs = [
        record["epoch"]
        for record in RunFolder.open(tmp_path / "there" / killed[0]).metrics()
        if record["kind"] == "EpochReport"
    ]
    assert epochs == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
def test_a_sweep_on_slurm_proposes_and_finds_the_same(place: Place, tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    pytest.importorskip("optuna")
    over = ["encoder.hidden_size=4,6,8"]
    here = sweep(place.table(), tmp_path / "here", over, trials=2, jobs=1)
    there = sweep(place.table(), tmp_path / "there", over, trials=2, jobs=1, engine=SLURM)
    assert [(one.number, one.settings, one.state, one.why, one.valid) for one in there.trials] == [
        (one.number, one.settings, one.state, one.why, one.valid) for one in here.trials
    ]


@pytest.mark.slow
def test_a_lost_worker_of_dask_changes_no_trial_of_a_sweep(place: Place, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    pytest.importorskip("optuna")
    table, run, killed = place.table(schedule__epochs=15), tmp_path / "there" / "trial-0001", list[str]()

    def progress(stage: str, done: int, total: int | None) -> None:
        metrics = run / "metrics.jsonl"
        if not killed and metrics.exists() and b"EpochReport" in metrics.read_bytes():
            killed.append(stage)
            kill_the_trainer_of(run)

    over = ["encoder.hidden_size=4,6,8"]
    (trial,) = sweep(table, tmp_path / "there", over, trials=1, jobs=1, engine="dask", progress=progress).trials
    assert killed
    epochs = [record for record in RunFolder.open(run).metrics() if record["kind"] == "EpochReport"]
    assert [record["epoch"] for record in epochs] == list(range(1, 16))
    assert trial.settings == {"encoder.hidden_size": 6}, "the plan as it is"
    assert trial.valid == train(table, tmp_path / "here").best_valid
    assert trial.cpu_seconds >= sum(record["cpu_seconds"] for record in epochs)


@pytest.mark.slow
def test_a_stop_reaches_a_training_elsewhere(place: Place, tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    epochs: list[int] = []

    def on_report(run: str, report: Report) -> None:
        if isinstance(report, EpochReport):
            epochs.append(report.epoch)

    table = place.table(schedule__epochs=3000)
    report = train_seeds(
        table, tmp_path / "there", (1,), engine=SLURM, on_report=on_report, should_stop=lambda: len(epochs) > 1
    )
    assert report.stopped
    assert report.runs[0].epochs >= 2


def predict_and_die_once(texts: list[str]) -> object:
    """The toy victim; its process is killed the first time that it is asked in another one than this."""
    trace = Path(os.environ["TESTS_DIED"])
    if os.getpid() != int(os.environ["TESTS_PARENT"]) and any(trace.parent.glob("a/.parts/*.jsonl")) and not trace.exists():
        trace.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return toys.predict(texts)


@pytest.mark.parametrize(
    "engine", ["local", pytest.param(SLURM, marks=pytest.mark.slow), pytest.param("dask", marks=pytest.mark.slow)]
)
def test_an_attack_has_the_same_bits_whatever_the_workers(engine: str, files: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip({"l": "sys", "s": "submitit", "d": "distributed"}[engine[0]])
    here = attacks.run(files, tmp_path / "here")
    there = attacks.run(files, tmp_path / "there", workers=2, engine=engine)
    assert (tmp_path / "there" / "examples.jsonl").read_bytes() == (tmp_path / "here" / "examples.jsonl").read_bytes()
    assert there.rates == here.rates
    assert not (tmp_path / "there" / ".parts").exists()


def test_a_stopped_attack_on_an_engine_goes_on_here_to_the_same_bits(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sememekit.jobs.attack._EXAMPLES", 1)
    attacks.run(files, tmp_path / "here")
    asked, seen = StopRequest(), list[tuple[str, int, int]]()
    asked.note()
    options = {
        "engine": "tests.engines.work:HereUntilStopped",
        "asked_to_stop": asked,
        "progress": lambda *told: seen.append(told),
    }
    assert attacks.run(files, tmp_path / "there", workers=2, **options).stopped
    total, done = (len(AttackFolder.open(tmp_path / name).results()) for name in ("here", "there"))
    assert 1 <= done < total
    assert seen[-1] == ("examples", done, total)
    assert not attack(attacks.VICTIM, out=tmp_path / "there", resume=True).stopped
    assert (tmp_path / "there" / "examples.jsonl").read_bytes() == (tmp_path / "here" / "examples.jsonl").read_bytes()


def test_a_killed_worker_loses_no_finished_example(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sememekit.jobs.attack._EXAMPLES", 1)
    monkeypatch.setenv("TESTS_DIED", str(tmp_path / "died"))
    monkeypatch.setenv("TESTS_PARENT", str(os.getpid()))
    attacks.run(files, tmp_path / "here")
    call = {"table": attacks.table_of(files), "labels": toys.LABELS}
    victim = "tests.commands.test_on_engines:predict_and_die_once"
    with pytest.raises(EngineError, match="a worker was killed"):
        attack(victim, files["data"], tmp_path / "a", workers=2, **call)
    assert (tmp_path / "died").exists()
    finished = AttackFolder.open(tmp_path / "a").results()
    assert finished
    attack(victim, out=tmp_path / "a", resume=True)
    assert (tmp_path / "a" / "examples.jsonl").read_bytes() == (tmp_path / "here" / "examples.jsonl").read_bytes()


def test_a_step_of_a_claim_runs_on_slurm(tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    spent: list[float] = []
    with open_engine(SLURM, 2, tmp_path) as engine:
        step = Step("prepare", ("--version",), tmp_path / "made")
        assert call(step, spent, lambda: False, dict(os.environ), engine).startswith("sememekit ")
        assert spent[0] > 0
        bad = Step("evaluate", ("recipes", "show", "absent"), tmp_path / "x.json")
        with pytest.raises(TrainingError, match=r"exit code 1 of: sememekit recipes show absent: .*unknown recipe"):
            call(bad, spent, lambda: False, dict(os.environ), engine)
    assert not list(tmp_path.glob("step-*"))


@pytest.mark.slow
def test_a_training_of_a_claim_is_stopped_and_gone_on_with_elsewhere(place: Place, tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    plan = place.folder / "plan.toml"
    plan.write_text(toml_text(place.table(run__threads=1, schedule__epochs=2000)), encoding="utf-8")
    step = Step("train", ("train", "--recipe", str(plan), "--out", str(tmp_path / "run")), tmp_path / "run")
    metrics = tmp_path / "run" / "metrics.jsonl"

    def has_lines(least: int) -> bool:
        return metrics.exists() and metrics.read_bytes().count(b"\n") >= least

    with open_engine(SLURM, 1, tmp_path) as engine:
        with pytest.raises(Stopped):
            call(step, [], partial(has_lines, 2), dict(os.environ), engine)
        more = metrics.read_bytes().count(b"\n") + 2
        with pytest.raises(Stopped):  # without --resume: what was begun is gone on with
            call(step, [], partial(has_lines, more), dict(os.environ), engine)
    epochs = [record["epoch"] for record in RunFolder.open(tmp_path / "run").metrics() if record["kind"] == "EpochReport"]
    assert epochs == list(range(1, len(epochs) + 1))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_training_of_a_claim_goes_on_when_its_worker_is_killed(place: Place, tmp_path: Path) -> None:
    """The command that the lost worker began lets go of the run, which another worker continues."""
    pytest.importorskip("distributed")
    table = place.table(run__threads=1, schedule__epochs=40)
    plan = place.folder / "long.toml"
    plan.write_text(toml_text(table), encoding="utf-8")
    step = Step("train", ("train", "--recipe", str(plan), "--out", str(tmp_path / "run")), tmp_path / "run")
    metrics, killed = tmp_path / "run" / "metrics.jsonl", list[int]()

    def kill_its_worker() -> bool:
        if not killed and metrics.exists() and b"EpochReport" in metrics.read_bytes():
            trainer = (tmp_path / "run" / ".lock").read_text().split()[1]
            killed.append(int(Path(f"/proc/{trainer}/stat").read_text().rsplit(")", 1)[1].split()[1]))
            assert killed[0] != os.getpid()
            os.kill(killed[0], signal.SIGKILL)
        return False

    with open_engine("dask", 1, tmp_path) as engine:
        call(step, [], kill_its_worker, dict(os.environ), engine)
    assert killed
    there = [record for record in RunFolder.open(tmp_path / "run").metrics() if record["kind"] == "EpochReport"]
    assert [record["epoch"] for record in there] == list(range(1, 41))
    here = train(table, tmp_path / "here")
    assert min(record["valid"]["perplexity"] for record in there) == here.best_valid


def test_a_wrong_engine_leaves_nothing_behind(tmp_path: Path) -> None:
    """The error comes before there is a folder, for which the next command would be refused."""
    data, out = tmp_path / "data", tmp_path / "out"
    for arguments in (
        ["train", "--seeds", "1,2", "--data", str(data)],
        ["sweep", "--over", "encoder.dropout=0.1,0.3", "--trials", "2", "--data", str(data)],
        ["attack", "victims:predict", "--data", str(data)],
    ):
        result = CliRunner().invoke(app, [*arguments, "--out", str(out), "--engine", "dsk"])
        assert result.exit_code == 1
        assert "unknown engine 'dsk' (did you mean 'dask'?)" in result.stderr
        assert not out.exists()
