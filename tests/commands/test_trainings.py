"""Trainings in other processes: messages arrive as they were sent, a foreign file among them is refused, and what is stopped,
lost or ended has a result. Processes are played."""

from __future__ import annotations

import math
import pickle
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sememekit import signals
from sememekit.config import trusted_code
from sememekit.errors import EngineError, TrainingError
from sememekit.jobs.train import Position, TrainReport
from sememekit.jobs.trainings import (
    Failed,
    Told,
    Trained,
    Trainings,
    _at_once,
    read_message,
    train_all,
    train_there,
    write_message,
)
from sememekit.tasks.base import PrimaryMetric
from sememekit.training.metrics import ChangeReport, EpochReport, StepReport, StopReport

TOLD: list[Told] = [
    StepReport(epoch=1, batch=2, num_batches=3, step=2, nats=math.inf, rate=0.1, tokens_per_second=5.0, estimated=True),
    EpochReport(1, 2, 5.5, {"perplexity": 9.5, "nats": math.inf}, 0.1, True, False, "", 1.5, 20.0, metric="perplexity"),
    ChangeReport(epoch=1, step=2, values={"moved_words": 0.25}),
    StopReport(epoch=1, step=2, checkpoint="step-00000002"),
    Position(1, 0, 3, 2, PrimaryMetric("accuracy", lower_is_better=False)),
    Position(1, 0, 0, 2),
    "a remark of 一 line",
]


def test_a_message_arrives_as_it_was_sent(tmp_path: Path) -> None:
    for message in TOLD:
        write_message(tmp_path, message)
    found = [read_message(path) for path in sorted(tmp_path.glob("*.message"))]
    assert found == TOLD
    assert [type(one) for one in found] == [type(one) for one in TOLD]


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps("a remark"),
        b"",
        b"[]",
        b'["Absent", 1]',
        b'["Position", [1, 2]]',
        b'["StopReport", {"epoch": "x"}]',
        b'[["str"], "x"]',
        b"[" * 100_000,
    ],
)
def test_a_foreign_file_among_messages_is_refused_and_never_unpickled(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0.message").write_bytes(content)
    with pytest.raises(TrainingError, match=r"0\.message: no message of a training, .* remove it"):
        read_message(tmp_path / "0.message")


class PlayedEngine:
    """Processes that the test ends."""

    def __init__(self, fresh: bool) -> None:
        self.fresh, self.closed = fresh, False
        self.given: list[tuple[Any, ...]] = []
        self.futures: list[Future[Any]] = []

    def submit(self, *given: Any) -> Future[Any]:
        self.given.append(given)
        self.futures.append(Future())
        return self.futures[-1]

    def close(self) -> None:
        self.closed = True


def played(monkeypatch: pytest.MonkeyPatch, out: Path, fresh: bool) -> tuple[Trainings, PlayedEngine]:
    engine = PlayedEngine(fresh)
    monkeypatch.setattr("sememekit.jobs.trainings.open_engine", lambda *given: engine)
    monkeypatch.setattr("sememekit.jobs.trainings.PATIENCE", 0.01)
    monkeypatch.setattr("sememekit.jobs.trainings.LOOK_EVERY", 0.001)
    return Trainings("local", 2, out), engine


def no_further() -> None:
    """Begin nothing."""


@pytest.mark.parametrize("fresh", [True, False])
def test_each_training_has_a_folder_of_messages_for_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: bool
) -> None:
    """The folder is temporary on this machine. Messages of an earlier call are not read."""
    monkeypatch.chdir(tmp_path)
    trainings, engine = played(monkeypatch, Path("out"), fresh)
    folder = trainings._folder
    assert folder.is_absolute()
    assert (folder == tmp_path / "out" / ".jobs") != fresh
    done = Trained(TrainReport.model_construct(stopped=False), 1.0)
    with trainings:
        for name in ("one", "two"):
            (folder / name).mkdir(parents=True)
            (folder / name / "0.message").write_text("of an earlier call", encoding="utf-8")
            trainings.begin(name, {"a": 1}, Path("out") / name)
        assert engine.given[0] == (train_there, {"a": 1}, Path("out/one"), folder / "one", trusted_code(), str(tmp_path), fresh)
        write_message(folder / "two", "a remark")
        engine.futures[0].set_result(done)
        found = []
        for name, message in trainings.messages(no_further, lambda: False, "go on"):
            found.append((name, message))
            if message == "a remark":
                engine.futures[1].set_result(done)
        assert found == [("one", done), ("two", "a remark"), ("two", done)]
        assert trainings.running == {}
        assert [path for path in folder.rglob("*") if path.is_file()] == []
        trainings.begin("three", {}, Path("out/three"))
    assert (engine.closed, folder.exists()) == (True, not fresh)
    stopped = [path.parent.name for path in folder.rglob("stop")]
    assert stopped == ([] if fresh else ["three"]), "what still runs at the end is asked to stop"


def test_a_signal_stops_all_that_runs_and_begins_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainings, engine = played(monkeypatch, tmp_path, fresh=False)
    stop = {name: tmp_path / ".jobs" / name / "stop" for name in ("one", "two")}
    begun, asked = list[int](), list[str]()
    with trainings:
        for name in stop:
            trainings.begin(name, {}, tmp_path / name)
        trainings.stop("two")
        assert [path.exists() for path in stop.values()] == [False, True]
        (stop["two"]).unlink()
        for number, path in enumerate(stop.values()):
            write_message(path.parent, f"remark {number}")
        for _, message in trainings.messages(lambda: begun.append(1), lambda: bool(asked), "go on"):
            if message == "remark 1":
                asked.append("a signal")
                engine.futures[0].set_exception(EngineError("lost"))
                engine.futures[1].set_result("the end")
        assert (message, len(begun), trainings.stopping) == ("the end", 1, True)
        assert [path.exists() for path in stop.values()] == [True, True]


def test_a_lost_process_is_told_with_the_command_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainings, engine = played(monkeypatch, tmp_path, fresh=True)
    with trainings:
        trainings.begin("one", {}, tmp_path / "one")
        engine.futures[0].set_exception(EngineError("a process ended"))
        with pytest.raises(TrainingError) as told:
            list(trainings.messages(no_further, lambda: False, "type it again"))
        assert str(told.value) == f"training of {tmp_path / 'one'}: a process ended (out of memory?); type it again"
        trainings.begin("two", {}, tmp_path / "two")
        engine.futures[1].set_exception(ZeroDivisionError())
        with pytest.raises(ZeroDivisionError):
            list(trainings.messages(no_further, lambda: False, "type it again"))


def test_models_are_trained_so_many_at_a_time_and_all_have_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = PlayedEngine(fresh=True)
    monkeypatch.setattr("sememekit.jobs.trainings.open_engine", lambda *given: engine)
    monkeypatch.setattr("sememekit.jobs.trainings.LOOK_EVERY", 0.001)
    done = Trained(TrainReport.model_construct(stopped=False), 1.0)
    half = Trained(TrainReport.model_construct(stopped=True), 2.0)
    stop = StopReport(epoch=1, step=2, checkpoint="step-00000002")
    told: list[Any] = []
    asked = False

    def progress(*given: Any) -> None:
        nonlocal asked
        told.append(given)
        if given[0] == "train two":
            assert [given[2].name for given in engine.given] == ["one", "two"]
            engine.futures[0].set_result(done)
        elif given[0] == "train one":
            asked = True
            write_message(engine.given[1][3], stop)
            engine.futures[1].set_result(half)

    def submit(*given: Any) -> Future[Any]:
        if given[2].name == "two":
            write_message(given[3], Position(3, 4, 10, 5))
        return PlayedEngine.submit(engine, *given)

    monkeypatch.setattr(engine, "submit", submit)
    tables: dict[str, dict[str, Any]] = {name: {} for name in ("one", "two", "three")}
    on_report: Callable[..., None] = lambda *given: told.append(given)  # noqa: E731
    found = train_all(tmp_path, tables, "again", progress, on_report, lambda: asked, at_once=2)
    assert told == [("train two", 24, 50), ("train one", 1, 1), ("two", stop)]
    never = TrainReport(
        run=str(tmp_path / "three"),
        epochs=0,
        metric="",
        best_valid=None,
        best_epoch=0,
        tokens_per_second=0.0,
        parameters=0,
        finished="",
        stopped=True,
    )
    assert found == {"one": done, "two": half, "three": Trained(never, 0.0)}


@pytest.mark.parametrize(("allowed", "counted", "at_once"), [(3, 9, 3), (1, 9, 2), (None, 5, 5), (None, None, 2)])
def test_one_training_for_each_core_and_two_at_least(
    monkeypatch: pytest.MonkeyPatch, allowed: int | None, counted: int | None, at_once: int
) -> None:
    if allowed is None:
        monkeypatch.delattr("os.sched_getaffinity", raising=False)
    else:
        monkeypatch.setattr("os.sched_getaffinity", lambda process: {0: range(allowed)}[process], raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: counted)
    assert _at_once() == at_once


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize(("trust", "fresh", "seconds"), [(None, True, 7.5), ({"module"}, False, 0.5)])
def test_a_training_elsewhere_is_told_of_and_may_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool, trust: set[str] | None, fresh: bool, seconds: float
) -> None:
    """A position is sent again after half a second. Signals are one request, and ignored afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signals, "SAME_SIGNAL", -1.0)
    clock = SimpleNamespace(monotonic=lambda: now, process_time=lambda: spent, time_ns=time.time_ns)
    monkeypatch.setattr("sememekit.jobs.trainings.time", clock)
    now, spent = 100.0, 7.0
    for folder in ("there/run", "messages"):
        (tmp_path / folder).mkdir(parents=True)
    if begun:
        (tmp_path / "there" / "run" / "plan.json").touch()
    given: list[Any] = []
    report = TrainReport.model_construct(stopped=True)

    def train(table: Any, run: Path, *, should_stop: Any, on_step: Any, on_report: Any, on_remark: Any, **more: Any) -> Any:
        nonlocal now, spent
        given.append((table, run, Path.cwd(), trusted_code(), more))
        on_remark("a remark")
        for number, (later, num_batches) in enumerate([(0, 0), (0, 0), (0, 9), (0.5, 9), (0.01, 9), (0.1, 9)]):
            now += later
            on_step(Position(1, number, num_batches, 1))
        assert not should_stop()
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)
        assert should_stop()
        spent = 7.5
        return report

    monkeypatch.setattr("sememekit.jobs.trainings.train", train)
    there = (Path("run"), tmp_path / "messages", trust, str(tmp_path / "there"), fresh)
    assert train_there({"a": 1}, *there) == Trained(report, seconds)
    assert given == [({"a": 1}, Path("run"), tmp_path / "there", trust, {"resume": begun})]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    found = [read_message(path) for path in sorted((tmp_path / "messages").glob("*.message"))]
    assert [one.batch if isinstance(one, Position) else one for one in found] == ["a remark", 0, 1, 2, 4]


def test_an_error_elsewhere_comes_back_and_a_stop_before_is_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = TrainingError("the loss is not finite")
    ticks = iter((3.0, 5.5, 7.0))
    monkeypatch.setattr("sememekit.jobs.trainings.time", SimpleNamespace(process_time=lambda: next(ticks)))

    def train(*given: Any, should_stop: Callable[[], bool], **more: Any) -> Any:
        assert not should_stop()
        (tmp_path / "stop").touch()
        assert should_stop()
        raise error

    monkeypatch.setattr("sememekit.jobs.trainings.train", train)
    assert train_there({}, Path("run"), tmp_path, None, str(tmp_path), False) == Failed(error, 2.5)
    stopped = train_there({}, Path("run"), tmp_path, None, str(tmp_path), False)
    assert isinstance(stopped, Trained)
    assert (stopped.report.run, stopped.report.stopped, stopped.cpu_seconds) == ("run", True, 0.0)
