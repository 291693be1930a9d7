"""The lock of a folder: one writer at a time."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def sole_writer(file: Path, busy: Callable[[str], Exception]) -> Iterator[None]:
    """Hold the lock ``file`` for this process; the operating system releases it when the process ends.

    Args:
        file: created where it is missing, and left there.
        busy: makes the error for a second process, given who holds the lock: ``process 12 on host since ...``.
    """
    with file.open("a+b") as stream:
        if not _take(stream.fileno()):
            stream.seek(0)
            holder = " ".join(stream.read(300).decode(errors="replace").split())
            raise busy(holder or "another process")
        try:
            stream.truncate(0)
            since = f"since {time.strftime('%Y-%m-%d %H:%M:%S')}"
            stream.write(f"process {os.getpid()} on {socket.gethostname()} {since}\n".encode())
            stream.flush()
            yield
        finally:
            _let_go(stream.fileno())


def _take(handle: int) -> bool:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        os.lseek(handle, 1 << 20, os.SEEK_SET)  # a place behind the text, which others read
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def _let_go(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        os.lseek(handle, 1 << 20, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(handle, fcntl.LOCK_UN)
