"""What ``train`` shows while it trains: a line an epoch, and on a terminal a bar from its first second with the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sememekit.commands._printing import remark
from sememekit.figures import format_value, percent

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from sememekit.jobs.train import Position


class TimeLeft:
    """The seconds that a run still takes if no rule ends it before the last epoch of its schedule.

        left = TimeLeft()
        left.at(Position(epoch=1, batch=50, num_batches=100, epochs=10))

    The mean time of a batch, and that from the last batch of an epoch to the first of the next (validation, checkpoint), are
    those of this call; until an epoch is over the latter counts as nothing.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._before = now, now()
        self._last: Position | None = None
        self._batches = self._training = self._between = 0.0
        self._gaps = 0

    def at(self, place: Position) -> float | None:
        """Take in where the run is now; None while nothing is known of its speed."""
        now, last = self._now(), self._last
        if last is not None:
            passed = now - self._before
            if place.epoch == last.epoch and place.batch > last.batch:
                self._batches += place.batch - last.batch
                self._training += passed
            elif place.epoch > last.epoch:
                self._between += passed
                self._gaps += 1
        self._last, self._before = place, now
        if not self._batches or not place.num_batches:
            return None
        batches = place.num_batches - place.batch + (place.epochs - place.epoch) * place.num_batches
        gap = self._between / self._gaps if self._gaps else 0.0
        return batches * self._training / self._batches + (place.epochs - place.epoch + 1) * gap


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as "1:02:03"."""
    minutes, second = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{second:02d}"


class TrainingBars:
    """Call it with the reports of a trainer; ``at`` with where it is after each step.

    Without ``progress`` there is no bar; without ``say`` there are no lines.
    """

    def __init__(self, progress: Progress | None, say: Callable[[str], None] | None) -> None:
        self._progress, self._say, self._left = progress, say, TimeLeft()
        self._bar: TaskID | None = None
        self._seconds: float | None = None
        self._state = "getting ready"
        if progress is not None:
            self._bar = progress.add_task("", total=None, epoch="", state=self._state, left="")

    def at(self, place: Position) -> None:
        """Move the bar, which is that of the epoch."""
        seconds = self._left.at(place)
        self._seconds = self._seconds if seconds is None else seconds
        if self._progress is None or self._bar is None:
            return
        if self._state == "getting ready" and place.num_batches:
            self._state = ""
        self._progress.update(
            self._bar,
            completed=place.batch,
            total=place.num_batches or None,
            epoch=f"epoch {place.epoch} of {place.epochs}",
            state=self._state,
            left=self._told(),
        )

    def __call__(self, report: Any) -> None:
        from sememekit.training import ChangeReport, EpochReport, StepReport

        if self._say is None:
            return
        match report:
            case StepReport() if self._progress is not None and self._bar is not None:
                self._state = f"loss {report.nats:.3f}, {report.tokens_per_second:,.0f} a second, rate {report.rate:g}"
                state = self._state if report.batch < report.num_batches else f"{self._state}; validating"
                self._progress.update(self._bar, completed=report.batch, total=report.num_batches, state=state)
            case EpochReport():
                told = "" if report.finished else self._told()
                self._say("; ".join(filter(None, (epoch_line(report), told))))
            case ChangeReport():
                self._say(change_line(report))
            case _:
                pass  # the subcommand reports a stop, with what to type next

    def _told(self) -> str:
        return "" if self._seconds is None else f"at most {clock(self._seconds)} left"


@contextmanager
def training_progress(quiet: bool) -> Iterator[TrainingBars]:
    """A bar for the epoch at hand, where stderr is a terminal, and a line for each that is done.

    The bar is there before torch is imported, and moves with every step that ``at`` is told.
    """
    if quiet:
        yield TrainingBars(None, None)
        return
    if not sys.stderr.isatty():  # a log file: lines alone
        yield TrainingBars(None, lambda line: remark(line, quiet=False))
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.fields[epoch]}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}"),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as progress:
        yield TrainingBars(progress, progress.console.print)


def epoch_line(report: Any) -> str:
    """One finished epoch in one line."""
    # How many nats and tokens a split has in all is the same in every line, or follows from what is shown.
    figures = {name: value for name, value in report.valid.items() if name not in ("nats", "tokens", "examples")}
    valid = ", ".join(
        f"{name} {percent(value, 2)}" if name.startswith("rouge") else f"{name.replace('_', ' ')} {format_value(value)}"
        for name, value in figures.items()
    )
    per, units = ("", "examples") if "accuracy" in report.valid else ("/token", "tokens")
    estimate = " (estimated from sampled words)" if report.estimated else ""
    parts = [
        f"epoch {report.epoch}: training loss {report.train_nats:.3f} nats{per}{estimate}, valid {valid}",
        f"{report.tokens_per_second:,.0f} {units} a second",
        "of averaged weights" if report.averaged else "",
        "best so far" if report.best else "",
        "rate cut" if report.rate_cut else "",
        "averaging begins" if report.averaging_begins else "",
        report.finished,
    ]
    return "; ".join(filter(None, parts))


def change_line(report: Any) -> str:
    """What changed in the model by other means than gradients, in one line."""
    values = "; ".join(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in report.values.items())
    return f"step {report.step}: {values}"
