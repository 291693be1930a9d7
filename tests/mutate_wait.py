"""Waiting for a child that runs tests under a mutant: it ends, it uses too much time, or it does nothing any more."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

NEVER = 7 * 24 * 3600.0
_IDLE, _IDLE_SHARE, _LOOK = 60.0, 0.03, 0.5
"""A child waits for ever if for so many seconds it uses less than this share of a processor, and does not wait for one either
whenever it is looked at."""


def wait_for(child: int, limit: float) -> int:
    """The exit code of a child, or of a killed one; ``limit`` are seconds of the processor. A child without a limit is
    waited for as long as its own children.
    """
    end = time.monotonic() + 600 + 100 * limit  # a busy machine gives a child few of them
    used, since, looked = 0.0, time.monotonic(), 0.0
    while (now := time.monotonic()) < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
        if limit >= NEVER or now < looked + _LOOK:
            continue
        looked = now
        seconds, runs = _tree(child)
        if runs or seconds > used + _IDLE_SHARE * (now - since):  # one that waits for a busy processor runs, too
            used, since = seconds, now
        elif now > since + _IDLE:
            break
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


def _tree(process: int) -> tuple[float, bool]:
    """Seconds of the processor that a process and those that it started have used, and whether one of them could use more."""
    total, runs = 0, False
    for one in [process, *_descendants(process)]:
        with suppress(OSError):
            fields = _fields(Path(f"/proc/{one}/stat"))
            total += sum(map(int, fields[11:15]))
            runs = runs or fields[0] in "RD"
    return total / os.sysconf("SC_CLK_TCK"), runs


def _fields(path: Path) -> list[str]:
    """State, parent and so on: what follows the name, which may hold spaces."""
    return path.read_text(errors="replace").rpartition(")")[2].split()
