"""Progress on stderr: bars on a terminal, lines in a log file, and the reports of a training."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from sememekit.commands._printing import remark
from sememekit.figures import format_value, percent

if TYPE_CHECKING:
    from sememekit.jobs.train import Position


class Show(Protocol):
    """A callback with the done and total units of a stage and a note; finished stages are hidden."""

    def __call__(self, stage: str, done: int, total: int | None, more: str = "") -> None: ...


class ProgressLines:
    """Progress in a log file: the current stages in a line on stderr every half minute; short stages are omitted.

    The remaining time uses the mean time of a step since the first call."""

    EVERY: Final = 30.0  # least seconds between two lines

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._told = now, now()
        self._begun: dict[str, tuple[float, int]] = {}
        self._at_hand: dict[str, str] = {}

    def __call__(self, stage: str, done: int, total: int | None, more: str = "") -> None:
        now = self._now()
        if total is None:
            self._at_hand[stage] = f"{stage}: {more or f'{done:,}'}"
        elif done >= total:
            self._at_hand.pop(stage, None)
        else:
            began, first = self._begun.setdefault(stage, (now, done))
            seconds = (now - began) * (total - done) / (done - first) if done > first else None
            left = "" if seconds is None else f"about {timedelta(seconds=round(seconds))} left"
            self._at_hand[stage] = ", ".join(filter(None, (f"{stage}: {percent(done / total, 0)}", more, left)))
        if self._at_hand and now - self._told >= self.EVERY:
            self._told = now
            remark("; ".join(self._at_hand.values()), quiet=False)


@contextmanager
def progress_bars(quiet: bool) -> Iterator[Show]:
    """Yield a callback that draws a bar with rate and remaining time for each stage (no terminal: ``ProgressLines``)."""
    if quiet:
        yield lambda stage, done, total, more="": None
        return
    if not sys.stderr.isatty():
        yield ProgressLines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Task as Stage
    from rich.text import Text

    class Rate(ProgressColumn):
        """Units a second, once known."""

        def render(self, task: Stage) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f}/s" if speed else "", style="progress.data.speed")

    share, more_told = TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[more]}")
    columns = (TextColumn("{task.description}"), BarColumn(), share, Rate(), TimeRemainingColumn(), more_told)
    stages: dict[str, TaskID] = {}
    # so long that the time between two epochs of a training counts
    with Progress(*columns, console=Console(stderr=True), transient=False, speed_estimate_period=3600.0) as progress:

        def show(stage: str, done: int, total: int | None, more: str = "") -> None:
            if stage not in stages:
                stages[stage] = progress.add_task(stage, total=total, more=more)
            progress.update(stages[stage], completed=done, total=total, more=more)

        yield show


class TrainingProgress:
    """The display of a training: call it with the trainer's reports, and ``at`` with the position after each step.

    Each epoch has a line, and with ``verbose`` each step; otherwise position and loss are beside the bar."""

    def __init__(self, show: Show, quiet: bool, verbose: bool) -> None:
        self._show, self._quiet, self._verbose, self._state = show, quiet, verbose, ""

    def at(self, place: "Position") -> None:
        """Show where the training is, in batches of all epochs."""
        where = f"epoch {place.epoch} of {place.epochs}, batch {place.batch:,} of {place.num_batches:,}"
        more = f"{where}, {self._state}" if self._state else where
        if self._verbose:
            remark(more, self._quiet or not place.batch)
        elif place.num_batches:
            done = (place.epoch - 1) * place.num_batches + place.batch
            self._show("training", done, place.epochs * place.num_batches, more)
        else:
            self._show("training", 0, None, "getting ready")

    def __call__(self, report: Any) -> None:
        from sememekit.training import ChangeReport, EpochReport, StepReport

        match report:  # the subcommand reports a stop, with what to type next
            case StepReport():
                self._state = f"loss {report.nats:.3f}, {report.tokens_per_second:,.0f} a second, rate {report.rate:g}"
            case EpochReport():
                remark(epoch_line(report), self._quiet)
            case ChangeReport():
                values = "; ".join(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in report.values.items())
                remark(f"step {report.step}: {values}", self._quiet)


def epoch_line(report: Any) -> str:
    """Return a line on a finished epoch."""
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
