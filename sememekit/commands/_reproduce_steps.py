"""Running the steps of a claim: each a process of its own, none repeated whose result is there."""

from __future__ import annotations

import json
import lzma
import os
import resource
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from sememekit import __version__
from sememekit.claims.chain import Step, Trial, unpacked
from sememekit.claims.results import Point, RunResult
from sememekit.commands._exit import STOPPED
from sememekit.errors import DataError, TrainingError
from sememekit.files import read_object, replace_file, write_bytes
from sememekit.signals import Stopped


def run_trial(trial: Trial, say: Callable[[str], None], asked_to_stop: Callable[[], bool]) -> RunResult:
    """Every step of a trial that is not done, then its result as a file.

    Args:
        trial: what to run.
        say: told each command before it begins.
        asked_to_stop: whether a signal came; the step at hand is told, and ends with a checkpoint.

    Raises:
        DataError: a text is missing.
        TrainingError: a command failed; the message has the command and the last line that it said.
        Stopped: a signal stopped a step; what was done so far is kept.
    """
    times = trial.run.with_suffix(".cpu.json")
    for step in trial.steps:
        if step.kind == "train":
            _train(step, times, say, asked_to_stop)
        elif not step.made.exists():
            say(step.shell().splitlines()[-1])
            if step.kind == "copy":
                _copy(step)
            else:
                printed = _call(step, asked_to_stop)
                if step.kind == "evaluate":
                    replace_file(step.made, printed.encode())
    result = _result(trial, times)
    trial.result.parent.mkdir(parents=True, exist_ok=True)
    replace_file(trial.result, result.model_dump_json(indent=1).encode() + b"\n")
    return result


def _train(step: Step, times: Path, say: Callable[[str], None], asked_to_stop: Callable[[], bool]) -> None:
    """Train or go on training, unless that is done; the CPU seconds of all calls are added up in ``times``."""
    before = read_object(times, DataError) if times.is_file() else {"cpu_seconds": 0.0, "done": False}
    if before["done"]:
        return
    begun = (step.made / "plan.json").is_file()
    if begun:
        step = Step(step.kind, (*step.words, "--resume"), step.made)
    say(step.shell())
    step.made.parent.mkdir(parents=True, exist_ok=True)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = False
    try:
        _call(step, asked_to_stop)
        done = True
    finally:
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = before["cpu_seconds"] + now.ru_utime + now.ru_stime - spent.ru_utime - spent.ru_stime
        write_bytes(times, json.dumps({"cpu_seconds": seconds, "done": done}).encode() + b"\n")


def _taken(text: Iterable[bytes], count: int) -> Iterable[bytes]:
    """The first lines of a text, the last for a negative ``count``, all for 0."""
    return deque(text, maxlen=-count) if count < 0 else islice(text, count or None)


def _copy(step: Step) -> None:
    """Copy the texts into a folder that appears when it is complete."""
    torn = step.made.with_name(step.made.name + ".copying")
    shutil.rmtree(torn, ignore_errors=True)
    torn.mkdir(parents=True)
    for source, target, lines in zip(*(step.words[offset::3] for offset in range(3)), strict=True):
        try:
            with (
                (lzma.open if unpacked(source, target) else open)(source, "rb") as text,
                (torn / Path(target).name).open("wb") as kept,
            ):
                kept.writelines(_taken(text, int(lines)))
        except FileNotFoundError:
            raise DataError(f"{source} is missing; put it there, or name the folder that has it with --root") from None
    torn.replace(step.made)


def _call(step: Step, asked_to_stop: Callable[[], bool]) -> str:
    """What a subcommand of this sememekit prints on stdout.

    The subcommand has a session of its own: a terminal's Ctrl-C reaches this process alone, which tells it once.
    """
    command = [sys.executable, "-m", "sememekit", *step.words]
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, encoding="utf-8", start_new_session=True)
    told = False
    try:
        while True:
            try:
                printed, said = child.communicate(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                if asked_to_stop() and not told:
                    child.terminate()
                    told = True
    finally:
        if child.poll() is None:
            child.terminate()
    if child.returncode == STOPPED or told:
        raise Stopped
    if child.returncode != 0:
        last = said.strip().splitlines()
        raise TrainingError(f"exit code {child.returncode} of: {step.shell()}: {last[-1] if last else 'it said nothing'}")
    return printed


def _result(trial: Trial, times: Path) -> RunResult:
    measured = read_object(trial.steps[-1].made, DataError)
    spent = float(read_object(times, DataError)["cpu_seconds"])
    reports = [json.loads(line) for line in (trial.run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    epochs = [report for report in reports if report["kind"] == "EpochReport"]
    if not epochs:
        raise TrainingError(f"{trial.run} has no finished epoch; delete it and run again")
    return RunResult(
        trial=trial.name,
        arm=trial.arm,
        seed=trial.seed,
        tiny=trial.tiny,
        commands=trial.shown,
        plan=read_object(trial.run / "plan.json", DataError),
        signature=_comparable(measured),
        measured=measured,
        curve=tuple(_curve(epochs, spent)),
        finished=epochs[-1].get("finished") or "all epochs are done",
        versions={**read_object(trial.run / "versions.json", DataError), "commit": _commit()},
    )


def _comparable(measured: dict[str, Any]) -> str:
    """The signature of what was measured, without what differs between arms by design: adaptation, and how paths are summed."""
    parts = str(measured.get("signature", "")).split("|")
    return "|".join(part for part in parts if not part.startswith(("dynamic", "cache", "marginal")))


def _curve(epochs: list[dict[str, Any]], cpu_seconds: float) -> list[Point]:
    """The CPU time of all trainings divided among the epochs as their wall time is."""
    wall, points, passed = sum(epoch["seconds"] for epoch in epochs), [], 0.0
    for epoch in epochs:
        passed += epoch["seconds"]
        valid = next(iter(epoch["valid"].values()))
        points.append(
            Point(epoch=epoch["epoch"], step=epoch["step"], cpu_seconds=cpu_seconds * passed / wall, valid=float(valid))
        )
    return points


def _commit() -> str:
    """The commit of the source tree that this package lies in; its version where it is no working tree of git."""
    tree = Path(__file__).resolve().parents[2]
    if not (tree / ".git").exists():
        return f"sememekit {__version__}"
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        said = subprocess.run(
            ["git", "-C", str(tree), "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
    except OSError:
        return f"sememekit {__version__}"
    return said.stdout.strip() or f"sememekit {__version__}"
