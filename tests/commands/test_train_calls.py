"""The work of train around a trainer: pages, metrics, remarks, signals, and the report; the trainer is played."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sememekit import signals
from sememekit.errors import RankError
from sememekit.jobs import train as module
from sememekit.jobs.train import Position, TrainReport, train
from sememekit.ranks import ALONE
from sememekit.signals import StopRequest
from sememekit.tasks.base import PrimaryMetric
from sememekit.training import EpochReport, StopReport
from sememekit.training.metrics import StepReport

METRIC = PrimaryMetric("perplexity", lower_is_better=True)
STOP = StopReport(epoch=1, step=2, checkpoint="step-00000002")


def step() -> StepReport:
    return StepReport(epoch=1, batch=2, num_batches=3, step=2, nats=1.0, rate=0.1, tokens_per_second=5.0, estimated=False)


def epoch(seconds: float = 1.0, tokens_per_second: float = 10.0) -> EpochReport:
    return EpochReport(1, 2, 5.5, {"perplexity": 9.5}, 0.1, True, False, "", seconds, tokens_per_second)


class Played:
    """A training that gives reports, each at a time of the clock."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *reports: tuple[float, Any], finished: str = "", track: Any = ()
    ) -> None:
        self.reports, self.now = reports, 100.0
        self.pages: list[float] = []
        self.written: list[str] = []
        self.tracked: list[Any] = []
        self.progress = SimpleNamespace(finished=finished, epoch=3, batch=4, best=7.5, best_epoch=2)
        task = SimpleNamespace(metric=METRIC)
        parameters = [SimpleNamespace(numel=lambda: 6), SimpleNamespace(numel=lambda: 4)]
        trainer = SimpleNamespace(progress=self.progress, num_batches=9, run=self.run, parameters=parameters)
        folder = SimpleNamespace(append_metrics=lambda record: self.written.append(record["kind"]), epochs=lambda: [1])
        schedule = SimpleNamespace(epochs=5)
        plan = SimpleNamespace(run=SimpleNamespace(track=track), schedule=schedule, table=dict)
        training = SimpleNamespace(plan=plan, folder=folder, trainer=trainer, task=task, vectors=None, remarks=("a remark",))

        @contextmanager
        def tracking(names: list[str], out: Path, table: Any) -> Iterator[Callable[[Any], None]]:
            self.tracked.append(names)
            yield self.tracked.append

        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(module, "open_training", lambda *given, **more: nullcontext(training))
        monkeypatch.setattr(module, "tracking", tracking)
        monkeypatch.setattr(module, "check_trackers", lambda names: None)
        monkeypatch.setattr(module, "write_report", lambda out: self.pages.append(self.now))
        monkeypatch.setattr(module, "tokens_per_second", lambda epochs: 77.0)
        monkeypatch.setattr(module, "ending_text", lambda progress, schedule: progress.finished)

    def run(self, stepped: Callable[[], bool]) -> Iterator[Any]:
        for now, report in self.reports:
            self.now = now
            stepped()
            yield report


def test_the_page_is_written_ten_seconds_after_the_last_one_if_an_epoch_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is also written at the end, if an epoch ended since."""
    times = [(105.0, epoch()), (109.5, step()), (110.0, step()), (130.0, step()), (131.0, epoch()), (132.0, step())]
    times += [(135.0, epoch()), (141.5, step()), (142.0, step())]
    played = Played(monkeypatch, *times)
    train({}, tmp_path)
    assert played.pages == [110.0, 132.0, 142.0]
    played = Played(monkeypatch, *times, (143.0, epoch()))
    train({}, tmp_path)
    assert played.pages == [110.0, 132.0, 142.0, 143.0]


@pytest.mark.parametrize(("finished", "pages"), [("5 epochs done", [100.0]), ("", [])])
def test_a_finished_run_has_its_page_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: str, pages: list[float]
) -> None:
    """Without an epoch in this call, the speed is of all epochs."""
    played = Played(monkeypatch, finished=finished)
    places: list[Position] = []
    report = train({}, tmp_path, on_step=places.append, should_stop=lambda: False)
    assert (played.pages, places) == (pages, [Position(3, 4, 9, 5, METRIC)])
    assert report == TrainReport(
        run=str(tmp_path),
        epochs=3 if finished else 2,
        metric="perplexity",
        best_valid=7.5,
        best_epoch=2,
        tokens_per_second=77.0,
        parameters=10,
        remarks=("a remark",),
        finished=finished,
        stopped=False,
    )


@pytest.mark.parametrize("leads", [True, False])
def test_one_process_of_several_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leads: bool) -> None:
    """The speed is a mean over the seconds of all epochs."""
    played = Played(monkeypatch, (101.0, step()), (102.0, epoch(1.0, 10.0)), (103.0, epoch(3.0, 20.0)), finished="done")
    told: list[Any] = []
    ranks: Any = SimpleNamespace(size=2, leads=leads)
    report = train({}, tmp_path, on_report=told.append, ranks=ranks)
    kinds = ["StepReport", "EpochReport", "EpochReport"]
    assert [type(one).__name__ for one in told] == kinds
    assert (report.tokens_per_second, report.stopped) == (17.5, False)
    assert (played.written, played.pages) == ((kinds, [100.0, 103.0]) if leads else ([], []))
    assert played.tracked == ([[], *told] if leads else [])


def test_a_stop_is_noted_and_further_signals_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "SAME_SIGNAL", -1.0)
    for reports, stopped in (((101.0, step()),), False), (((101.0, step()), (102.0, STOP)), True):
        Played(monkeypatch, *reports)
        request = StopRequest()
        assert train({}, tmp_path, should_stop=request).stopped == stopped
        assert request() == stopped
        request.note()
        assert request.note() != stopped, "a second signal acts, unless the stop is settled"
    assert train({}, tmp_path, should_stop=lambda: False).stopped


@pytest.mark.parametrize(
    ("resume", "given", "sent"),
    [(False, (), ["mlflow", "tensorboard"]), (True, (), ["tensorboard"]), (True, ("mlflow",), ["mlflow", "tensorboard"])],
)
@pytest.mark.parametrize("leads", [True, False])
def test_what_a_resumed_plan_sends_to_others_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resume: bool, given: tuple[str, ...], sent: list[str], leads: bool
) -> None:
    played = Played(monkeypatch, track=("mlflow", "tensorboard"))
    remarks: list[str] = []
    table = {"run": {"track": given}} if given else {}
    ranks: Any = SimpleNamespace(size=1, leads=leads)
    train(table, tmp_path, resume=resume, on_remark=remarks.append, ranks=ranks)
    assert played.tracked == ([sent] if leads else [])
    again = f"sememekit train --out {tmp_path} --resume --track mlflow"
    told = f"nothing is sent to mlflow, which the plan names; to send it, stop and type: {again}"
    assert remarks == ([told] if leads and len(sent) == 1 else [])


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(
    ("begun", "advice"),
    [
        (True, "; go on from the last checkpoint with: torchrun --nproc_per_node={} -m sememekit train --out {} --resume (or"),
        (False, ", before training began; mend that, and type the same command again"),
    ],
)
def test_a_lost_rank_is_told_with_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, begun: bool, advice: str
) -> None:
    """Several processes take any number of signals for one request, and ignore them when they have stopped."""
    asked: list[dict[str, bool]] = []

    def stop_signals(**given: bool) -> Any:
        asked.append(given)
        return nullcontext(StopRequest())

    def lost(*given: Any, **more: Any) -> None:
        raise RankError("rank 1 ended")

    if begun:
        (tmp_path / "checkpoints").mkdir()
    monkeypatch.setattr(module, "stop_signals", stop_signals)
    monkeypatch.setattr(module, "open_training", lost)
    ranks: Any = SimpleNamespace(size=size, leads=True)
    with pytest.raises(RankError) as told:
        train({}, tmp_path, ranks=ranks)
    assert str(told.value).startswith("rank 1 ended" + advice.format(size, tmp_path))
    assert asked == [{"patient": size > 1, "lasting": size > 1}]
    with pytest.raises(RankError):
        train({}, tmp_path, ranks=ranks, should_stop=lambda: False)
    assert len(asked) == 1, "signals are watched by the caller"
    assert ALONE.size == 1
