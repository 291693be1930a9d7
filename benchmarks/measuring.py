"""Tools of the benchmarks: interleaved timing of functions, and the peak memory of a fresh process a side."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # as the program does; torch reads it at its first tensor


def times(
    functions: dict[str, Callable[[], None]], repeats: int, clock: Callable[[], float] | None = None
) -> dict[str, list[float]]:
    """Seconds of each function, interleaved after one pass that is not counted.

    By default CPU seconds with one thread, which other work on the machine moves least; else seconds on the clock.
    """
    clock = clock or (time.process_time if torch.get_num_threads() == 1 else time.perf_counter)
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(repeats):
        for name, function in functions.items():
            begin = clock()
            function()
            taken[name].append(clock() - begin)
    return taken


def best_times(functions: dict[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """The best of ``times`` for each function."""
    return {name: min(taken) for name, taken in times(functions, repeats).items()}


def resident_kilobytes(field: str) -> int:
    """A memory figure of this process, as Linux tells it: VmRSS now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def peak_megabytes(script: str, arguments: list[str], side: str) -> float:
    """Return the output of ``script``, started anew with ``--measure-memory-of SIDE``: its peak over what it held before."""
    command = [sys.executable, "-W", "ignore", script, *arguments, "--measure-memory-of", side]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
