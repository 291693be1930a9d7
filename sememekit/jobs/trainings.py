"""Training several models at once, each in a process of its own."""

import math
import multiprocessing
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any, Final, Self

from sememekit.config import trusted_code, trusting_code
from sememekit.errors import SememekitError, TrainingError
from sememekit.jobs.train import Position, TrainReport, train
from sememekit.progress import Progress
from sememekit.signals import held_signals, release_signals, stop_signals
from sememekit.training import Report

PATIENCE: Final = 30.0
"""Seconds that a model being trained has for its checkpoint after it was asked to stop."""

_TELL_EVERY: Final = 0.5
"""Seconds between two messages of where a training is."""


@dataclass(frozen=True)
class Trained:
    """A model that was trained in a process of its own.

    Attributes:
        report: of its training.
        cpu_seconds: user and system time of the process, from its start to the report; of this call alone where it went on.
    """

    report: TrainReport
    cpu_seconds: float


@dataclass(frozen=True)
class Failed:
    """A training that ended in an error, with the CPU seconds that it took, as ``Trained`` counts them."""

    error: SememekitError
    cpu_seconds: float


Message = Report | Position | str | Trained | Failed
"""What a training sends home: its reports, where it is, remarks, and at its end what it came to."""


class Trainings:
    """Trainings in processes of their own, which end when this one does.

        with Trainings() as trainings:
            trainings.begin("one", table, Path("runs/one"))
            name, message = trainings.receive()

    The processes are begun with signals held, and take any number of them for one: however often and at whatever moment a
    terminal, ``timeout`` or Slurm tells them, they end with a checkpoint.
    """

    stopping: bool = False
    """A signal came."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")  # a fork would copy the threads of torch
        with held_signals():
            self._queue = self._context.Queue()  # begins the process that keeps count of what is shared, which knows no SIGHUP
        self._workers: dict[str, Any] = {}
        self._ended: set[str] = set()
        self._over: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop what is still trained, and wait for the checkpoints. What does not end is killed: a process can wait for ever to
        tell something, where another one was killed while it did so; its last checkpoint is whole."""
        self.stop()
        end = time.monotonic() + PATIENCE
        for worker in self._workers.values():
            worker.join(max(0.0, end - time.monotonic()))
        for worker in self._workers.values():
            if worker.is_alive():
                worker.kill()
                worker.join()

    def begin(self, name: str, table: Mapping[str, Any], run: Path) -> None:
        """Train, or go on training where the run has begun."""
        arguments = (name, table, run, self._queue, trusted_code())
        worker = self._context.Process(target=train_one, args=arguments, daemon=True)
        with held_signals():
            worker.start()
            self._workers[name] = worker
        self._ended.discard(name)

    @property
    def running(self) -> list[str]:
        """The names of those that have not ended."""
        return [name for name in self._workers if name not in self._ended]

    def receive(self) -> tuple[str, Message] | None:
        """The next message of any of them; None where there is none for a moment."""
        try:
            name, message = self._queue.get(timeout=0.2)
        except Empty:
            return None
        if isinstance(message, Trained | Failed):
            self._ended.add(name)
        return name, message

    def dead(self) -> dict[str, int]:
        """The names of those that ended without a last message, with their exit codes; each is told of once."""
        over = {name: self._workers[name].exitcode for name in self.running if self._workers[name].exitcode is not None}
        found = {name: code for name, code in over.items() if name in self._over}  # its last message may come after a look
        self._over = set(over)
        self._ended |= set(found)
        return found

    def stop(self, *names: str) -> None:
        """Ask these, or all, to stop with a checkpoint."""
        for name in names or self._workers:
            worker = self._workers[name]
            if worker.is_alive():
                worker.terminate()

    def messages(
        self, begin_more: Callable[[], None], asked_to_stop: Callable[[], bool], death: Callable[[str, int], TrainingError]
    ) -> Iterator[tuple[str, Message]]:
        """Yield the messages of all processes, until none runs.

        Args:
            begin_more: begins further ones where there is room; not called any more after a signal.
            asked_to_stop: whether a signal came, which stops all.
            death: the error for the one NAME that ended without a last message and before a signal, with its exit code."""
        while True:
            if asked_to_stop() and not self.stopping:
                self.stopping = True
                self.stop()
            if not self.stopping:
                begin_more()
            if not self.running:
                return
            if (received := self.receive()) is not None:
                yield received
            elif (dead := self.dead()) and not self.stopping:
                raise death(*next(iter(dead.items())))


def train_all(
    out: Path,
    tables: Mapping[str, Mapping[str, Any]],
    command: str,
    progress: Progress,
    on_report: Callable[[str, Report], None],
    asked_to_stop: Callable[[], bool],
    *,
    at_once: int = 0,
    open_trainings: Callable[[], Trainings] | None = None,
    in_words: Callable[[str, SememekitError], SememekitError] = lambda name, error: error,
    on_remark: Callable[[str], None] = lambda text: None,
) -> dict[str, Trained]:
    """Train every model in a process of its own; a signal stops them all with checkpoints.

    Args:
        out: the folder of the runs.
        tables: name of a run -> what to train; the first ones begin, and each of the others when one is done.
        command: what to type to go on, for messages.
        progress: told of each run as "train NAME", in batches of all epochs.
        on_report: told each report.
        asked_to_stop: whether a signal came.
        at_once: how many are trained at a time; 0: as many as there are cores, two at least.
        open_trainings: makes what they are trained by; processes of this machine unless given.
        in_words: the error to raise for one of the run NAME.
        on_remark: told what is to be known before a training begins, once.

    Raises SememekitError: what went wrong in one of them; the others were stopped."""
    waiting, done, remarks = dict(tables), dict[str, Trained](), set[str]()
    with (open_trainings or Trainings)() as trainings:

        def begin_more() -> None:
            while waiting and len(trainings.running) < (at_once or _at_once()):
                name = next(iter(waiting))
                trainings.begin(name, waiting.pop(name), out / name)

        def death(name: str, code: int) -> TrainingError:
            return TrainingError(
                f"training of {out / name} ended with exit code {code} before it was done (out of memory?); go on with: "
                f"{command}"
            )

        for name, message in trainings.messages(begin_more, asked_to_stop, death):
            match message:
                case Trained():
                    done[name] = message
                    if not message.report.stopped:
                        progress(f"train {name}", 1, 1)
                case Failed(error=error):
                    raise in_words(name, error)
                case Position():
                    show_position(progress, name, message)
                case str():
                    if message not in remarks:
                        on_remark(message)
                    remarks.add(message)
                case _:
                    on_report(name, message)
    return {name: done.get(name) or _stopped_before_it_began(out / name) for name in tables}


def show_position(progress: Progress, name: str, place: Position) -> None:
    """Report where a training is in batches of all epochs."""
    if place.num_batches:
        progress(f"train {name}", (place.epoch - 1) * place.num_batches + place.batch, place.epochs * place.num_batches)


def _at_once() -> int:
    """How many models are trained at a time: one a core that this process may use, and two where there is one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(2, cores)


def train_one(
    name: str,
    table: Mapping[str, Any],
    run: Path,
    queue: Any,
    trust: Collection[str] | None,
    *,
    told_to_stop: Callable[[], bool] = lambda: False,
    since: float = 0.0,
) -> None:
    """In a process of its own: train or go on training, and send every report home. Without a parent, stop.

    ``told_to_stop`` is asked beside signals; ``since`` is the CPU time of the process that is not counted.
    """
    parent = multiprocessing.parent_process()
    told = -math.inf

    def send(message: Message) -> None:
        if parent is not None and not parent.is_alive():
            raise SystemExit(1)
        queue.put((name, message))

    def tell(place: Position) -> None:
        nonlocal told
        if time.monotonic() - told > _TELL_EVERY:
            told = time.monotonic() if place.num_batches else told  # what comes before the first step is told as well
            send(place)

    with stop_signals(patient=True, lasting=True) as asked_to_stop, trusting_code(True if trust is None else trust):
        release_signals()
        try:
            begun = (run / "plan.json").is_file()

            def stopping() -> bool:
                return asked_to_stop() or told_to_stop()

            if stopping():
                queue.put((name, _stopped_before_it_began(run)))
                return
            report = train(table, run, resume=begun, on_report=send, on_remark=send, on_step=tell, should_stop=stopping)
            queue.put((name, Trained(report, time.process_time() - since)))
        except SememekitError as error:
            queue.put((name, Failed(error, time.process_time() - since)))


def _stopped_before_it_began(run: Path) -> Trained:
    """For a process that a signal met while it was still loading, or before it was begun."""
    figures = {"best_valid": None, "epochs": 0, "best_epoch": 0, "tokens_per_second": 0.0, "parameters": 0}
    told = {"run": str(run), "metric": "", "finished": "", "stopped": True, **figures}
    return Trained(TrainReport.model_validate(told), 0.0)
