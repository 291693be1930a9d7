"""The lock of a folder: one writer at a time."""

import errno
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from sememekit.files.writing import naming

LOCK: Final = ".lock"  # the lock of the folder of a run, a sweep or a quickstart


@contextmanager
def sole_writer(file: Path, busy: Callable[[str], Exception]) -> Iterator[None]:
    """Hold the lock ``file``, which is created where it is missing, and left there; the operating system releases it when the
    process ends. ``busy`` makes the error for a second process from the name of the holder, ``process 12 on host since ...``.
    Raises OSError with the name of the file: it is a link, a folder or a pipe, or the file system has no locks."""
    with naming(file), _opened(file) as stream:  # closing writes what a full disk did not take, and fails again
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


def sole_command(folder: Path, by: str, error: Callable[[str], Exception]) -> AbstractContextManager[None]:
    """Hold the lock of a folder; ``error`` makes the error of a second command, where another ``by`` holds it."""
    advice = "wait until it has ended, or choose another --out"
    return sole_writer(folder / LOCK, lambda holder: error(f"{folder} is being written by another {by} ({holder}); {advice}"))


def _opened(file: Path) -> BinaryIO:
    """Open the lock without following a link and without changing the file, which another user may own."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(file, flags, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise OSError(error.errno, f"is no regular file, as a lock is; remove it: rm -r {file}", str(file)) from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, f"is no regular file, as a lock is; remove it: rm {file}", str(file))
    return os.fdopen(handle, "r+b")


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
        if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP):
            error.strerror = "this file system has no locks; choose a folder on another one, such as a local disk"
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
