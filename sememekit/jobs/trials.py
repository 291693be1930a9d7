"""Run the steps of a claim as separate processes, without repeating existing results."""

import json
import lzma
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from sememekit import __version__
from sememekit.analysis.scored_runs import of_text
from sememekit.claims.chain import SHOWN_OUT, SHOWN_ROOT, TURNS, Step, Timing, Trial, folder_of, unpacked
from sememekit.claims.results import Point, RunResult, UpdateTimes
from sememekit.engines.base import Engine
from sememekit.errors import DataError, TrainingError
from sememekit.files import read_sealed, replace_file, sealed, sole_writer
from sememekit.jobs.steps import call
from sememekit.prepare.shards import read_marker, write_marker
from sememekit.signals import Stopped
from sememekit.training import RunFolder

_Run = Callable[[Step, list[float]], str]  # runs the command of a step, returns its output, appends its CPU seconds to the list


def run_trials(
    trials: Sequence[Trial],
    jobs: int,
    say: Callable[[Trial, str], None],
    asked_to_stop: Callable[[], bool],
    engine: Engine | None = None,
) -> None:
    """Run every trial without a result, ``jobs`` at a time.

    Trials begin in this order, as others finish; trials that share a run follow each other. Their commands are processes (of an
    engine or of this machine), for which threads of this process wait. With several ``jobs`` torch uses one thread in each
    (default of OMP_NUM_THREADS). After a signal (``asked_to_stop``) running steps end with checkpoints. ``say`` is called with
    each trial and "" when it begins, then with each of its commands.

    Raises DataError, TrainingError, EngineError, Stopped: as ``run_trial``, for the first failure; others were stopped."""
    groups: dict[Path, list[Trial]] = {}
    for trial in trials:
        if not trial.result.is_file():
            groups.setdefault(trial.run, []).append(trial)
    failed, turn = list[BaseException](), threading.Lock()
    environment = {"OMP_NUM_THREADS": "1", **os.environ} if jobs > 1 else dict(os.environ)

    def stopping() -> bool:
        return bool(failed) or asked_to_stop()

    def say_alone(trial: Trial, line: str) -> None:
        with turn:
            say(trial, line)

    def work(group: Sequence[Trial]) -> None:
        try:
            for trial in group:
                if stopping():
                    raise Stopped
                say_alone(trial, "")
                run_trial(trial, partial(say_alone, trial), stopping, environment, engine)
        except BaseException as error:
            failed.append(error)

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work, group) for group in groups.values()]
        while wait(futures, 0.2).not_done:
            pass  # signals reach a main thread that waits in short turns
    if failed:
        raise next((error for error in failed if not isinstance(error, Stopped)), failed[0])


def run_trial(
    trial: Trial,
    say: Callable[[str], None],
    asked_to_stop: Callable[[], bool],
    environment: Mapping[str, str],
    engine: Engine | None = None,
) -> None:
    """Run every unfinished step of a trial, then write its result; arguments as in ``run_trials``.

    Raises DataError: a text is missing. Raises TrainingError: a command failed; the message has the command and its last line.
    Raises EngineError: a process was lost; the same command continues. Raises Stopped: a signal came; finished steps stay."""
    run = partial(call, stopping=asked_to_stop, environment=environment, engine=engine)
    for step in trial.steps:
        if asked_to_stop():
            raise Stopped
        _do(step, say, asked_to_stop, run)
    with _alone(trial.steps[-1].made, say, asked_to_stop):
        result = _result(trial, _times_beside(trial.run))
        trial.result.parent.mkdir(exist_ok=True)
        replace_file(trial.result, sealed(result))


def run_timing(timing: Timing, say: Callable[[str], None], asked_to_stop: Callable[[], bool]) -> None:
    """Train the first epoch of both models interleaved, and write the CPU time of an update to a file.

    It waits for other timings in the same folder, which would disturb the figures. After a signal nothing is stored. Raises
    DataError, TrainingError, Stopped: as ``run_trial``."""
    run = partial(call, stopping=asked_to_stop, environment=os.environ)
    for step in timing.steps:
        _do(step, say, asked_to_stop, run)
    with _alone(timing.result.parents[1] / "timing", say, asked_to_stop):
        if not timing.result.is_file():
            _time(timing, say, run)


def _time(timing: Timing, say: Callable[[str], None], run: _Run) -> None:
    timing.result.parent.mkdir(exist_ok=True)
    costs: tuple[list[float], list[float]] = ([], [])
    made: dict[str, Any] = {}
    for _ in range(TURNS):
        for words, own in zip(timing.trains, costs, strict=True):
            with tempfile.TemporaryDirectory(dir=timing.result.parents[1], prefix="time-") as scratch:
                trained = Path(scratch) / "run"
                step = Step("train", (*words, "--out", str(trained)), trained)
                say(step.shell())
                run(step, [])
                folder = RunFolder.open(trained)
                (epoch,) = folder.epochs()
                own.append(epoch["cpu_seconds"] / epoch["step"])
                made = folder.versions
    made = {**made, "commit": _commit()}
    times = UpdateTimes(arms=timing.arms, baseline=tuple(costs[0]), other=tuple(costs[1]), versions=made)
    replace_file(timing.result, sealed(times))


def _do(step: Step, say: Callable[[str], None], asked_to_stop: Callable[[], bool], run: _Run) -> None:
    """Make the output of a step unless it exists; if another process is making it, wait."""
    if step.kind not in ("train", "copy") and step.made.exists():
        return
    with _alone(step.made, say, asked_to_stop):
        if step.kind == "train":
            _train(step, say, run)
        elif step.kind == "copy" and step.made.exists() and (marker := _marker(step.made)).exists():
            if read_marker(marker) is None:
                raise DataError(
                    f"{step.made}: its texts were changed after they were copied; delete it, and type the same command"
                )
        elif step.kind == "copy" or not step.made.exists():
            say(step.shell().splitlines()[-1])
            if step.kind == "copy":
                _copy(step)
            elif step.kind == "evaluate":
                shutil.rmtree(folder_of(step.made), ignore_errors=True)  # of a call that was stopped
                replace_file(step.made, sealed(json.loads(run(step, []))))
            else:
                run(step, [])


@contextmanager
def _alone(made: Path, say: Callable[[str], None], asked_to_stop: Callable[[], bool]) -> Iterator[None]:
    """Lock the output of a step, after waiting for other processes and threads. Raises Stopped: a signal came first."""
    lock = made.with_name(made.name + ".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        for turn in count():
            try:
                held.enter_context(sole_writer(lock, _MadeElsewhereError))
                break
            except _MadeElsewhereError as holder:
                if turn == 0:
                    say(f"waiting for {made}: made by {holder}")
            if asked_to_stop():
                raise Stopped
            time.sleep(0.2)
        yield


class _MadeElsewhereError(Exception):
    """The output of a step is locked by another process."""


def _times_beside(run: Path) -> Path:
    """The file that states the CPU seconds of a training and whether it is finished."""
    return run.with_suffix(".cpu.json")


def _train(step: Step, say: Callable[[str], None], run: _Run) -> None:
    """Train or continue training, unless finished; the CPU seconds of all calls are summed in a file beside the run."""
    times = _times_beside(step.made)
    before, done = _times_of(times) if times.is_file() else (0.0, False)
    if done:
        return
    if (step.made / "plan.json").is_file():
        step = Step(step.kind, (*step.words, "--resume"), step.made)
    say(step.shell())
    spent: list[float] = []
    try:
        run(step, spent)
        done = True
    finally:
        replace_file(times, sealed({"cpu_seconds": before + sum(spent), "done": done}))


def _times_of(path: Path) -> tuple[float, bool]:
    """Return the CPU seconds of a training so far, and whether it is finished. Raises DataError: an invalid file."""
    remedy = f"delete it and the folder {path.name.removesuffix('.cpu.json')} beside it, and type the same command"
    found = read_sealed(path, lambda why: DataError(f"{why}; {remedy}"))
    match found.get("cpu_seconds"), found.get("done"):
        case (int() | float()) as seconds, bool() as done:
            return float(seconds), done
    raise DataError(f"{path} holds no CPU seconds of a training; {remedy}")


def _copy(step: Step) -> None:
    """Copy the texts into a folder that appears when complete, with a marker of their hashes beside it."""
    torn = step.made.with_name(step.made.name + ".copying")
    shutil.rmtree(torn, ignore_errors=True)
    torn.mkdir(parents=True)
    for source, target, lines in zip(*(step.words[offset::3] for offset in range(3)), strict=True):
        try:
            with (
                (lzma.open if unpacked(source, target) else open)(source, "rb") as text,
                (torn / Path(target).name).open("wb") as kept,
            ):
                number = int(lines)
                kept.writelines(deque(text, maxlen=-number) if number < 0 else islice(text, number or None))
        except FileNotFoundError:
            raise DataError(f"{source} is missing; put it there, or name the folder that has it with --root") from None
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise DataError(f"{source} cannot be read ({error}); put a whole copy there, and type the same command") from None
    shutil.rmtree(step.made, ignore_errors=True)  # of a call that was killed before it wrote the marker
    torn.replace(step.made)
    write_marker(_marker(step.made), {}, sorted(step.made.iterdir()))


def _marker(made: Path) -> Path:
    return made.with_name(made.name + ".copied.json")


def _result(trial: Trial, times: Path) -> RunResult:
    again = "delete it, and type the same command"
    measured = read_sealed(trial.steps[-1].made, lambda why: DataError(f"{why}; {again}"))
    spent, _ = _times_of(times)
    folder = RunFolder.open(trial.run)
    epochs = folder.epochs()
    if not epochs:
        raise TrainingError(
            f"{trial.run / 'metrics.jsonl'} has no finished epoch; delete {trial.run} and {times}, and type the same command"
        )
    places = {trial.run.parents[1]: SHOWN_OUT, trial.root: SHOWN_ROOT}
    spent = max(spent, sum(epoch.get("cpu_seconds", 0.0) for epoch in epochs))  # a process that was killed told nothing
    return RunResult(
        trial=trial.name,
        arm=trial.arm,
        seed=trial.seed,
        tiny=trial.tiny,
        commands=trial.shown,
        plan=_shown(folder.plan, places),
        # without what differs between arms by design: adaptation, and how paths are summed
        signature=of_text(str(measured.get("signature", "")), adapted=False),
        # without the words of tagged sentences, which are data of others
        measured=_shown({key: one for key, one in measured.items() if key not in {"words", "left_out"}}, places),
        curve=tuple(_curve(epochs, spent)),
        finished=epochs[-1].get("finished") or "all epochs are done",
        versions={**folder.versions, "commit": _commit()},
    )


def _shown(value: Any, places: Mapping[Path, Path]) -> Any:
    """Return the value with ``reproduced`` and ``CORPORA`` in place of this machine's folders, as in stored commands."""
    if isinstance(value, str):
        for folder, shown in places.items():
            whole = str(folder.absolute())
            value = value.replace(whole + os.sep, f"{shown}{os.sep}")  # also inside a command
            for prefix in (whole, str(folder)):
                if value == prefix or value.startswith(prefix + os.sep):
                    value = str(shown) + value[len(prefix) :]
        return value
    if isinstance(value, dict):
        return {key: _shown(one, places) for key, one in value.items()}
    return [_shown(one, places) for one in value] if isinstance(value, list) else value


def _curve(epochs: list[dict[str, Any]], cpu_seconds: float) -> list[Point]:
    """Return the learning curve, with CPU time divided among epochs by their wall time."""
    wall, points, passed = sum(epoch["seconds"] for epoch in epochs), [], 0.0
    for epoch in epochs:
        passed += epoch["seconds"]
        valid = float(epoch["valid"][epoch.get("metric") or next(iter(epoch["valid"]))])
        spent, rate = cpu_seconds * passed / wall, epoch.get("rate")
        points.append(Point(epoch=epoch["epoch"], step=epoch["step"], cpu_seconds=spent, valid=valid, rate=rate))
    return points


def _commit() -> str:
    """Return the commit of the source tree of this package, or its version outside a git working tree."""
    tree, version = Path(__file__).resolve().parents[2], f"sememekit {__version__}"
    command = ["git", "-C", str(tree), "describe", "--always", "--dirty"]
    if not (tree / ".git").exists() or shutil.which("git") is None:
        return version
    said = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    return said.stdout.strip() or version
