"""Progress on stderr: bars on a terminal, lines in a log file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sememekit.commands._printing import remark
from sememekit.figures import percent
from sememekit.progress import silent

if TYPE_CHECKING:
    from sememekit.progress import Progress as ProgressCallback


class ProgressLines:
    """Progress in a log file: the stages at hand in one line on stderr, every half a minute; none of what is quicker."""

    EVERY: Final = 30.0
    """Seconds between two lines at least."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._told = now, now()
        self._at_hand: dict[str, str] = {}

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if total is not None and done >= total:
            self._at_hand.pop(stage, None)
        else:
            self._at_hand[stage] = f"{stage}: {done:,}" if total is None else f"{stage}: {percent(done / total, 0)}"
        if self._at_hand and self._now() - self._told >= self.EVERY:
            self._told = self._now()
            remark("; ".join(self._at_hand.values()), quiet=False)


@contextmanager
def progress_bars(quiet: bool) -> Iterator[ProgressCallback]:
    """A callback that draws one bar for each stage, with rate and time left; where stderr is no terminal, ``ProgressLines``."""
    if quiet:
        yield silent
        return
    if not sys.stderr.isatty():
        yield ProgressLines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Task as Stage
    from rich.text import Text

    class Rate(ProgressColumn):
        """Units a second, once there is something to divide."""

        def render(self, task: Stage) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f}/s" if speed else "", style="progress.data.speed")

    share = TextColumn("{task.percentage:>3.0f} %")
    columns = (TextColumn("{task.description}"), BarColumn(), share, Rate(), TimeRemainingColumn())
    stages: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=False) as progress:

        def show(stage: str, done: int, total: int | None) -> None:
            if stage not in stages:
                stages[stage] = progress.add_task(stage, total=total)
            progress.update(stages[stage], completed=done, total=total)

        yield show
