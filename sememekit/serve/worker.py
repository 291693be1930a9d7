"""One thread for all model calls, with a bounded queue.

Requests are computed one by one, since endpoint and command must agree: in batches the kernels of matrix products depend on the
number of rows, which changes the last digits. Equal waiting requests are computed once. ``benchmarks/serve_load.py`` measures
both. One thread for all runs suffices, since each request uses all cores. It also assigns RunWarnings to requests."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import BoundedSemaphore
from time import monotonic
from typing import Any, Final, TypeVar

from sememekit.files import RunWarning

T = TypeVar("T")

MOST_WAITING: Final = 64  # most waiting and running requests; further ones are refused with 429
MOST_STREAMS: Final = 16
LONGEST_WAIT: Final = 30.0  # timeout of a request in seconds, answered with 503


class BusyError(Exception):
    """Too many requests at once."""

    def __str__(self) -> str:
        return "too many requests at once; try again in a second"


class LateError(Exception):
    """The answer takes too long."""

    def __str__(self) -> str:
        return "the answer takes too long; ask for less at once, or try again"


class Worker:
    """A worker that runs functions one by one."""

    def __init__(self, most: int = MOST_WAITING, seconds: float = LONGEST_WAIT) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sememekit-serve")
        self._room, self._streams, self._seconds = BoundedSemaphore(most), BoundedSemaphore(MOST_STREAMS), seconds
        self._shared: dict[str, Future[Any]] = {}

    async def ask(self, function: Callable[[], T], key: str = "") -> tuple[T, list[str]]:
        """Return the result of a function and its remarks; waiting functions with the same ``key`` run once. Raises BusyError:
        the queue is full. Raises LateError: timeout; a waiting function is dropped, a running one finishes without a client."""
        future: Future[tuple[T, list[str]]] | None = self._shared.get(key)
        if future is None:
            if not self._room.acquire(blocking=False):
                raise BusyError
            future = self._pool.submit(_with_remarks, function, monotonic() + self._seconds)
            future.add_done_callback(lambda _: self._room.release())
            if key:
                self._shared[key] = future
                future.add_done_callback(lambda _: self._shared.pop(key, None))
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), self._seconds)
        except TimeoutError:
            raise LateError from None

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
            self._pool.submit(items.close)  # behind a step that still runs

    def close(self) -> None:
        """Finish the running function, and drop the waiting ones."""
        self._pool.shutdown(cancel_futures=True)


def _with_remarks(function: Callable[[], T], until: float) -> tuple[T, list[str]]:
    if monotonic() > until:
        raise LateError
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RunWarning)
        result = function()
    return result, list(dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, RunWarning)))
