"""Processes of this machine (``concurrent.futures``)."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, final

from sememekit.engines.base import Engine, Item, Result
from sememekit.errors import ConfigError, EngineError


@final
class Local(Engine):
    """``--engine local``: a pool of processes on this machine; with one worker everything runs in this process.

    A process that is killed ends the call with ``EngineError``, for the system does not say which of the calls it was that
    took too much memory: calls that ended before keep their results, and a new engine goes on.
    """

    def __init__(self, options: str, num_workers: int, folder: Path) -> None:
        super().__init__(options, num_workers, folder)
        if options:
            raise ConfigError(f"--engine local:{options}: it has no options; write --engine local")
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        if self._pool is None:
            # "spawn", because a forked child of a process with threads (torch, BLAS) can hang
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.num_workers, context, _begin)
        return self._pool.submit(work, *arguments)

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        if self.num_workers == 1 or (len(items) < 2 and self._pool is None):
            yield from ((index, work(item)) for index, item in enumerate(items))
            return
        try:
            yield from super().map(work, items)
        except BrokenProcessPool:
            raise EngineError(
                "a worker was killed, perhaps for want of memory; run the same command again with fewer --workers: finished "
                "parts are kept"
            ) from None

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches all processes; the one that was called speaks of it
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Exit when the parent process is gone: it would hold the lock no longer."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
