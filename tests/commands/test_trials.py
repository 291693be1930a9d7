"""The steps of a trial and of a timing with played commands: their command lines, messages, and the whole stored result."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sememekit.claims.chain import TURNS, Step, Timing, Trial
from sememekit.errors import CheckpointError, DataError
from sememekit.files import read_sealed
from sememekit.jobs import reproduce as job
from sememekit.jobs import steps, trials
from sememekit.jobs.steps import Ended, run_command, run_there
from sememekit.signals import STOPPED, Stopped
from sememekit.training import EpochReport, RunFolder
from tests.engines.work import Here
from tests.training.test_checkpoint import Tied, trainer_state


def write_run(run: Path, epochs: Sequence[dict[str, Any]], **plan: Any) -> None:
    if run.exists():  # a training that was stopped is played once more
        shutil.rmtree(run)
    folder = RunFolder.create(run, plan, {"torch": "2"}, {})
    rest = vars(EpochReport(1, 10, 1.0, {}, 0.125, True, False, "", 1.0, 1.0))
    del rest["cpu_seconds"]  # of an earlier version
    for epoch in epochs:
        folder.append_metrics({"kind": "EpochReport", **rest, **epoch})
    folder.save(30, Tied(1.0), trainer_state(30), best=True)


EPOCHS = (
    {"epoch": 1, "step": 10, "seconds": 1.0, "valid": {"perplexity": 30.0}, "rate": 0.5, "cpu_seconds": 1.0},
    {"epoch": 2, "step": 20, "seconds": 2.0, "valid": {"perplexity": 20.0}, "rate": 0.25},
    {"epoch": 3, "step": 30, "seconds": 5.0, "valid": {"perplexity": 25.0}, "finished": "the rate is too low"},
)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Step]:
    """The commands of trials, which are played: each takes 2 CPU seconds, and a training leaves a run."""
    run: list[Step] = []

    def call(step: Step, spent: list[float], **given: Any) -> str:
        run.append(step)
        spent.append(2.0)
        if step.kind == "train":
            write_run(step.made, EPOCHS, data={"path": str(tmp_path / "out" / "data")}, text=str(tmp_path / "root" / "text"))
            if given["stopping"]():
                raise Stopped
        elif step.kind != "evaluate":
            step.made.touch()
        signature = "protocol:1|text:0a1b|cache:2000"
        return json.dumps(
            {"signature": signature, "perplexity": 9.0, "words": ["a"], "left_out": 1, "run": str(step.made.parent)}
        )

    monkeypatch.setattr(trials, "call", call)
    monkeypatch.setattr(trials, "_commit", lambda: "0a1b2c")
    return run


def whole_trial(folder: Path, name: str = "arm-1") -> Trial:
    out, root = folder / "out", folder / "root"
    root.mkdir(exist_ok=True)
    (root / "text").write_bytes(b"one\ntwo\n")
    run = out / "runs" / "arm-1"
    done = (
        Step("copy", (str(root / "text"), str(out / "data" / "text"), "1"), out / "data"),
        Step("prepare", ("preprocess",), out / "prepared"),
        Step("train", ("train", "--out", str(run)), run),
        Step("evaluate", ("evaluate-ppl", name), out / "measured" / f"{name}.json"),
    )
    shown = tuple(f"shown {step.kind}" for step in done)
    return Trial(name, "arm", 7, True, done, shown, root, run, out / "results" / f"{name}.json")


def test_a_trial_runs_each_step_once_and_stores_its_result(tmp_path: Path, commands: list[Step]) -> None:
    """CPU time is divided among epochs by their wall time."""
    trial, said = whole_trial(tmp_path), list[str]()
    left = trial.steps[-1].made.with_suffix(".out")
    left.mkdir(parents=True)
    trials.run_trial(trial, said.append, lambda: False, {})
    text, data = tmp_path / "root" / "text", tmp_path / "out" / "data"
    train = f"sememekit train --out {trial.run}"
    assert said == [f"head -n 1 {text} > {data}/text", "sememekit preprocess", train, "sememekit evaluate-ppl arm-1"]
    assert (data / "text").read_bytes() == b"one\n"
    assert commands == [*trial.steps[1:]]
    assert not left.exists(), "of a call that was stopped"
    assert read_sealed(trial.run.with_suffix(".cpu.json"), DataError) == {"cpu_seconds": 2.0, "done": True}
    curve = [
        {"epoch": 1, "step": 10, "cpu_seconds": 0.25, "valid": 30.0, "rate": 0.5},
        {"epoch": 2, "step": 20, "cpu_seconds": 0.75, "valid": 20.0, "rate": 0.25},
        {"epoch": 3, "step": 30, "cpu_seconds": 2.0, "valid": 25.0, "rate": 0.125},
    ]
    assert read_sealed(trial.result, DataError) == {
        "trial": "arm-1",
        "arm": "arm",
        "seed": 7,
        "tiny": True,
        "commands": ["shown copy", "shown prepare", "shown train", "shown evaluate"],
        "plan": {"data": {"path": "reproduced/data"}, "text": "CORPORA/text"},
        "signature": "protocol:1|text:0a1b",
        "measured": {"signature": "protocol:1|text:0a1b|cache:2000", "perplexity": 9.0, "run": "reproduced/measured"},
        "curve": curve,
        "finished": "the rate is too low",
        "versions": {**RunFolder.open(trial.run).versions, "commit": "0a1b2c"},
    }
    said.clear()
    trials.run_trial(trial, said.append, lambda: False, {})
    assert said == []
    trials.run_trial(whole_trial(tmp_path, "arm-2"), said.append, lambda: False, {})
    assert said == ["sememekit evaluate-ppl arm-2"], "another measurement of the same run"


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        (
            "measured/arm-1.json",
            '"perplexity": 9.0',
            '"perplexity": 1.5',
            "own checksum.*delete it, and type",
        ),
        (
            "runs/arm-1.cpu.json",
            '"cpu_seconds": 2.0',
            '"cpu_seconds": 1.0',
            "own checksum.*delete it and the",
        ),
        ("runs/arm-1/metrics.jsonl", '"perplexity": 20.0', '"perplexity": 10.0', "does not begin with the lines"),
        ("data/text", "one", "two", "its texts were changed after they were copied; delete it, and type the same command"),
    ],
)
def test_what_was_changed_between_two_steps_is_no_result(
    tmp_path: Path, commands: list[Step], name: str, old: str, new: str, told: str
) -> None:
    trial, file = whole_trial(tmp_path), tmp_path / "out" / name
    trials.run_trial(trial, lambda line: None, lambda: False, {})
    trial.result.unlink()
    whole = file.read_text(encoding="utf-8")
    assert old in whole
    file.write_text(whole.replace(old, new), encoding="utf-8")
    with pytest.raises((DataError, CheckpointError), match=told):
        trials.run_trial(trial, lambda line: None, lambda: False, {})
    assert not trial.result.exists()


def test_a_stopped_training_goes_on_and_its_seconds_are_summed(tmp_path: Path, commands: list[Step]) -> None:
    trial, said = whole_trial(tmp_path), list[str]()
    with pytest.raises(Stopped):
        trials.run_trial(trial, said.append, lambda: True, {})
    assert said == []
    with pytest.raises(Stopped):
        trials.run_trial(trial, said.append, lambda: trial.run.exists(), {})
    times = trial.run.with_suffix(".cpu.json")
    assert read_sealed(times, DataError) == {"cpu_seconds": 2.0, "done": False}
    said.clear()
    trials.run_trial(trial, said.append, lambda: False, {})
    assert said == [f"sememekit train --out {trial.run} --resume", "sememekit evaluate-ppl arm-1"]
    assert read_sealed(times, DataError) == {"cpu_seconds": 4.0, "done": True}


def test_a_timing_trains_both_models_in_turn_and_stores_seconds_of_an_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, seconds = tmp_path / "out", iter(range(10, 100, 10))

    def call(step: Step, spent: list[float], **given: Any) -> str:
        if step.kind == "prepare":
            step.made.touch()
            return ""
        assert step.made.parent.parent == out
        write_run(step.made, [{**EPOCHS[0], "cpu_seconds": float(next(seconds))}])
        return ""

    monkeypatch.setattr(trials, "call", call)
    monkeypatch.setattr(trials, "_commit", lambda: "0a1b2c")
    prepare = Step("prepare", ("preprocess",), out / "prepared")
    for name in ("first", "second"):
        timing = Timing(name, ("a", "b"), (prepare,), (("train", "a"), ("train", "b")), out / "results" / f"{name}.json")
        said: list[str] = []
        trials.run_timing(timing, said.append, lambda: False)
        if name == "first":
            assert said.pop(0) == "sememekit preprocess"
            found = read_sealed(timing.result, DataError)
            assert found.pop("versions").items() >= {"torch": "2", "commit": "0a1b2c"}.items()
            assert found == {"arms": ["a", "b"], "baseline": [1.0, 3.0, 5.0], "other": [2.0, 4.0, 6.0]}
            seconds = iter(range(10, 100, 10))
        assert [line.partition(" --out ")[0] for line in said] == ["sememekit train a", "sememekit train b"] * TURNS
    assert {path.name for path in out.iterdir()} == {"prepared", "prepared.lock", "results", "timing.lock"}


@pytest.mark.parametrize(
    ("kind", "words", "begun", "run"),
    [
        ("train", ("train",), True, ("train", "--resume")),
        ("train", ("train", "--resume"), True, ("train", "--resume")),
        ("train", ("train",), False, ("train",)),
        ("evaluate", ("evaluate-ppl",), True, ("evaluate-ppl",)),
    ],
)
def test_a_lost_training_is_continued_by_the_process_that_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, words: tuple[str, ...], begun: bool, run: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    made = Path("made")
    if begun:
        write_run(tmp_path / "there" / made, [])
    given: list[Any] = []
    monkeypatch.setattr(steps, "run_command", lambda *told: given.append((Path.cwd(), *told)))
    stop = tmp_path / "stop"
    run_there(Step(kind, words, made), {"A": "1"}, stop, str(tmp_path / "there"))
    ((folder, typed, environment, stopping),) = given
    assert (folder, typed, environment, stopping()) == (tmp_path / "there", run, {"A": "1"}, False)
    stop.touch()
    assert stopping()


def test_a_signal_reaches_a_command_on_an_engine_by_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run_until_stopped(words: Sequence[str], environment: Any, asked_to_stop: Callable[[], bool]) -> Ended:
        for _ in range(2000):
            if asked_to_stop():
                return Ended(STOPPED, True, "", "", 3.0)
            begun.append(1)
            steps.time.sleep(0.01)
        return Ended(0, False, "never asked", "", 0.0)

    begun: list[int] = []
    monkeypatch.setattr(steps, "run_command", run_until_stopped)
    engine, spent = Here("", 1, tmp_path / "new" / "engine"), list[float]()
    step = Step("evaluate", ("--version",), tmp_path / "x.json")
    for _ in range(2):
        with pytest.raises(Stopped):
            steps.call(step, spent, lambda: bool(begun), {}, engine)
    engine.close()
    assert spent == [3.0, 3.0]
    assert [*engine.folder.iterdir()] == []


def test_a_command_is_asked_to_stop_once_and_all_that_it_printed_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, ready = tmp_path / "slow.sh", tmp_path / "ready"
    script.write_text(
        "#!/bin/sh\ntrap 'stopped=1' TERM\necho begun\necho one >&2\n"
        f'touch {ready}\nfor n in $(seq 200); do [ "$stopped" ] || sleep 0.02; done\n'
        "sleep 0.5\necho done\necho last >&2\nexit 3\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(script))
    asked: list[int] = []
    sessions: list[bool] = []

    class Seen(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            sessions.append(os.getsid(self.pid) == self.pid)

        def terminate(self) -> None:
            asked.append(signal.SIGTERM)
            super().terminate()

    monkeypatch.setattr("subprocess.Popen", Seen)
    ended = run_command([], os.environ, ready.exists)
    assert ended[:4] == (3, True, "begun\ndone\n", "last")
    assert (asked, sessions) == ([signal.SIGTERM], [True])
    ready.unlink()
    script.write_text("#!/bin/sh\nexit 0\n")
    assert run_command([], os.environ, ready.exists)[:4] == (0, False, "", "")


@pytest.mark.parametrize(
    ("code", "told", "raised"),
    [(0, False, None), (0, True, None), (1, False, "exit code 1 of"), (1, True, "stopped"), (STOPPED, False, "stopped")],
)
def test_a_command_that_was_asked_to_stop_fails_by_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, told: bool, raised: str | None
) -> None:
    monkeypatch.setattr(steps, "run_command", lambda *given: Ended(code, told, "printed", "", 1.5))
    spent: list[float] = []
    step = Step("evaluate", ("score",), tmp_path / "x.json")
    if raised is None:
        assert steps.call(step, spent, lambda: False, {}) == "printed"
    elif raised == "stopped":
        with pytest.raises(Stopped):
            steps.call(step, spent, lambda: False, {})
    else:
        with pytest.raises(steps.TrainingError, match=f"{raised}: sememekit score: it said nothing; when that is mended"):
            steps.call(step, spent, lambda: False, {})
    assert spent == [1.5]


@pytest.mark.parametrize(
    ("jobs", "engine", "lines"),
    [
        (1, "local", ["trial 1 of 2: a", "  x", "trial 2 of 2: b", "  x"]),
        (2, "tests.engines.work:Here", ["trial 1 of 2: a", "  a: x", "trial 2 of 2: b", "  b: x"]),
    ],
)
def test_what_is_said_of_a_claim_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, engine: str, lines: list[str]
) -> None:
    """A name stands before each command if others run beside it. A timing that is done is not done again."""
    both = [whole_trial(tmp_path, name) for name in "ab"]
    timings = [Timing(name, ("p", "q"), (), ((), ()), tmp_path / f"{name}.json") for name in ("done", "new")]
    timings[0].result.touch()

    def run_trials(them: list[Trial], jobs: int, say: Callable[..., None], asked: Any, opened: Any) -> None:
        assert (opened is None) == (engine == "local")
        for one in them:
            say(one, "")
            say(one, "x")

    monkeypatch.setattr(job, "trials_of", lambda names, out, root, seeds, tiny: both)
    monkeypatch.setattr(job, "timings_for", lambda *given: timings)
    monkeypatch.setattr(job, "differing", lambda names: {"claim": {"decoder.samples": ("0", "1000")}})
    monkeypatch.setattr(job, "run_trials", run_trials)
    monkeypatch.setattr(job, "run_timing", lambda timing, say, asked: say(timing.name))
    monkeypatch.setattr(job, "judged", lambda out, names, tiny: [names, tiny])
    said: list[str] = []
    found: Any = job.reproduce(
        ["claim"], tmp_path / "out", jobs=jobs, engine=engine, say=said.append, asked_to_stop=lambda: False
    )
    also = "claim: its models also differ in decoder.samples 1000 against 0"
    assert said == [also, *lines, "time of an update, interleaved: p and q", "  new"]
    assert found == [["claim"], False]


@pytest.mark.parametrize(("seeds", "given"), [(None, 0), (2, 2)])
def test_trials_of_a_claim_are_sorted_by_seed_and_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: int | None, given: int
) -> None:
    claims = {name: (name, SimpleNamespace(small=("a", "b"), why_not="")) for name in ("one", "two")}
    asked: list[Any] = []

    def steps_of(*told: Any) -> list[Any]:
        asked.append(told[2:])
        return [SimpleNamespace(name=f"{arm}-{seed}", seed=seed) for arm in ("shared", told[0]) for seed in (1, 2)]

    monkeypatch.setattr(job, "load_claims", lambda: claims)
    monkeypatch.setattr(job, "steps_of", steps_of)
    found = job.trials_of(["one", "two"], tmp_path / "out", tmp_path, seeds, False)
    assert [trial.name for trial in found] == ["shared-1", "one-1", "two-1", "shared-2", "one-2", "two-2"]
    assert asked == [(tmp_path / "out", tmp_path, given, False)] * 2
    with pytest.raises(DataError, match=r"no folder .*; name the folder with --root DIR"):
        job.trials_of(["one"], tmp_path / "out", tmp_path / "absent", seeds, False)
    assert job.trials_of(["one"], tmp_path / "out", tmp_path / "absent", seeds, False, must_exist=False)
