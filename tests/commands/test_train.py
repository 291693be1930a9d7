"""train under signals: a run that is asked to stop says so with 75, one that is killed loses steps but never its checkpoint."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.errors import CheckpointError
from sememekit.jobs.train import train
from sememekit.runs.run import Run
from sememekit.training import Report, RunFolder, StepReport, Trainer
from tests.small_run import Place

STOPPED = 75
PATIENCE = 240
"""Seconds: a busy machine is no failure."""
FOREVER = {"schedule__epochs": 100_000, "task__input_dropout": 0.3, "encoder__dropout": 0.2}


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(place: Place) -> Iterator[Start]:
    """Begin ``sememekit train`` in a process of its own, which does not outlive the test."""
    processes: list[subprocess.Popen[str]] = []

    def begin(out: Path, **changes: Any) -> subprocess.Popen[str]:
        line = command(place, out, **changes)
        processes.append(subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def command(place: Place, out: Path, **changes: Any) -> list[str]:
    """The command line of a run that lasts until it is stopped."""
    table = place.table(**{**FOREVER, **changes})
    data = table.pop("data")["path"]
    settings = [f"{slot}.{key}={value}" for slot, keys in table.items() for key, value in keys.items() if key != "name"]
    flags = [part for setting in settings for part in ("--set", setting)]
    return [sys.executable, "-m", "sememekit", "train", "--data", data, "--out", str(out), *flags, "--json"]


def wait_for_metrics(process: subprocess.Popen[str], out: Path) -> None:
    metrics, deadline = out / "metrics.jsonl", time.monotonic() + PATIENCE
    while not (metrics.exists() and metrics.stat().st_size):
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline, "training did not begin"
        time.sleep(0.02)


def epoch_lines(run: Path) -> list[dict[str, Any]]:
    records = [record for record in RunFolder.open(run).metrics() if record["kind"] == "EpochReport"]
    return [{**record, "seconds": 0, "cpu_seconds": 0, "tokens_per_second": 0} for record in records]


def assert_goes_on_as_if_nothing_had_happened(place: Place, out: Path, fresh: Path) -> None:
    """Resume for two epochs more, and compare with a run of that length that never stopped."""
    folder = RunFolder.open(out)
    done = folder.load("last", with_trainer=True).trainer["progress"]["epoch"] if folder.pointer() else 0
    epochs = {"schedule": {"epochs": done + 2}}
    train(epochs, out, resume=True)
    train(place.table(**{**FOREVER, "schedule__epochs": done + 2}), fresh)
    one, other = (RunFolder.open(path).load("last", with_trainer=True) for path in (out, fresh))
    assert one.name == other.name
    assert all(torch.equal(one.weights[name], other.weights[name]) for name in other.weights)
    assert epoch_lines(out) == epoch_lines(fresh), "no epoch is missing from the metrics and none stands there twice"


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)


def assert_stopped(code: int, stdout: str, stderr: str, run: Path) -> None:
    assert code == STOPPED, stderr
    assert json.loads(stdout)["stopped"]
    assert "Traceback" not in stderr
    stop = RunFolder.open(run).metrics(live=True)[-1]
    assert (stop["kind"], stop["checkpoint"]) == ("StopReport", RunFolder.open(run).pointer()["last"])


@pytest.mark.parametrize("number", [SIGNALS[0], *(pytest.param(number, marks=pytest.mark.slow) for number in SIGNALS[1:])])
def test_a_signal_stops_a_process_with_75_and_a_checkpoint(
    place: Place, start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    process = start(tmp_path / "run")
    wait_for_metrics(process, tmp_path / "run")
    time.sleep(random.Random(int(number)).random() / 10)  # every epoch that it trains is trained again below
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert_stopped(process.returncode, stdout, stderr, tmp_path / "run")
    assert_goes_on_as_if_nothing_had_happened(place, tmp_path / "run", tmp_path / "fresh")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_a_step_stops_with_75_and_a_checkpoint(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """The signal comes in this process, in step 37."""
    step = Trainer._step

    def signalled(trainer: Trainer, *arguments: Any) -> None:
        if trainer.progress.step == 36:
            signal.raise_signal(number)
        step(trainer, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_step", signalled)
        result = CliRunner().invoke(app, command(place, tmp_path / "run")[3:])
    assert_stopped(result.exit_code, result.stdout, result.stderr, tmp_path / "run")
    assert RunFolder.open(tmp_path / "run").metrics(live=True)[-1]["step"] == 37
    if number == signal.SIGINT:  # the checkpoint of step 37 is the same whatever the signal
        assert_goes_on_as_if_nothing_had_happened(place, tmp_path / "run", tmp_path / "fresh")


def test_a_kill_leaves_the_last_whole_checkpoint(place: Place, start: Start, tmp_path: Path) -> None:
    """With a checkpoint after each step, a kill often falls into the writing of one."""
    process = start(tmp_path / "run", run__checkpoint_every=1)
    wait_for_metrics(process, tmp_path / "run")
    time.sleep(0.1)
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL
    assert_goes_on_as_if_nothing_had_happened(place, tmp_path / "run", tmp_path / "fresh")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("trial", range(8))
def test_a_signal_at_any_moment(place: Place, start: Start, tmp_path: Path, number: signal.Signals, trial: int) -> None:
    """The signal may come from the first import on; before signals are watched, the process just ends."""
    source = random.Random(100 * int(number) + trial)
    out = tmp_path / "run"
    process = start(out, run__checkpoint_every=source.choice([0, 1, 7]))
    if source.random() < 0.5:
        wait_for_metrics(process, out)
    time.sleep(source.random() * 4)
    metrics = out / "metrics.jsonl"
    last = metrics.read_text(encoding="utf-8").splitlines()[-1:] if metrics.exists() else []
    done = any('"finished"' in line and '"finished": ""' not in line for line in last)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=PATIENCE)
    begun = (out / "plan.json").exists()
    if done:
        assert process.returncode in {0, STOPPED, -number, 130}, "training was done before the signal came"
    elif number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    elif process.returncode == STOPPED:
        assert RunFolder.open(out).pointer(), "75 promises a checkpoint"
    else:
        assert not (out / "metrics.jsonl").exists(), f"training had begun: {stderr}"
        assert process.returncode in {-number, 130}, stderr
    if begun:
        assert_goes_on_as_if_nothing_had_happened(place, out, tmp_path / "fresh")
    else:
        train(place.table(schedule__epochs=1), out)


def test_a_stop_that_is_asked_for_while_the_model_is_built_is_heard(place: Place, tmp_path: Path) -> None:
    """The flag is up before the first step: one step is taken, and its checkpoint is there."""
    from sememekit.runs import build as module

    original = module.build_task

    def build_task(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return original(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "build_task", build_task)
        report = train(place.table(), tmp_path / "run")
    assert report.stopped
    assert RunFolder.open(tmp_path / "run").load("last", with_trainer=True).trainer["progress"]["step"] == 1


def test_a_stop_in_the_last_step_of_an_epoch_does_not_wait_for_validation(place: Place, tmp_path: Path) -> None:
    seen: list[Report] = []

    def stop(report: Report) -> None:
        seen.append(report)
        if isinstance(report, StepReport) and report.step == 30:
            signal.raise_signal(signal.SIGTERM)

    report = train(place.table(), tmp_path / "run", on_report=stop)
    assert report.stopped
    assert [type(one).__name__ for one in seen[-2:]] == ["StepReport", "StopReport"]
    train({}, tmp_path / "run", resume=True)
    train(place.table(), tmp_path / "fresh")
    one, other = (RunFolder.open(tmp_path / name).load("last", with_trainer=True) for name in ("run", "fresh"))
    assert all(torch.equal(one.weights[name], other.weights[name]) for name in other.weights)


def test_training_outside_the_main_thread_works_without_signals(place: Place, tmp_path: Path) -> None:
    reports: list[Any] = []
    thread = threading.Thread(target=lambda: reports.append(train(place.table(schedule__epochs=1), tmp_path / "run")))
    thread.start()
    thread.join()
    assert reports[0].epochs == 1


def test_the_report_counts_shared_parameters_once(place: Place, tmp_path: Path) -> None:
    report = train(place.table(schedule__epochs=1), tmp_path / "run")
    size, layer = len(place.data.vocabulary), 4 * 6 * (6 + 6 + 2)
    assert report.parameters == size * 6 + size + 2 * layer
    assert json.loads(report.model_dump_json())["run"] == str(tmp_path / "run")


def test_nothing_is_written_when_the_plan_cannot_be_built(place: Place, tmp_path: Path) -> None:
    from sememekit.errors import SememekitError

    for changes in ({"encoder__hidden_size": 5}, {"decoder__name": "sdlm"}, {"data__path": "/nowhere"}):
        with pytest.raises(SememekitError):
            train(place.table(**changes), tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_a_taken_folder_is_refused_before_work_begins(place: Place, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("mine")
    with pytest.raises(CheckpointError, match="exists already"):
        train(place.table(), tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.tex"]


def test_word_biases_begin_with_the_frequencies_of_the_training_text_alone(place: Place, tmp_path: Path) -> None:
    """Counts of the vocabulary hold valid and test; and what another run learned is never overwritten."""
    still = {"optimizer__learning_rate": 1e-12, "schedule__epochs": 1}
    train(place.table("mos", **still), tmp_path / "run")
    bias = Run.open(tmp_path / "run").task.decoder.bias.detach()
    counts = np.bincount(place.data.tokens("train")[1:], minlength=len(place.data.vocabulary))
    expected = np.log(counts + 1.0) - np.log(counts + 1.0).mean()
    np.testing.assert_allclose(bias.numpy(), expected, atol=1e-6)
    train(place.table("mos", decoder__bias_start="zero", **still), tmp_path / "zero")
    assert Run.open(tmp_path / "zero").task.decoder.bias.abs().max() < 1e-6
    train(place.table("mos", **still, run__start_from=str(tmp_path / "zero")), tmp_path / "on")
    assert Run.open(tmp_path / "on").task.decoder.bias.abs().max() < 1e-6
