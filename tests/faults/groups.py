"""SIGKILL to a command that trains in processes of its own, to all of them or to the first alone; then the command again.

The moment is when so many files are in the output, drawn by number: it depends on no clock. Processes whose parent was killed
end unasked, and the command is repeated until they let go of the folder.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.child import ROOT, Commands
from tests.faults.folders import write_tour
from tests.faults.kill import EQUAL, LEFT, OTHER, WEDGED, Point, hidden
from tests.faults.runs import make_world, put, run_state

KINDS = ("seeds", "sweep", "quickstart", "reproduce")
PATIENCE = 120
"""Seconds in which processes without a parent let go of their folders."""


@dataclass(frozen=True)
class Group:
    """A command, its output, the commands that go on, and what must be equal in the end."""

    kind: str
    out: Path
    command: list[str]
    again: list[list[str]]
    state: Callable[[Path], Any]


def make_group(commands: Commands, folder: Path, kind: str) -> Group:
    """The command of a kind, and what it reads."""
    out = folder / "out"
    if kind == "quickstart":
        folder.mkdir(parents=True)
        tour = write_tour(folder, out)
        return Group(kind, out, tour, [tour], _tour_state)
    if kind == "reproduce":
        (folder / "ptb").mkdir(parents=True)
        draw = random.Random(2)
        for split in ("train", "valid", "test"):
            lines = [f" {' '.join(draw.choices(_WORDS, k=8))} \n" for _ in range(600)]
            (folder / "ptb" / f"ptb.{split}.txt").write_text("".join(lines), encoding="utf-8")
        claim = ["mogrifier-below-lstm-one-layer", "--tiny", "--seeds", "1"]
        run = ["reproduce", "run", *claim, "--root", str(folder), "--out", str(out), "-q"]
        return Group(kind, out, run, [run], _result_state)
    world = make_world(commands, folder, "softmax")
    if kind == "seeds":
        seeds = [*world.train, "--seeds", "1,2", "--out", str(out)]
        return Group(kind, out, seeds, [[*seeds, "--resume"], seeds], _runs_state)
    flags = [flag for flag in world.train[1:] if flag != "--json"]
    sweep = ["sweep", *flags, "--over", "optimizer.learning_rate=1.0,4.0", "--trials", "2", "--jobs", "1", "--out", str(out)]
    return Group(kind, out, sweep, [sweep], _runs_state)


def trials(commands: Commands, folder: Path, kind: str, number: int) -> Iterator[Point]:
    """Yield the outcomes of ``number`` kills, alternately of the group and of the first process."""
    group, draw = make_group(commands, folder, kind), random.Random(kind)
    done = _begin(group.command)
    assert done.wait() == 0, kind
    whole, quiet, files = group.state(group.out), hidden(group.out), _count(group.out)
    for trial in range(number):
        put(folder / "nothing", group.out)
        moment, everybody = draw.randrange(1, files), trial % 2 == 0
        killed = _begin(group.command)
        while killed.poll() is None and _count(group.out) < moment:
            time.sleep(0.02)
        if killed.poll() is None:
            (os.killpg if everybody else os.kill)(killed.pid, signal.SIGKILL)
            killed.wait()
        said = _go_on(group)
        found = group.state(group.out) if said is None else None
        left = ", ".join(sorted(hidden(group.out) - quiet))
        verdict = WEDGED if said is not None else OTHER if found != whole else LEFT if left else EQUAL
        yield Point(f"{kind}, {'all processes' if everybody else 'the first process'}", moment, verdict, said or left)


def _begin(command: list[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    words, none = [sys.executable, "-m", "sememekit", *command], subprocess.DEVNULL
    return subprocess.Popen(words, env=environment, start_new_session=True, stdin=none, stdout=none, stderr=none)


def _go_on(group: Group) -> str | None:
    """Type the command again until it goes on; what it said last where it does not."""
    end, said = time.monotonic() + PATIENCE, ""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    while time.monotonic() < end:
        for command in group.again:
            words = [sys.executable, "-m", "sememekit", *command]
            done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return None
            said = done.stderr[-300:]
        if "is being written by" not in said:
            return said
        time.sleep(1)
    return said


def _count(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


def _runs_state(out: Path) -> Any:
    runs = sorted(path.parent for path in out.glob("*/plan.json"))
    best = [path.read_bytes() for path in out.glob("best.toml")]
    return {run.name: run_state(run) for run in runs}, best


def _tour_state(out: Path) -> Any:
    report = json.loads((out / "quickstart.json").read_bytes())
    return _runs_state(out), [(model["name"], model["test_perplexity"]) for model in report["models"]], report["scores"]


def _result_state(out: Path) -> Any:
    times = re.compile(rb'"[a-z_]*(seconds|tokens_per_second|sha256|commit)": ?[^,}]*')
    return {path.name: times.sub(b"", path.read_bytes()) for path in sorted(out.glob("results/*.json"))}


_WORDS = ("the", "of", "a", "man", "park", "runs", "sleeps", "eats", "nice", "rain", "<unk>", "N", "dogs", "girl")
