"""``sememekit train``: from a recipe's table to a run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from sememekit.config import Record
from sememekit.reports.run import report as write_report
from sememekit.runs.training import open_training
from sememekit.tasks.vectors import VectorCoverage
from sememekit.training import EpochReport, Report, StopReport
from sememekit.training.progress import ending_text
from sememekit.training.signals import stop_signals
from sememekit.training.tensorboard import TensorBoardLog


class TrainReport(Record):
    """What a training command did.

    Attributes:
        run: the run folder.
        epochs: epochs done in all, earlier calls included.
        metric: the headline metric, such as "perplexity" or "accuracy".
        best_valid: best value of it on validation.
        best_epoch: the epoch of it.
        tokens_per_second: predictions of training a second over this call: tokens, or examples of a classifier.
        parameters: how many numbers are learnt, shared ones once.
        vectors: how much of the training text has a vector of the file, for tasks that begin with such a file.
        remarks: what was given and changes nothing in this model.
        finished: why training ended, or an empty string.
        stopped: whether a signal ended it, with a checkpoint to resume from.
    """

    model_config = ConfigDict(allow_inf_nan=True)  # runs of older versions may have diverged and yet be finished

    run: str
    epochs: int
    metric: str
    best_valid: float | None
    best_epoch: int
    tokens_per_second: float
    parameters: int
    vectors: VectorCoverage | None = None
    remarks: tuple[str, ...] = ()
    finished: str
    stopped: bool


def train(
    table: Mapping[str, Any],
    out: Path,
    *,
    resume: bool = False,
    on_report: Callable[[Report], None] = lambda report: None,
    on_remark: Callable[[str], None] = lambda text: None,
    should_stop: Callable[[], bool] | None = None,
) -> TrainReport:
    """Train a model.

    Args:
        table: slot -> keys, as recipes and overrides give it. With ``resume``, what it says must agree with the run.
        out: the run folder: absent or empty, or a run to go on with.
        resume: continue the run in ``out`` from its last checkpoint.
        on_report: called with each report of the trainer.
        on_remark: called with each sentence that somebody should read before training begins: what changes nothing in this
            model, and what the task has to say about the data (``Task.remarks``).
        should_stop: read after each step: whether to stop with a checkpoint; signals tell it unless given.

    Raises:
        ConfigError: a bad table, or parts that do not fit.
        CheckpointError: ``out`` is taken, or there is nothing to resume.
        TrainingError: the run is going nowhere.
    """
    out = Path(out)
    with ExitStack() as held:
        asked_to_stop = should_stop if should_stop is not None else held.enter_context(stop_signals())
        training = held.enter_context(open_training(table, out, resume=resume, on_remark=on_remark))
        board = held.enter_context(TensorBoardLog(out / "tensorboard"))
        folder, trainer = training.folder, training.trainer
        if trainer.progress.finished and any(record["kind"] == "EpochReport" for record in folder.metrics()):
            write_report(out)  # no epoch follows that would
        seconds, tokens, stopped = 0.0, 0.0, False
        for report in trainer.run(asked_to_stop):
            folder.append_metrics({"kind": type(report).__name__, **vars(report)})
            board.add(report)
            if isinstance(report, EpochReport):
                seconds += report.seconds
                tokens += report.seconds * report.tokens_per_second
                write_report(out)
            stopped = isinstance(report, StopReport)
            on_report(report)
    progress = trainer.progress
    return TrainReport(
        run=str(out),
        epochs=progress.epoch if progress.finished else progress.epoch - 1,
        metric=training.task.headline.name,
        best_valid=progress.best,
        best_epoch=progress.best_epoch,
        tokens_per_second=tokens / seconds if seconds else 0.0,
        parameters=training.parameters,
        vectors=training.vectors,
        remarks=training.remarks,
        finished=ending_text(progress, training.plan.schedule),
        stopped=stopped,
    )
