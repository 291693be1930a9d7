"""Trainings on an engine: the same messages as from processes of this machine, through files that every machine sees.

    OUT/.jobs/NAME/0.messages   a length and a pickled message after the other; 1.messages is of the process that went on
                                with the training where the first was lost, and so on
    OUT/.jobs/NAME/stop         asks the process to stop with a checkpoint

Messages of an earlier call are removed before a training begins, so that nothing is read that another one wrote. They are
pickled, as what an engine sends is: who can write to this folder while a command runs can run code, as its owner can.
"""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, Final

from sememekit.config import trusted_code
from sememekit.engines.base import Engine, open_engine
from sememekit.errors import EngineError
from sememekit.jobs.trainings import PATIENCE, Failed, Message, Trained, Trainings, train_one

JOBS: Final = ".jobs"
_STOP: Final = "stop"
_LOOK_EVERY: Final = 0.2
"""Seconds between two looks at the files of messages."""


def open_trainings(engine: str, num_workers: int, out: Path) -> Trainings:
    """Trainings in processes of this machine for ``local``, else on the engine. Raises ConfigError as ``open_engine``."""
    if engine == "local":
        return Trainings()
    (out / JOBS).mkdir(parents=True, exist_ok=True)
    return TrainingsOnEngine(open_engine(engine, num_workers, out), out / JOBS)


class TrainingsOnEngine(Trainings):
    """``Trainings`` on an engine. A training whose process was lost goes on from its last checkpoint where the engine gives it
    to another one; otherwise the same command does that."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine, self._folder = engine, folder.absolute()
        self._workers: dict[str, Future[None]] = {}
        self._read: dict[str, _Receiver] = {}
        self._waiting: list[tuple[str, Message]] = []
        self._ended: set[str] = set()

    def __exit__(self, *exception: object) -> None:
        """Stop what is still trained, and wait for the checkpoints."""
        self.stop()
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and not all(future.done() for future in self._workers.values()):
            time.sleep(_LOOK_EVERY)
        self._engine.close()
        for receiver in self._read.values():
            receiver.close()

    def begin(self, name: str, table: Mapping[str, Any], run: Path) -> None:
        """Train, or go on training where the run has begun."""
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self._read[name] = _Receiver(folder)
        self._ended.discard(name)
        arguments = (name, table, run, folder, trusted_code(), os.getcwd())
        self._workers[name] = self._engine.submit(train_there, *arguments)

    def receive(self) -> tuple[str, Message] | None:
        """The next message of any of them; None where there is none for a moment."""
        for name in self.running if not self._waiting else ():
            self._waiting += [(name, message) for message in self._read[name].new()]
        if not self._waiting:
            time.sleep(_LOOK_EVERY)
            return None
        name, message = self._waiting.pop(0)
        if isinstance(message, Trained | Failed):
            self._ended.add(name)
        return name, message

    def dead(self) -> dict[str, int]:
        """The names of those that ended without a last message; each is told of once. Raises what the engine raised, but for a
        process that it lost."""
        found = {}
        for name in self.running:
            future = self._workers[name]
            if future.done() and not (more := self._read[name].new()):
                error = future.exception()
                if error is not None and not isinstance(error, EngineError):
                    raise error
                found[name] = 1
                self._ended.add(name)
            elif future.done():
                self._waiting += [(name, message) for message in more]
        return found

    def stop(self, *names: str) -> None:
        """Ask these, or all, to stop with a checkpoint."""
        for name in names or self._workers:
            (self._folder / name / _STOP).touch()


class _Receiver:
    """The messages about one training, of one process after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0
        self._stream: BinaryIO | None = None

    def new(self) -> list[Message]:
        """Those that were written since the last look."""
        found: list[Message] = []
        while True:
            if self._stream is None:
                path = self._folder / f"{self._number}.messages"
                if not path.exists():
                    return found
                self._stream = path.open("rb")
            last = not (self._folder / f"{self._number + 1}.messages").exists()
            found += _whole_messages(self._stream)
            if last:
                return found
            self.close()
            self._number += 1

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def _whole_messages(stream: BinaryIO) -> list[Message]:
    """The messages from here on; of half a one nothing is read."""
    found: list[Message] = []
    while True:
        place = stream.tell()
        size = int.from_bytes(stream.read(8), "little")
        content = stream.read(size)
        if not size or len(content) < size:
            stream.seek(place)
            return found
        found.append(pickle.loads(content))


class _Sender:
    """What a training has for a queue: the next file of messages."""

    def __init__(self, folder: Path) -> None:
        number = 0
        while (path := folder / f"{number}.messages").exists():
            number += 1
        self._stream = path.open("xb")

    def put(self, message: tuple[str, Message]) -> None:
        content = pickle.dumps(message[1])
        self._stream.write(len(content).to_bytes(8, "little") + content)
        self._stream.flush()

    def close(self) -> None:
        self._stream.close()


def train_there(
    name: str, table: Mapping[str, Any], run: Path, messages: Path, trust: Collection[str] | None, folder: str
) -> None:
    """In a process of an engine: train or go on training, with paths as from ``folder``."""
    os.chdir(folder)
    stop = messages / _STOP
    with closing(_Sender(messages)) as sender:
        train_one(name, table, run, sender, trust, told_to_stop=stop.exists, since=time.process_time())
