"""Steps of a claim: subcommands of sememekit as processes, local or on an engine; a signal is passed on once."""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from sememekit.claims.chain import Step
from sememekit.engines.base import Engine
from sememekit.errors import ConfigError, EngineError, TrainingError
from sememekit.signals import STOPPED, Stopped

_LOOK_EVERY: Final = 0.1  # seconds between checks of a running command


class Ended(NamedTuple):
    """A finished subcommand: whether it was asked to stop, its output, the last line of stderr, its CPU seconds."""

    code: int
    told: bool
    printed: str
    last: str
    cpu_seconds: float


def call(
    step: Step, spent: list[float], stopping: Callable[[], bool], environment: Mapping[str, str], engine: Engine | None = None
) -> str:
    """Run a subcommand, append its CPU seconds to ``spent``, and return its stdout, even if a signal came just before its end.
    Raises Stopped: a signal ended it."""
    if engine is None:
        ended = run_command(step.words, environment, stopping)
    else:
        ended = _on_engine(engine, step, environment, stopping)
    spent.append(ended.cpu_seconds)
    if ended.code == STOPPED or (ended.told and ended.code != 0):
        raise Stopped
    if ended.code != 0:
        raise TrainingError(
            f"exit code {ended.code} of: {step.shell()}: {ended.last or 'it said nothing'}; when that is mended, the same "
            "'sememekit reproduce run' goes on"
        )
    return ended.printed


def _on_engine(engine: Engine, step: Step, environment: Mapping[str, str], asked_to_stop: Callable[[], bool]) -> Ended:
    """Run the command in a process of the engine; a file asks it to stop. Raises EngineError: the process was lost."""
    engine.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=engine.folder, prefix="step-") as folder:
        stop = Path(folder).absolute() / "stop"
        future = engine.submit(run_there, step, dict(environment), stop, os.getcwd())
        while not future.done():
            if asked_to_stop():
                stop.touch()
            time.sleep(_LOOK_EVERY)
        try:
            return future.result()
        except EngineError as error:
            raise EngineError(f"{error}; finished trials are kept, and the same 'sememekit reproduce run' goes on") from None


def run_there(step: Step, environment: Mapping[str, str], stop: Path, folder: str) -> Ended:
    """Run the command of a step in a process of an engine, with paths relative to ``folder``; a lost training continues."""
    os.chdir(folder)
    words = step.words
    if step.kind == "train" and "--resume" not in words and (step.made / "plan.json").is_file():
        words = (*words, "--resume")
    return run_command(words, environment, stop.exists)


def run_command(words: Sequence[str], environment: Mapping[str, str], asked_to_stop: Callable[[], bool]) -> Ended:
    """Run a subcommand in a process with its own session, so that Ctrl-C reaches only this process, which passes it on once. It
    never outlives this process. Raises ConfigError: this system does not report CPU time."""
    if not hasattr(os, "wait4"):
        raise ConfigError(
            "reproduce run measures the CPU seconds of each command by a call that this system lacks; run it on Linux, macOS "
            "or WSL, or type the commands of 'sememekit reproduce show'; the next is: "
            f"{shlex.join(['sememekit', *words])}"
        )
    command = [sys.executable, "-m", "sememekit.commands._with_parent", *words]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "env": dict(environment), "start_new_session": True}
    with (
        tempfile.TemporaryFile() as printed,
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, stdout=printed, stderr=said, **pipes) as child,
    ):
        told = False
        try:
            while True:
                pid, status, usage = os.wait4(child.pid, os.WNOHANG)  # of this child alone, whatever runs beside it
                if pid:
                    break
                if asked_to_stop() and not told:
                    child.terminate()
                    told = True
                time.sleep(_LOOK_EVERY)
        except BaseException:
            child.terminate()
            child.wait()
            raise
        child.returncode = os.waitstatus_to_exitcode(status)
        last = _text(said).strip().splitlines()
        return Ended(child.returncode, told, _text(printed), last[-1] if last else "", usage.ru_utime + usage.ru_stime)


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", "replace")
