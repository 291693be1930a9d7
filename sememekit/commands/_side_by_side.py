"""Training several models at once, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any, Final

from sememekit.commands.train import train
from sememekit.errors import SememekitError, TrainingError
from sememekit.progress import Progress
from sememekit.runs.train_report import TrainReport
from sememekit.signals import held_signals, release_signals, stop_signals
from sememekit.training import Report, StepReport

_PATIENCE: Final = 30.0
"""Seconds that a model being trained has for its checkpoint after it was asked to stop."""


@dataclass(frozen=True)
class Trained:
    """A model that was trained in a process of its own.

    Attributes:
        report: of its training.
        cpu_seconds: user and system time of the process, from its start to the report; of this call alone where it went on.
    """

    report: TrainReport
    cpu_seconds: float


def train_all(
    out: Path,
    tables: Mapping[str, Mapping[str, Any]],
    command: str,
    progress: Progress,
    asked_to_stop: Callable[[], bool],
) -> dict[str, Trained]:
    """Train every model in a process of its own; a signal stops them all with checkpoints.

    As many are trained at a time as there are cores, two at least: the first ones of ``tables`` begin, and each of the others
    when one is done. The processes are begun with signals held, and take any number of them for one: however often and at
    whatever moment a terminal, ``timeout`` or Slurm tells them, they end with a checkpoint. Raises SememekitError: what went
    wrong in one of them; the others were stopped.
    """
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads of torch
    with held_signals():
        queue = context.Queue()  # begins the process that keeps count of what is shared, which knows no SIGHUP
    waiting = {
        name: context.Process(target=_train_one, args=(name, table, out / name, queue), daemon=True)
        for name, table in tables.items()
    }
    workers: dict[str, Any] = {}
    done: dict[str, Trained] = {}
    told = False
    try:
        while len(done) < len(tables):
            if asked_to_stop() and not told:
                told = True
                done |= {name: _stopped_before_it_began(out / name) for name in waiting}
                _tell_to_stop(workers)
            while waiting and not told and len(workers) - len(done) < _at_once():
                name = next(iter(waiting))
                with held_signals():
                    waiting[name].start()
                    workers[name] = waiting.pop(name)
            try:
                name, message = queue.get(timeout=0.2)
            except Empty:
                dead = [name for name in workers if name not in done and workers[name].exitcode is not None]
                if dead and not told:
                    raise _death(out / dead[0], workers[dead[0]].exitcode, command) from None
                done |= {name: _stopped_before_it_began(out / name) for name in dead}
                continue
            match message:
                case Trained():
                    done[name] = message
                    if not message.report.stopped:
                        progress(f"train {name}", 1, 1)
                case SememekitError():
                    raise _in_words_of_quickstart(message, command)
                case _:
                    _show(tables[name], name, message, progress)
    finally:
        _tell_to_stop(workers)
        for worker in workers.values():
            worker.join(_PATIENCE)
    return {name: done[name] for name in tables}


def _at_once() -> int:
    """How many models are trained at a time: one a core that this process may use, and two where there is one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(2, cores)


def _train_one(name: str, table: Mapping[str, Any], run: Path, queue: Any) -> None:
    """In a process of its own: train or go on training, and send every report home. Without a parent, stop."""
    parent = multiprocessing.parent_process()

    def send(report: Report) -> None:
        if parent is not None and not parent.is_alive():
            raise SystemExit(1)
        queue.put((name, report))

    with stop_signals(patient=True, lasting=True) as asked_to_stop:
        release_signals()
        try:
            begun = (run / "plan.json").is_file()
            report = (
                _stopped_before_it_began(run)
                if asked_to_stop()
                else Trained(train(table, run, resume=begun, on_report=send, should_stop=asked_to_stop), time.process_time())
            )
            queue.put((name, report))
        except SememekitError as error:
            queue.put((name, error))


def _in_words_of_quickstart(error: SememekitError, command: str) -> SememekitError:
    """The error with the options of quickstart, which resumes by itself and starts again with ``--fresh``."""
    told = str(error).replace("--resume --set ", f"{command} --set ")
    for slot in ("optimizer", "schedule", "decoder", "encoder", "task"):
        told = told.replace(f"(--set {slot}.", f"(--fresh --set {slot}.")
    return type(error)(told)


def _tell_to_stop(workers: Mapping[str, Any]) -> None:
    for worker in workers.values():
        if worker.is_alive():
            worker.terminate()


def _death(run: Path, code: int | None, command: str) -> TrainingError:
    return TrainingError(
        f"training of {run} ended with exit code {code} before it was done (out of memory?); go on with: {command}"
    )


def _stopped_before_it_began(run: Path) -> Trained:
    """For a process that a signal met while it was still loading, or before it was begun."""
    figures = {"best_valid": None, "epochs": 0, "best_epoch": 0, "tokens_per_second": 0.0, "parameters": 0}
    told = {"run": str(run), "metric": "perplexity", "finished": "", "stopped": True, **figures}
    return Trained(TrainReport.model_validate(told), 0.0)


def _show(table: Mapping[str, Any], name: str, report: Report, progress: Progress) -> None:
    if isinstance(report, StepReport):
        epochs = table["schedule"]["epochs"]
        progress(f"train {name}", (report.epoch - 1) * report.num_batches + report.batch, epochs * report.num_batches)
