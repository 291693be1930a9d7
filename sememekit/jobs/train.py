"""Train a model from the table of a run into its folder."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ConfigDict

from sememekit.config import Record
from sememekit.errors import RankError
from sememekit.files import typed
from sememekit.ranks import ALONE, Ranks
from sememekit.reports.run import report as write_report
from sememekit.runs.training import open_training
from sememekit.signals import StopRequest, stop_signals
from sememekit.tasks.base import PrimaryMetric
from sememekit.tasks.vectors import VectorCoverage
from sememekit.training import EpochReport, Report, StopReport
from sememekit.training.metrics import tokens_per_second
from sememekit.training.state import ending_text
from sememekit.training.tracking import check_trackers, tracking

PAGE_EVERY: Final = 10.0  # least seconds between two versions of the run's page; it is always written when training stops


class Position(NamedTuple):
    """The position of a training."""

    # epoch, batch: the current epoch, from 1, and its finished batches (0 while the previous epoch is validated)
    epoch: int
    batch: int
    num_batches: int  # of the epoch; 0 if not known yet
    epochs: int  # of the schedule; training may end earlier
    metric: PrimaryMetric | None = None  # the metric that chooses the best weights


class TrainReport(Record):
    """The result of a training."""

    model_config = ConfigDict(allow_inf_nan=True)

    run: str
    epochs: int
    """Epochs done in all, earlier calls included."""
    metric: str
    """The primary metric, such as "perplexity" or "accuracy"; ``best_valid`` is its best value on validation."""
    best_valid: float | None
    best_epoch: int
    tokens_per_second: float
    """Training predictions (tokens or examples) a second in this call, or over all epochs if this call trained none."""
    parameters: int
    """Number of learned parameters, shared ones counted once."""
    vectors: VectorCoverage | None = None
    """Coverage of the training text by pretrained vectors, if any."""
    remarks: tuple[str, ...] = ()
    """Settings that change nothing in this model."""
    finished: str
    """Reason why training ended, or an empty string."""
    stopped: bool
    """True if a signal ended it, with a checkpoint to resume from."""


def train(
    table: Mapping[str, Any],
    out: Path | str,
    *,
    resume: bool = False,
    on_report: Callable[[Report], None] = lambda report: None,
    on_remark: Callable[[str], None] = lambda text: None,
    on_step: Callable[[Position], None] = lambda place: None,
    should_stop: Callable[[], bool] | None = None,
    ranks: Ranks | None = None,
) -> TrainReport:
    """Train a model. Several processes make the same call, and the first writes the folder and its page.

    Args:
        table: slot -> keys, as recipes and overrides give it. With ``resume`` it must agree with the run.
        out: the run folder: absent or empty, or with ``resume`` a run to continue from its last checkpoint.
        on_report: called with each report of the trainer.
        on_remark: called before training with remarks on settings without effect, and of ``Task.remarks`` on the data.
        on_step: called when the model is built, after each step, and when the next epoch begins.
        should_stop: whether to stop after a step with a checkpoint, such as a ``StopRequest`` (default: whether a signal came).
        ranks: the processes that train the model; None for one.

    Raises ConfigError: a bad table, or parts that do not fit. Raises CheckpointError: ``out`` is taken, or there is nothing to
    resume. Raises TrainingError: the loss is not finite or does not fall. Raises RankError: another process ended."""
    out, ranks = Path(out), ranks or ALONE
    track = table.get("run", {}).get("track", ())
    check_trackers(track)
    with _how_to_go_on(out, ranks), ExitStack() as held:
        together = ranks.size > 1  # when one rank has stopped, torchrun signals the others, which are about to end as well
        if should_stop is None:
            should_stop = held.enter_context(stop_signals(patient=together, lasting=together))
        signals, asked_to_stop = should_stop if isinstance(should_stop, StopRequest) else None, should_stop
        training = held.enter_context(open_training(table, out, resume=resume, on_remark=on_remark, ranks=ranks))
        # A folder out of other hands may name programs to which this user is logged in.
        silent = [name for name in training.plan.run.track if resume and name not in ("tensorboard", *track)]
        if silent and ranks.leads:
            tracked = [part for name in silent for part in ("--track", name)]
            again = typed("sememekit", "train", "--out", out, "--resume", *tracked)
            on_remark(f"nothing is sent to {' and '.join(silent)}, which the plan names; to send it, stop and type: {again}")
        wanted = [name for name in training.plan.run.track if name not in silent]
        tell = held.enter_context(tracking(wanted, out, training.plan.table())) if ranks.leads else None
        folder, trainer = training.folder, training.trainer
        if trainer.progress.finished and folder.epochs() and ranks.leads:
            write_report(out)  # no epoch follows that would
        epochs, progress, metric = training.plan.schedule.epochs, trainer.progress, training.task.metric

        def stepped() -> bool:
            on_step(Position(progress.epoch, progress.batch, trainer.num_batches, epochs, metric))
            return asked_to_stop()

        stepped()
        seconds, tokens, stopped = 0.0, 0.0, False
        drawn, behind = time.monotonic(), False  # an epoch is reported before its snapshot is there, which the page names
        try:
            for report in trainer.run(stepped):
                if behind and time.monotonic() - drawn >= PAGE_EVERY:
                    write_report(out)
                    drawn, behind = time.monotonic(), False
                if tell is not None:
                    folder.append_metrics({"kind": type(report).__name__, **vars(report)})
                    tell(report)
                if isinstance(report, EpochReport):
                    seconds += report.seconds
                    tokens += report.seconds * report.tokens_per_second
                    behind = ranks.leads
                stopped = isinstance(report, StopReport)
                if stopped and signals is not None:
                    signals.note()  # another rank may have been asked
                    signals.settle()
                on_report(report)
        finally:
            if behind and folder.epochs():  # none if the first snapshot was not written
                write_report(out)
    return TrainReport(
        run=str(out),
        epochs=progress.epoch if progress.finished else progress.epoch - 1,
        metric=training.task.metric.name,
        best_valid=progress.best,
        best_epoch=progress.best_epoch,
        tokens_per_second=tokens / seconds if seconds else tokens_per_second(folder.epochs()),
        parameters=sum(parameter.numel() for parameter in trainer.parameters),
        vectors=training.vectors,
        remarks=training.remarks,
        finished=ending_text(progress, training.plan.schedule),
        stopped=stopped,
    )


@contextmanager
def _how_to_go_on(out: Path, ranks: Ranks) -> Iterator[None]:
    """Return the command to type if another process ended."""
    try:
        yield
    except RankError as error:
        again = typed("torchrun", f"--nproc_per_node={ranks.size}", "-m", "sememekit", "train", "--out", out, "--resume")
        if (out / "checkpoints").exists():
            raise RankError(f"{error}; go on from the last checkpoint with: {again} (or another number)") from error
        raise RankError(f"{error}, before training began; mend that, and type the same command again") from error
