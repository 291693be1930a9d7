"""Tools of the benchmarks: interleaved timing, peak memory of a fresh process for each side, and results of many models."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from sememekit.files import replace_file, to_json

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


def train_to_the_end(table: dict[str, Any], run: Path) -> Path:
    """Train a run, or continue it. Raises SystemExit: a signal stopped it, so that it has nothing to measure yet."""
    from sememekit.jobs.train import train

    if train(table, run, resume=run.exists()).stopped:
        raise SystemExit(f"{run}: stopped by a signal; the same command continues")
    return run


def cell_arguments(doc: str, name: str) -> argparse.ArgumentParser:
    """Return the options of a benchmark that trains many models: corpora, folder of runs, file of results, seeds."""
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--corpora", type=Path, default=Path("CORPORA"))
    parser.add_argument("--out", type=Path, default=Path(name))
    parser.add_argument("--results", type=Path, default=Path(f"{name}.json"))
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    return parser


Cell = tuple[str, int, Callable[[], dict[str, Any]]]
"""Name, seed and measurement of a model."""


def fill(results: Path, cells: Iterable[Cell]) -> None:
    """Measure each cell (name, seed, measurement) that ``results`` lacks, and write the file after each cell."""
    found: dict[str, Any] = json.loads(results.read_text("utf-8")) if results.exists() else {}
    for name, seed, measure in cells:
        seeds = found.setdefault(name, {})
        if str(seed) not in seeds:
            seeds[str(seed)] = measure()
            replace_file(results, to_json(found))
            print(json.dumps({"cell": name, "seed": seed, **seeds[str(seed)]}), flush=True)
