"""Functions that the tests of engines run in other processes."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sememekit.engines.base import Engine, Result
from sememekit.errors import DataError


def double(number: int) -> int:
    return 2 * number


def refuse(number: int) -> int:
    raise DataError(f"number {number}")


def mark_and_die_once(task: tuple[Path, int]) -> int:
    """Leave a file; number 1 kills its process the first time, when another one has left its file."""
    folder, number = task
    died = folder / "died"
    if number == 1 and not died.exists():
        while not any(folder.glob("done-*")):
            time.sleep(0.05)
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    with (folder / f"done-{number}").open("a") as file:
        file.write(f"{os.getpid()}\n")
    return number


class Here(Engine):
    """One call after the other in a thread of this process, with nothing imported anew.

    As of another process, what cannot be pickled is refused, and the call works on a copy of its arguments.
    """

    def __init__(self, options: str, num_workers: int, folder: Path) -> None:
        super().__init__(options, num_workers, folder)
        self._pool = ThreadPoolExecutor(1)

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        pickle.dumps((work, arguments))  # an error where another process could not be told
        return self._pool.submit(work, *copy.deepcopy(arguments))

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


class HereUntilStopped(Here):
    """The first call at once, and the others when an attack is asked to stop."""

    _begun = False

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        if self._begun:
            self._pool.submit(self._wait)
        self._begun = True
        return super().submit(work, *arguments)

    def _wait(self) -> None:
        while not (self.folder / "stop").exists():
            time.sleep(0.02)


def deaf(table: object, ready: Path, *rest: object) -> None:
    """Ignore the signals that a process can catch, and sleep."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready.touch()
    time.sleep(600)


def held() -> set[int]:
    """The signals that are blocked here."""
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, ()))


def process_of(number: int) -> int:
    return os.getpid()


def wait_there(path: Path) -> None:
    """Write the number of this process into a file, and sleep."""
    written = path.with_suffix(".part")
    written.write_text(str(os.getpid()))
    written.replace(path)
    time.sleep(600)
