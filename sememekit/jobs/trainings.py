"""Train several models in parallel, each in a process of an engine that sends messages through files.

    FOLDER/NAME/TIME.message    a message about the training NAME, [kind, value] as JSON, removed when it is read
    FOLDER/NAME/stop            asks the process to stop with a checkpoint

FOLDER is temporary on this machine, and otherwise ``OUT/.jobs``, which every machine sees. Older messages are removed first."""

import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, get_args

from pydantic import TypeAdapter

from sememekit.config import trusted_code, trusting_code
from sememekit.engines.base import LOOK_EVERY, open_engine
from sememekit.errors import EngineError, SememekitError, TrainingError
from sememekit.jobs.train import Position, TrainReport, train
from sememekit.progress import Progress
from sememekit.signals import release_signals, stop_signals
from sememekit.training import Report

JOBS: Final = ".jobs"
PATIENCE: Final = 30.0  # seconds for the checkpoint of a training after it was asked to stop

_STOP: Final = "stop"
_TELL_EVERY: Final = 0.5  # seconds between two messages on the position of a training


class Trained(NamedTuple):
    """A model that was trained in another process."""

    report: TrainReport  # of its training
    # user and system time of the process up to the report, or of the call if an engine reuses processes; without earlier calls
    # of a continued training
    cpu_seconds: float


class Failed(NamedTuple):
    """A training that ended in an error, with its CPU seconds as in ``Trained``."""

    error: SememekitError
    cpu_seconds: float


Told = Report | Position | str  # a message of a training while it runs: a report, its position, or a remark
Message = Told | Trained | Failed  # a message, or the result at the end
_KINDS: Final = {kind.__name__: TypeAdapter[Told](kind) for kind in get_args(Told)}


def write_message(folder: Path, message: Told) -> None:
    """Write a message that appears whole, behind the earlier ones."""
    path, kind = folder / f"{time.time_ns():020d}.part", type(message).__name__
    path.write_text(json.dumps([kind, _KINDS[kind].dump_python(message)]), encoding="utf-8")
    path.replace(path.with_suffix(".message"))


def read_message(path: Path) -> Told:
    """Read a message. Raises TrainingError: another program wrote the file."""
    try:
        kind, value = json.loads(path.read_bytes())
        return _KINDS[kind].validate_python(value)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise TrainingError(
            f"{path}: no message of a training, and nothing else may write there; remove it, and type the command again"
        ) from None


class Trainings:
    """Trainings in processes of an engine.

        with Trainings("local", 2, Path("runs")) as trainings:
            trainings.begin("one", table, Path("runs/one"))
            for name, message in trainings.messages(lambda: None, asked_to_stop, "type the same command"):
                ...

    Processes of this machine end with this one. Repeated signals count as one, and the processes always end with a checkpoint.
    A training whose process was lost continues from its last checkpoint, by the engine or by the same command."""

    stopping: bool = False  # a signal came

    def __init__(self, engine: str, num_workers: int, out: Path) -> None:
        """Raises ConfigError as ``open_engine``."""
        self._engine, self._out = open_engine(engine, num_workers, out), out
        self._folder = Path(tempfile.mkdtemp()) if self._engine.fresh else (out / JOBS).absolute()
        self.running: dict[str, Future[Trained | Failed]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop running trainings, and wait for the checkpoints. A process that does not end is killed; its checkpoint stays."""
        self.stop()
        wait(self.running.values(), PATIENCE)
        self._engine.close()
        if self._engine.fresh:
            shutil.rmtree(self._folder, ignore_errors=True)

    def begin(self, name: str, table: Mapping[str, Any], run: Path) -> None:
        """Begin a training, or continue it if the run has begun."""
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        arguments = (table, run, folder, trusted_code(), os.getcwd(), self._engine.fresh)
        self.running[name] = self._engine.submit(train_there, *arguments)

    def _received(self) -> Iterator[tuple[str, Message | EngineError]]:
        """Yield the present messages of all trainings; for a lost process an EngineError. Raises the exception of a bug."""
        for name, future in list(self.running.items()):
            done = future.done()  # asked before its files are read, so that none is left behind
            for path in sorted((self._folder / name).glob("*.message")):
                yield name, read_message(path)
                path.unlink()
            if done:
                del self.running[name]
                error = future.exception()
                yield name, error if isinstance(error, EngineError) else future.result()

    def stop(self, *names: str) -> None:
        """Ask some trainings, or all, to stop with a checkpoint."""
        for name in names or self.running:
            (self._folder / name / _STOP).touch()

    def messages(
        self, begin_more: Callable[[], None], asked_to_stop: Callable[[], bool], go_on: str
    ) -> Iterator[tuple[str, Message]]:
        """Yield the messages of all processes, until none runs. ``begin_more`` begins further trainings if there is room, but
        not after a signal, which stops all trainings. Raises TrainingError: a process was lost; ``go_on``: how to continue."""
        while True:
            if asked_to_stop() and not self.stopping:
                self.stopping = True
                self.stop()
            if not self.stopping:
                begin_more()
            if not self.running:
                return
            if not (received := list(self._received())):
                time.sleep(LOOK_EVERY)
            for name, message in received:
                if not isinstance(message, EngineError):
                    yield name, message
                elif not self.stopping:
                    raise TrainingError(f"training of {self._out / name}: {message} (out of memory?); {go_on}")


def train_all(
    out: Path,
    tables: Mapping[str, Mapping[str, Any]],
    command: str,
    progress: Progress,
    on_report: Callable[[str, Report], None],
    asked_to_stop: Callable[[], bool],
    *,
    at_once: int = 0,
    engine: str = "local",
    on_remark: Callable[[str], None] = lambda text: None,
) -> dict[str, Trained]:
    """Train each model in a separate process of an ``engine``, into ``out/NAME``; a signal stops them all with checkpoints.

    The trainings of ``tables`` (name of a run -> its table) begin in this order, ``at_once`` in parallel (0: one for each core,
    at least two). ``command`` continues them, for messages. ``progress`` is called for each run as "train NAME", in batches of
    all epochs, ``on_remark`` once with each remark before a training begins. Raises SememekitError: an error of one training,
    with its folder; the others were stopped."""
    waiting, done, remarks, at_once = dict(tables), dict[str, Trained](), set[str](), at_once or _at_once()
    with Trainings(engine, at_once, out) as trainings:

        def begin_more() -> None:
            while waiting and len(trainings.running) < at_once:
                name = next(iter(waiting))
                trainings.begin(name, waiting.pop(name), out / name)

        for name, message in trainings.messages(begin_more, asked_to_stop, f"go on with: {command}"):
            match message:
                case Trained():
                    done[name] = message
                    if not message.report.stopped:
                        progress(f"train {name}", 1, 1)
                case Failed(error=error):
                    raise type(error)(f"{out / name}: {error}")
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
    """Report the position of a training in batches of all epochs."""
    if place.num_batches:
        progress(f"train {name}", (place.epoch - 1) * place.num_batches + place.batch, place.epochs * place.num_batches)


def _at_once() -> int:
    """Return the number of models to train at a time: one for each core that this process may use, at least two."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(2, cores)


def train_there(
    table: Mapping[str, Any], run: Path, messages: Path, trust: Collection[str] | None, folder: str, fresh: bool
) -> Trained | Failed:
    """Train in another process, with paths relative to ``folder``, and write every report to ``messages``. ``fresh``: the
    process does nothing else, so that all its CPU time counts."""
    os.chdir(folder)
    told, since, stop = -math.inf, 0.0 if fresh else time.process_time(), messages / _STOP

    send = partial(write_message, messages)

    def tell(place: Position) -> None:
        nonlocal told
        if time.monotonic() - told > _TELL_EVERY:
            told = time.monotonic() if place.num_batches else told  # what comes before the first step is told as well
            send(place)

    with stop_signals(patient=True, lasting=True) as asked_to_stop, trusting_code(True if trust is None else trust):
        release_signals()

        def stopping() -> bool:
            return asked_to_stop() or stop.exists()

        if stopping():
            return _stopped_before_it_began(run)
        try:
            begun = (run / "plan.json").is_file()
            report = train(table, run, resume=begun, on_report=send, on_remark=send, on_step=tell, should_stop=stopping)
        except SememekitError as error:
            return Failed(error, time.process_time() - since)
        return Trained(report, time.process_time() - since)


def _stopped_before_it_began(run: Path) -> Trained:
    """Return the report of a process that a signal stopped before training began."""
    figures = {"best_valid": None, "epochs": 0, "best_epoch": 0, "tokens_per_second": 0.0, "parameters": 0}
    told = {"run": str(run), "metric": "", "finished": "", "stopped": True, **figures}
    return Trained(TrainReport.model_validate(told), 0.0)
