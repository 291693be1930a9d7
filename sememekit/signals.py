"""Signals that ask a long command to stop: the command writes a checkpoint, and ``--resume`` continues it. This module imports
nothing heavy, so that a command can listen before it loads torch. Exit codes of the program:

==== ==========================================================================
0    done
1    an error that the user can fix, or a bug of ours, which says so
2    a command line that we do not understand
75   stopped by a signal, with a checkpoint to resume from
130  interrupted from the keyboard, with nothing to resume
==== =========================================================================="""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

FAILED, USAGE, STOPPED, INTERRUPTED = 1, 2, 75, 130

STOPPING: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1") if hasattr(signal, name))
"""Signals of a scheduler, of Ctrl-C, of a closed terminal, and Slurm's early warning."""

SAME_SIGNAL: Final = 2.0
"""Seconds in which a further signal is the same request, since ``timeout`` and Slurm signal a process and its group."""


class Stopped(BaseException):
    """A signal arrived with no step to finish. Not an ``Exception``, so that no handler catches it."""


class StopRequest:
    """A callable that tells whether a signal asked to stop. Inside ``at_once`` the first signal raises ``Stopped``."""

    def __init__(self) -> None:
        self._asked = False  # no Event: setting one takes a lock, for which a signal inside the handler of a signal would wait
        self._raises = False
        self._settled = False
        self._first = 0.0

    def __call__(self) -> bool:
        return self._asked

    def note(self) -> bool:
        """Record a signal; return True for a second signal that comes after the first had time to act. Raises Stopped for the
        first, inside ``at_once``."""
        now = time.monotonic()
        if self._asked:
            return not self._settled and now - self._first > SAME_SIGNAL
        self._first = now
        self._asked = True
        if self._raises:
            self._raises = False
            raise Stopped
        return False

    def settle(self) -> None:
        """Ignore further signals once the requested stop has written its checkpoint."""
        self._settled = True

    @contextmanager
    def patiently(self) -> Iterator[None]:
        """Only record signals inside the block, for work that polls."""
        before, self._raises = self._raises, False
        try:
            yield
        finally:
            self._raises = before

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise Stopped at a signal inside the block (or one before it)."""
        self._raises = True
        try:
            if self._asked:
                raise Stopped
            yield
        finally:
            self._raises = False


@contextmanager
def stop_signals(*, patient: bool = False, lasting: bool = False) -> Iterator[StopRequest]:
    """Let SIGTERM, SIGINT, SIGHUP and SIGUSR1 set the yielded ``StopRequest`` inside the block; only in the main thread.

    ``patient`` treats repeated signals as one; otherwise a second signal, some seconds later, acts as usual. ``lasting``
    ignores further signals for good after a stop request."""
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
    """Block these signals inside the block, also in child processes; see ``release_signals``."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def release_signals() -> None:
    """Unblock the signals in a process that was started inside ``held_signals``; pending ones arrive at once."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
