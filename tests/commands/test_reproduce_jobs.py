"""reproduce run --jobs: which trials run at once, what a failure and a signal do to others, whose CPU time is counted."""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sememekit import __version__
from sememekit.claims.chain import Step, Timing, Trial
from sememekit.engines.base import Engine
from sememekit.errors import DataError, EngineError, TrainingError
from sememekit.files import sealed, sole_writer
from sememekit.jobs import trials as steps
from sememekit.jobs.steps import Ended, call, run_command
from sememekit.signals import Stopped
from sememekit.training import EpochReport, RunFolder
from tests.mutants import ROOT
from tests.training.test_checkpoint import Tied, trainer_state


def trial(tmp_path: Path, name: str, run: str = "") -> Trial:
    return Trial(name, name, 1, False, (), (), tmp_path, tmp_path / (run or name), tmp_path / f"{name}.json")


def played(monkeypatch: pytest.MonkeyPatch, body: Callable[[Trial, Callable[[], bool]], None]) -> list[tuple[str, str]]:
    """Trials that do ``body``; what is returned grows by ("begins" or "ends", name)."""
    seen: list[tuple[str, str]] = []

    def run_trial(one: Trial, say: Any, asked_to_stop: Callable[[], bool], *rest: Any) -> None:
        seen.append(("begins", one.name))
        body(one, asked_to_stop)
        one.result.write_text("{}")
        seen.append(("ends", one.name))

    monkeypatch.setattr(steps, "run_trial", run_trial)
    return seen


def test_trials_of_one_run_are_never_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other_began = threading.Event()

    def body(one: Trial, asked_to_stop: Any) -> None:
        if one.name == "third":
            other_began.set()
        if one.name == "first":
            assert other_began.wait(20)

    seen = played(monkeypatch, body)
    trials = [trial(tmp_path, "first", "shared"), trial(tmp_path, "second", "shared"), trial(tmp_path, "third")]
    said: list[tuple[str, str]] = []
    steps.run_trials(trials, 2, lambda one, line: said.append((one.name, line)), lambda: False)
    assert seen.index(("begins", "second")) > seen.index(("ends", "first"))
    assert seen.index(("begins", "third")) < seen.index(("ends", "first"))
    assert sorted(said) == [("first", ""), ("second", ""), ("third", "")]
    seen.clear()
    steps.run_trials(trials, 2, lambda one, line: None, lambda: False)
    assert seen == [], "what is done is not done again"


def test_one_job_is_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = played(monkeypatch, lambda one, asked: None)
    steps.run_trials([trial(tmp_path, name) for name in "abc"], 1, lambda one, line: None, lambda: False)
    assert seen == [(what, name) for name in "abc" for what in ("begins", "ends")]


@pytest.mark.parametrize(("jobs", "threads"), [(1, None), (2, "1")])
def test_trials_side_by_side_have_one_thread_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, threads: str | None
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    seen: list[str | None] = []
    monkeypatch.setattr(
        steps, "run_trial", lambda one, say, asked, environment, *rest: seen.append(environment.get("OMP_NUM_THREADS"))
    )
    steps.run_trials([trial(tmp_path, "a"), trial(tmp_path, "b")], jobs, lambda one, line: None, lambda: False)
    assert seen == [threads, threads]


def test_two_trials_are_never_told_of_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of two trials never run together."""
    played(monkeypatch, lambda one, asked: None)
    inside: list[str] = []

    def say(one: Trial, line: str) -> None:
        inside.append(one.name)
        time.sleep(0.2)
        assert inside == [one.name]
        inside.clear()

    steps.run_trials([trial(tmp_path, name) for name in "ab"], 2, say, lambda: False)


def test_a_failure_stops_the_others_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def body(one: Trial, asked_to_stop: Callable[[], bool]) -> None:
        if one.name == "bad":
            raise TrainingError("exit code 1 of: bad")
        while not asked_to_stop():
            time.sleep(0.01)
        raise Stopped

    seen = played(monkeypatch, body)
    with pytest.raises(TrainingError, match="of: bad"):
        steps.run_trials([trial(tmp_path, name) for name in ("long", "bad", "later")], 2, lambda *told: None, lambda: False)
    assert {name for _, name in seen} == {"long", "bad"}


def test_a_signal_begins_no_further_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = played(monkeypatch, lambda one, asked: None)
    with pytest.raises(Stopped):
        steps.run_trials([trial(tmp_path, "a")], 2, lambda *told: None, lambda: True)
    assert seen == []


def test_the_cpu_time_is_that_of_the_command_alone(tmp_path: Path) -> None:
    """Another command works beside it, whose time is not added."""
    busy: list[float] = []
    quiet: list[float] = []
    long = Step("prepare", ("recipes", "validate"), tmp_path / "long")
    short = Step("prepare", ("--version",), tmp_path / "short")
    beside = threading.Thread(target=call, args=(long, busy, lambda: False, dict(os.environ)))
    beside.start()
    assert call(short, quiet, lambda: False, dict(os.environ)).startswith("sememekit ")
    beside.join()
    assert 0 < 2 * quiet[0] < busy[0]


def test_a_command_has_ended_when_an_error_beside_it_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, ready = tmp_path / "slow.sh", tmp_path / "ready"
    script.write_text(f"#!/bin/sh\ntrap 'sleep 0.8; exit 3' TERM\ntouch {ready}\nfor n in $(seq 200); do sleep 0.02; done\n")
    script.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(script))
    children: list[subprocess.Popen[bytes]] = []

    class Seen(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            children.append(self)

    monkeypatch.setattr("subprocess.Popen", Seen)

    def interrupted() -> bool:
        if ready.exists():
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        run_command([], os.environ, interrupted)
    assert children[0].returncode == 3


def test_what_was_done_before_a_signal_reached_it_is_kept(tmp_path: Path) -> None:
    """A signal that comes in the last moment of an attack of hours must not lose it."""
    step = Step("evaluate", ("--version",), tmp_path / "x")

    def done(*given: object) -> Ended:
        return Ended(0, True, "all of it", "", 1.0)

    def stopped(*given: object) -> Ended:
        return Ended(-15, True, "half", "", 1.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sememekit.jobs.steps.run_command", done)
        assert call(step, [], lambda: True, {}) == "all of it"
        patch.setattr("sememekit.jobs.steps.run_command", stopped)
        with pytest.raises(Stopped):
            call(step, [], lambda: True, {})


def test_updates_are_timed_by_one_call_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls would disturb each other, and write one file."""
    at_once, most = 0, 0

    def time_it(timing: Timing, say: object, run: object) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.3)
        at_once -= 1
        timing.result.parent.mkdir(parents=True, exist_ok=True)
        timing.result.touch()
        timed.append(timing.name)

    timed: list[str] = []
    monkeypatch.setattr(steps, "_time", time_it)
    timing = Timing("t", ("a", "b"), (), ((), ()), tmp_path / "results" / "t.json")
    other = Timing("u", ("a", "c"), (), ((), ()), tmp_path / "results" / "u.json")
    calls = [
        threading.Thread(target=steps.run_timing, args=(one, lambda line: None, lambda: False))
        for one in (timing, timing, other)
    ]
    for one in calls:
        one.start()
    for one in calls:
        one.join(20)
    assert most == 1
    assert sorted(timed) == ["t", "u"], "what another call has timed is not timed again"


def test_a_command_that_fails_is_told_with_its_last_line(tmp_path: Path) -> None:
    step = Step("prepare", ("recipes", "show", "nothing"), tmp_path / "x")
    with pytest.raises(TrainingError, match=r"exit code 1 of: sememekit recipes show nothing: sememekit: error: .*nothing"):
        call(step, [], lambda: False, dict(os.environ))


def test_a_broken_text_is_named(tmp_path: Path) -> None:
    whole = lzma.compress(b"a line\n" * 99)
    for content in (b"not xz", whole[:-9]):
        (tmp_path / "text.xz").write_bytes(content)
        step = Step("copy", (str(tmp_path / "text.xz"), str(tmp_path / "text" / "text"), "0"), tmp_path / "text")
        with pytest.raises(DataError, match=r"text\.xz cannot be read \(.*put a whole copy there"):
            steps._copy(step)
        assert not step.made.exists()


def test_the_times_of_a_training_are_read_or_named(tmp_path: Path) -> None:
    path = tmp_path / "arm-small-1.cpu.json"
    path.write_bytes(sealed({"cpu_seconds": 2.5, "done": True}))
    assert steps._times_of(path) == (2.5, True)
    for content in ({}, {"cpu_seconds": "2.5", "done": True}, {"cpu_seconds": 2.5}):
        path.write_bytes(sealed(content))
        with pytest.raises(DataError, match=r"holds no CPU seconds .*delete it and the folder arm-small-1 beside it"):
            steps._times_of(path)


def test_a_run_without_a_finished_epoch_has_no_result(tmp_path: Path) -> None:
    step = Step("evaluate", (), tmp_path / "measured.json")
    step.made.write_bytes(sealed({}))
    one = replace(trial(tmp_path, "one"), steps=(step,))
    RunFolder.create(one.run, {}, {}, {})
    times = one.run.with_suffix(".cpu.json")
    times.write_bytes(sealed({"cpu_seconds": 2.5, "done": True}))
    with pytest.raises(TrainingError, match=r"metrics\.jsonl has no finished epoch; delete .* and type the same command"):
        steps._result(one, times)


@pytest.mark.parametrize(("measured", "wanted"), [(2.5, 4.0), (7.5, 7.5)])
def test_cpu_seconds_are_those_of_the_epochs_at_least(tmp_path: Path, measured: float, wanted: float) -> None:
    """A process that was killed has told nothing of its time but the epochs that it finished."""
    step = Step("evaluate", (), tmp_path / "measured.json")
    step.made.write_bytes(sealed({}))
    one = replace(trial(tmp_path, "one", "runs/one"), steps=(step,))
    folder = RunFolder.create(one.run, {}, {}, {})
    epoch = EpochReport(1, 3, 2.0, {"perplexity": 9.0}, 0.25, True, False, "", 2.0, 1.0, cpu_seconds=4.0)
    folder.append_metrics({"kind": "EpochReport", **vars(epoch)})
    folder.save(3, Tied(1.0), trainer_state(3), best=True)
    times = one.run.with_suffix(".cpu.json")
    times.write_bytes(sealed({"cpu_seconds": measured, "done": True}))
    (point,) = steps._result(one, times).curve
    assert (point.cpu_seconds, point.rate) == (wanted, 0.25)


def test_a_lost_process_is_told_with_what_to_type(tmp_path: Path) -> None:
    class Losing(Engine):
        def submit(self, work: Any, *arguments: Any) -> Future[Any]:
            future = Future[Any]()
            future.set_exception(EngineError("job 7 ended before it was done"))
            return future

        def close(self) -> None: ...

    step = Step("prepare", ("--version",), tmp_path / "made")
    with pytest.raises(EngineError, match=r"job 7 ended .*; finished trials are kept, and the same 'sememekit reproduce run'"):
        call(step, [], lambda: False, {}, Losing("", 1, tmp_path))


def test_what_is_kept_names_no_place_of_this_machine(tmp_path: Path) -> None:
    out, texts = tmp_path / "out", tmp_path / "texts"
    command = f"sememekit attack --out {out}/a --data {texts}/b"
    kept = {"path": str(out / "data"), "list": [str(out), 3, "/elsewhere", str(texts)], "other": f"{out}x", "next": command}
    assert steps._shown(kept, {out: Path("reproduced"), texts: Path("CORPORA")}) == {
        "path": "reproduced/data",
        "list": ["reproduced", 3, "/elsewhere", "CORPORA"],
        "other": f"{out}x",
        "next": "sememekit attack --out reproduced/a --data CORPORA/b",
    }


def no_command(step: Step, spent: list[float]) -> str:
    raise AssertionError(f"a copy is no command: {step.words}")


def test_what_another_call_makes_is_waited_for_and_not_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls with one --out may share a text; each used to remove the copy that the other had begun."""
    begun, go_on = threading.Event(), threading.Event()
    made: list[Path] = []
    whole_copy = steps._copy

    def copy(step: Step) -> None:
        made.append(step.made)
        begun.set()
        assert go_on.wait(20)
        whole_copy(step)

    monkeypatch.setattr(steps, "_copy", copy)
    step = Step("copy", (), tmp_path / "data" / "text")
    said: list[str] = []

    def second(line: str) -> None:
        said.append(line)
        go_on.set()

    def make(say: Callable[[str], None]) -> None:
        steps._do(step, say, lambda: False, no_command)

    first = threading.Thread(target=make, args=(lambda line: None,))
    first.start()
    assert begun.wait(20)
    make(second)
    first.join(20)
    assert made == [step.made]
    assert len(said) == 1
    assert said[0].startswith(f"waiting for {step.made}: made by process {os.getpid()} on ")


def test_a_signal_ends_the_wait_for_another_call(tmp_path: Path) -> None:
    step = Step("copy", (), tmp_path / "text")
    with sole_writer(tmp_path / "text.lock", RuntimeError), pytest.raises(Stopped):
        steps._do(step, lambda line: None, lambda: True, no_command)


def test_the_curve_is_of_the_metric_that_the_schedule_watches() -> None:
    epoch = {"epoch": 1, "step": 10, "seconds": 1.0, "rate": 1.0, "valid": {"perplexity": 80.0, "rougeL": 0.18}}
    assert [point.valid for point in steps._curve([{**epoch, "metric": "rougeL"}], 1.0)] == [0.18]
    assert [point.valid for point in steps._curve([epoch], 1.0)] == [80.0], "a run of an earlier version names none"


def test_results_name_the_commit_of_a_tree_and_else_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    version = f"sememekit {__version__}"
    if shutil.which("git") is not None and (ROOT / ".git").exists():
        said = subprocess.run(
            ["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
        )
        assert steps._commit() == (said.stdout.strip() or version)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert steps._commit() == version
