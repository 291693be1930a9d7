"""Signals that ask a long command to stop: it ends with a checkpoint and exit code 75, and the next call goes on.

Nothing heavy is imported here, so that a command can listen before it loads torch.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

STOPPING: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1") if hasattr(signal, name))
"""Ended by a scheduler, by Ctrl-C, by a terminal that was closed, and Slurm's early warning."""

SAME_SIGNAL: Final = 2.0
"""Seconds in which a further signal is the same request: ``timeout`` and Slurm send theirs to a process and to its group."""


class Stopped(BaseException):
    """A signal came where there is no step to finish first. No ``Exception``, so that nothing takes it for a failure."""


class StopRequest:
    """Whether a signal has asked to stop: call it. Inside ``at_once`` the first signal raises ``Stopped``."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._raises = False
        self._first = 0.0

    def __call__(self) -> bool:
        return self._asked.is_set()

    def note(self) -> bool:
        """Take a signal into account; whether it is a second one, given after the first had time to be obeyed.

        Raises:
            Stopped: inside ``at_once``, for the first.
        """
        now = time.monotonic()
        if self._asked.is_set():
            return now - self._first > SAME_SIGNAL
        self._first = now
        self._asked.set()
        if self._raises:
            self._raises = False
            raise Stopped
        return False

    @contextmanager
    def patiently(self) -> Iterator[None]:
        """Inside, signals only set what is told, for work that asks; afterwards as before."""
        before, self._raises = self._raises, False
        try:
            yield
        finally:
            self._raises = before

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, a signal ends the work by an exception, and one that came before does so now.

        Raises:
            Stopped: on a signal.
        """
        self._raises = True
        try:
            if self._asked.is_set():
                raise Stopped
            yield
        finally:
            self._raises = False


@contextmanager
def stop_signals(*, patient: bool = False, lasting: bool = False) -> Iterator[StopRequest]:
    """Inside, SIGTERM, SIGINT, SIGHUP and SIGUSR1 set what the given object tells; outside of the main thread nothing does.

    Args:
        patient: take any number of signals for one. Otherwise a second one, some seconds after the first, acts as usual.
        lasting: once asked, ignore further signals for good, for what a process does last.
    """
    asked = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.getsignal(number) for number in STOPPING}

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.note() and not patient:
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)

    for number in STOPPING:
        if before[number] is not signal.SIG_IGN or number != getattr(signal, "SIGHUP", None):  # nohup stays obeyed
            signal.signal(number, ask)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if lasting and asked() else handler)


@contextmanager
def held_signals() -> Iterator[None]:
    """Inside, these signals wait, and processes that are begun inherit that: see ``release_signals``."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def release_signals() -> None:
    """For a process begun inside ``held_signals``: from now on signals arrive, those that waited at once."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
