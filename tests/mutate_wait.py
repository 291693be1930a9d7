"""Waiting for a child that runs tests under a mutant: it ends, it uses too much time, or it does nothing any more."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_IDLE, _IDLE_SHARE = 40.0, 0.03
"""A child waits for ever if it uses less than this share of a processor for so many seconds."""


def wait_for(child: int, limit: float) -> int:
    """The exit code of a child, or that of a killed one; ``limit`` are seconds of the processor."""
    end = time.monotonic() + 600 + 100 * limit  # a busy machine gives a child few of them
    used, since = 0.0, time.monotonic()
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
        if (now := time.monotonic()) > since + _IDLE:
            if abs((busy := _tree_seconds(child)) - used) < _IDLE_SHARE * _IDLE:
                break
            used, since = busy, now
    for process in [child, *_descendants(child)]:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def _descendants(process: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended
            children.setdefault(int(_fields(path)[1]), []).append(int(path.parent.name))
    found = [process]
    for one in found:
        found += children.get(one, [])
    return found[1:]


def _tree_seconds(process: int) -> float:
    """Seconds of the processor that a process and those that it started have used."""
    total = 0
    for one in [process, *_descendants(process)]:
        with suppress(OSError):
            total += sum(map(int, _fields(Path(f"/proc/{one}/stat"))[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def _fields(path: Path) -> list[str]:
    """State, parent and so on: what follows the name, which may hold spaces."""
    return path.read_text(errors="replace").rpartition(")")[2].split()
