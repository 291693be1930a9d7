"""Processes of this machine."""

import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, ClassVar, Final, final

from sememekit.engines.base import Engine, Item, Result
from sememekit.errors import ConfigError, EngineError
from sememekit.signals import held_signals

_SPAWN: Final = multiprocessing.get_context("spawn")  # a forked child of a process with threads (torch, BLAS) can hang


@final
class Local(Engine):
    """``--engine local``: processes on this machine, which end when this one does. ``submit`` starts one for each call, with
    signals held (``release_signals``); ``map`` uses a pool, and with one worker runs in this process.

    In a pool, a killed process ends the work with ``EngineError``, since the system does not say which call took too much
    memory. Finished calls keep their results, and a new engine continues."""

    fresh: ClassVar[bool] = True

    def __init__(self, options: str, num_workers: int, folder: Path) -> None:
        super().__init__(options, num_workers, folder)
        if options:
            raise ConfigError(f"--engine local:{options}: it has no options; write --engine local")
        self._pool: ProcessPoolExecutor | None = None
        self._processes: list[Any] = []

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        future = Future[Result]()
        future.set_running_or_notify_cancel()
        receiver, sender = _SPAWN.Pipe(duplex=False)
        process = _SPAWN.Process(target=_call, args=(sender, work, arguments), daemon=True)
        if hasattr(signal, "pthread_sigmask"):
            with held_signals():  # the process that keeps count of what is shared, and knows no SIGHUP
                resource_tracker.ensure_running()  # where it starts one, it unblocks signals
        with held_signals():
            process.start()
        sender.close()
        self._processes.append(process)
        threading.Thread(target=_take_result, args=(process, receiver, future), daemon=True).start()
        return future

    def map(
        self, work: Callable[[Item], Result], items: Sequence[Item], look: Callable[[], None] | None = None, submit: Any = None
    ) -> Iterator[tuple[int, Result]]:
        if self.num_workers == 1 or (len(items) < 2 and self._pool is None and look is None):
            yield from ((index, work(item)) for index, item in enumerate(items))
            return
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.num_workers, _SPAWN, _begin)
        try:
            yield from super().map(work, items, look, self._pool.submit)
        except BrokenProcessPool:
            raise EngineError(
                "a worker was killed, perhaps because memory ran out; run the same command again with fewer --workers: "
                "finished parts are kept"
            ) from None

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        for process in self._processes:
            process.kill()
            process.join()


def _take_result(process: Any, receiver: Any, future: Future[Any]) -> None:
    try:
        result, error = receiver.recv()
    except EOFError:
        process.join()
        result, error = None, EngineError(f"its process ended with exit code {process.exitcode} before it was done")
    future.set_result(result) if error is None else future.set_exception(error)


def _call(sender: Any, work: Callable[..., Any], arguments: Sequence[Any]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        sender.send((work(*arguments), None))
    except Exception as error:
        sender.send((None, error))


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches all processes; the one that was called speaks of it
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Exit when the parent process is gone: its lock is then released."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
