"""One thread for all model calls, with a bounded queue.

Requests are computed one by one, since endpoint and command must agree: in batches the kernels of matrix products depend on the
number of rows, which changes the last digits. Equal waiting requests are computed once. ``benchmarks/serve_load.py`` measures
both. One thread for all runs suffices, since each request uses all cores. It also assigns RunWarnings to requests.

A request whose clients all left, or waited too long, is not computed: a waiting one is dropped, and a running one ends at its
next ``check_wanted``."""

import asyncio
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import BoundedSemaphore
from time import monotonic
from typing import Any, Final, TypeVar

from sememekit.files import RunWarning

T = TypeVar("T")

MOST_WAITING: Final = 64  # most waiting and running requests; further ones are refused with 429
MOST_STREAMS: Final = 16
LONGEST_WAIT: Final = 30.0  # timeout of a request in seconds, answered with 503


class BusyError(Exception):
    """Too many requests at once, or another server writes the same folder."""

    def __init__(self, why: str = "too many requests at once; try again in a second") -> None:
        super().__init__(why)


class LateError(Exception):
    """The answer takes too long."""

    def __str__(self) -> str:
        return "the answer takes too long; ask for less at once, or try again"


class UnwantedError(BaseException):
    """Nobody waits for the answer that is computed. Not an ``Exception``, so that no handler of a library catches it."""


class _Job:
    """A function in the queue: its result, the number of clients that wait for it, and when the last of them gives up."""

    def __init__(self) -> None:
        self.future: Future[Any] = Future()
        self.clients, self.until = 0, 0.0

    def wanted(self) -> bool:
        return self.clients > 0 and monotonic() < self.until


_running = threading.local()


def check_wanted() -> None:
    """Raise UnwantedError in a worker whose running request nobody waits for; models call it at each step."""
    job: _Job | None = getattr(_running, "job", None)
    if job is not None and not job.wanted():
        raise UnwantedError


class Worker:
    """A worker that runs functions one by one."""

    def __init__(self, most: int = MOST_WAITING, seconds: float = LONGEST_WAIT) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sememekit-serve")
        self._room, self._streams, self._seconds = BoundedSemaphore(most), BoundedSemaphore(MOST_STREAMS), seconds
        self._shared: dict[str, _Job] = {}
        self._runs: _Job | None = None

    async def ask(self, function: Callable[[], T], key: str = "", whole: bool = False) -> tuple[T, list[str]]:
        """Return the result of a function and its remarks; waiting functions with the same ``key`` run once. With ``whole``, as
        for a function that writes files, it is not ended once it began. Raises BusyError: the queue is full. Raises LateError:
        timeout."""
        shared = self._shared.get(key)
        if shared is None and not self._room.acquire(blocking=False):
            raise BusyError
        job = shared or _Job()
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def finished(_: Future[Any]) -> None:
            with suppress(RuntimeError):  # the loop is closed, as after a signal
                loop.call_soon_threadsafe(done.set)

        job.clients, job.until = job.clients + 1, monotonic() + self._seconds
        job.future.add_done_callback(finished)
        if shared is None:
            job.future.add_done_callback(lambda _: self._room.release())
            if key:
                self._shared[key] = job
            self._pool.submit(self._run, job, function, whole)
        try:
            async with asyncio.timeout(self._seconds):
                await done.wait()
            answer: tuple[T, list[str]] = job.future.result()
            return answer
        except (TimeoutError, UnwantedError):
            raise LateError from None
        finally:
            job.clients -= 1
            if self._shared.get(key) is job and (job.future.done() or not job.clients):
                del self._shared[key]  # the next client must not join a job that ends

    def _run(self, job: _Job, function: Callable[[], Any], whole: bool) -> None:
        try:
            if not job.wanted():
                raise UnwantedError
            self._runs = _running.job = None if whole else job
            job.future.set_result(_with_remarks(function))
        except BaseException as error:  # the client gets it
            job.future.set_exception(error)
        finally:
            self._runs = _running.job = None

    async def stream(self, items: Generator[T]) -> AsyncIterator[T]:
        """Yield the items of a generator, each computed after the previous is sent: other requests run between, and slow
        clients cost nothing. The first is computed now, so that errors come first. Raises BusyError: too many streams."""
        if not self._streams.acquire(blocking=False):
            raise BusyError
        try:
            first, _ = await self.ask(lambda: next(items))
        except BaseException:
            self._streams.release()
            raise
        return self._rest(first, items)

    async def _rest(self, item: T | None, items: Generator[T]) -> AsyncIterator[T]:
        try:
            while item is not None:
                yield item
                item, _ = await self.ask(lambda: next(items, None))
        finally:
            self._streams.release()
            with suppress(RuntimeError):  # the worker was closed, as after a signal
                self._pool.submit(items.close)  # behind a step that still runs

    def close(self) -> None:
        """Drop what waits, and end what runs at its next step."""
        if (job := self._runs) is not None:
            job.until = 0.0
        self._pool.shutdown(cancel_futures=True)


def _with_remarks(function: Callable[[], T]) -> tuple[T, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RunWarning)
        result = function()
    return result, list(dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, RunWarning)))
