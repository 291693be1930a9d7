"""Progress of ``train``: a line an epoch, and the position: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from sememekit.commands._printing import remark
from sememekit.figures import format_value, percent

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from sememekit.jobs.train import Position


LINE_EVERY: Final = 30.0
"""Seconds between two lines where there is no bar."""


class TimeLeft:
    """The seconds that a run still takes if no rule ends it before the last epoch of its schedule.

        left = TimeLeft()
        left.at(Position(epoch=1, batch=50, num_batches=100, epochs=10))

    The mean time of a batch is that of this call, from its first step on, with what was between two epochs (validation,
    checkpoint).
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._begin = now, now()
        self._first: int | None = None

    def at(self, place: Position) -> float | None:
        """Take in where the run is now; None while nothing is known of its speed."""
        if not place.num_batches:
            self._begin = self._now()
            return None
        done = (place.epoch - 1) * place.num_batches + place.batch
        self._first = done - 1 if self._first is None else self._first
        return (place.epochs * place.num_batches - done) * (self._now() - self._begin) / max(1, done - self._first)


class TrainingBars:
    """Call it with the reports of a trainer; ``at`` with where it is after each step.

    Without ``progress`` there is no bar, but a line every ``line_every`` seconds; without ``say`` there are no lines.
    """

    def __init__(self, progress: Progress | None, say: Callable[[str], None] | None, line_every: float = LINE_EVERY) -> None:
        self._progress, self._say, self._left = progress, say, TimeLeft()
        self._line_every, self._said = line_every, time.monotonic()
        self._bar: TaskID | None = None
        self._seconds: float | None = None
        self._state = "getting ready"
        if progress is not None:
            self._bar = progress.add_task("", total=None, epoch="", state=self._state, left="")

    def at(self, place: Position) -> None:
        """Move the bar of the epoch."""
        seconds = self._left.at(place)
        self._seconds = self._seconds if seconds is None else seconds
        if self._progress is None or self._bar is None:
            if self._say is not None and place.batch and time.monotonic() - self._said >= self._line_every:
                where = f"epoch {place.epoch}, batch {place.batch:,} of {place.num_batches:,}"
                self._line(self._say, where, self._state if self._state != "getting ready" else "", self._told())
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
            case StepReport():
                self._state = f"loss {report.nats:.3f}, {report.tokens_per_second:,.0f} a second, rate {report.rate:g}"
                if self._progress is None or self._bar is None:
                    return
                state = self._state if report.batch < report.num_batches else f"{self._state}; validating"
                self._progress.update(self._bar, completed=report.batch, total=report.num_batches, state=state)
            case EpochReport():
                told = "" if report.finished else self._told()
                self._line(self._say, epoch_line(report), told)
            case ChangeReport():
                self._line(self._say, change_line(report))
            case _:
                pass  # the subcommand reports a stop, with what to type next

    def _line(self, say: Callable[[str], None], *parts: str) -> None:
        say("; ".join(filter(None, parts)))
        self._said = time.monotonic()

    def _told(self) -> str:
        return "" if self._seconds is None else f"at most {timedelta(seconds=round(self._seconds))} left"


@contextmanager
def training_progress(quiet: bool, verbose: bool = False) -> Iterator[TrainingBars]:
    """A bar for the epoch at hand, where stderr is a terminal, and a line for each that is done.

    A log file has a line every ``LINE_EVERY`` seconds as well; with ``verbose`` there is a line for each step, and no bar. The
    bar is there before torch is imported, and moves with every step that ``at`` is told.
    """
    if quiet:
        yield TrainingBars(None, None)
        return
    if verbose or not sys.stderr.isatty():  # a log file: lines alone
        yield TrainingBars(None, lambda line: remark(line, quiet=False), 0.0 if verbose else LINE_EVERY)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    epoch, state, left = (TextColumn(f"{{task.fields[{name}]}}") for name in ("epoch", "state", "left"))
    columns = epoch, BarColumn(bar_width=24), state, left
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as progress:
        yield TrainingBars(progress, progress.console.print)


def epoch_line(report: Any) -> str:
    """One finished epoch in one line."""
    valid = ", ".join(
        f"{name} {percent(value, 2)}" if name.startswith("rouge") else f"{name.replace('_', ' ')} {format_value(value)}"
        for name, value in report.valid.items()
        if name not in ("nats", "tokens", "examples")  # the same in every line, or known from what is shown
    )
    per, units = ("", "examples") if "accuracy" in report.valid else ("/token", "tokens")
    estimate = " (estimated from sampled words)" if report.estimated else ""
    line = f"epoch {report.epoch}: training loss {report.train_nats:.3f} nats{per}{estimate}, valid {valid}; "
    line += f"{report.tokens_per_second:,.0f} {units} a second"
    told = {"of averaged weights": report.averaged, "best so far": report.best, "rate cut": report.rate_cut}
    told |= {"averaging begins": report.averaging_begins, report.finished: report.finished}
    return "; ".join([line, *(text for text, holds in told.items() if holds)])


def change_line(report: Any) -> str:
    """Return one line on what changed in the model by other means than gradients."""
    values = "; ".join(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in report.values.items())
    return f"step {report.step}: {values}"
