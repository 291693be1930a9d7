"""The decisions after an epoch: the best weights, the learning rate, averaging, and whether the run ends."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from sememekit.tasks.base import PrimaryMetric
from sememekit.training.divergence import rate_is_nothing
from sememekit.training.settings import OptimizerSettings, RunSettings, ScheduleSettings
from sememekit.training.state import Ending, TrainingState


def non_monotone_trigger(metric: PrimaryMetric, new: float, history: Sequence[float], spared: int) -> bool:
    """Return whether ``new`` is worse than the best of ``history`` before its last ``spared`` values."""
    earlier = history[: max(0, len(history) - spared)]
    if not earlier:
        return False
    best = min(earlier) if metric.lower_is_better else max(earlier)
    return metric.improves(best, new)


class Verdict(NamedTuple):
    """The decisions after an epoch; ``stuck`` is the reason to end the run with an error, or empty."""

    best: bool
    rate_cut: bool
    averaging_begins: bool
    stuck: str


class Schedule(NamedTuple):
    """The rules that change ``TrainingState`` after an epoch; ``baseline`` is the ``metric`` of the unigram baseline."""

    schedule: ScheduleSettings
    optimizer: OptimizerSettings
    run: RunSettings
    metric: PrimaryMetric
    baseline: float

    def decide(self, progress: TrainingState, value: float) -> Verdict:
        """Decide by the validation ``value`` of the epoch; ``schedule.decay`` applies after the report."""
        schedule, metric = self.schedule, self.metric
        best = metric.improves(value, progress.best)
        improved = metric.improves(value, progress.best, schedule.threshold)
        if best:
            progress.best, progress.best_epoch = value, progress.epoch
        held = progress.epoch <= schedule.grace
        progress.since_best = 0 if improved or held else progress.since_best + 1
        cut = (progress.epoch in schedule.milestones or not (improved or held)) and schedule.factor < 1.0
        if cut:
            progress.rate *= schedule.factor
        waits = self.optimizer.averaging == "triggered" and not progress.averaging
        begins = waits and non_monotone_trigger(metric, value, progress.history, self.optimizer.trigger)
        progress.averaging = progress.averaging or begins
        window = schedule.stop_non_monotone
        worse = bool(window) and non_monotone_trigger(metric, value, progress.history, window)
        progress.history.append(value)
        stuck = self._stall(progress, value)
        over_fits = bool(stuck) and self._over_fits(progress)
        no_rate = rate_is_nothing(progress, self.optimizer, schedule.decay)
        if no_rate and not stuck and (progress.best is None or not metric.improves(progress.best, self.baseline)):
            stuck = self._no_rate(progress)
        if cut and progress.rate < schedule.minimum_rate:
            progress.finished = Ending.RATE
        elif worse:
            progress.finished = Ending.NON_MONOTONE
        elif no_rate and not stuck:
            progress.finished = Ending.NO_RATE
        elif schedule.stop_after and progress.since_best >= schedule.stop_after:  # from here on endings that reopen may lift
            progress.finished = Ending.PATIENCE
        elif over_fits:
            progress.finished = Ending.OVER_FITS
        elif progress.epoch >= schedule.epochs:  # the last, so that more epochs later are the same as more at once
            progress.finished = Ending.EPOCHS
        return Verdict(best, cut, begins, "" if over_fits else stuck)

    def _over_fits(self, progress: TrainingState) -> bool:
        """Return whether a run that seems stuck over-fits: it learned its training text, and validation was better before."""
        nats = progress.nats / progress.count
        goal = math.log(self.baseline) if self.metric.name == "perplexity" else progress.first_nats
        if self.metric.name == "accuracy" and 0 < self.baseline < 1:
            # what two labels cost, of which the more frequent has that share: coming back to it from above is no learning
            goal = min(goal, -sum(share * math.log(share) for share in (self.baseline, 1 - self.baseline)))
        return progress.best_epoch < progress.epoch and nats < goal + math.log(self.run.stall_ratio)

    def _no_rate(self, progress: TrainingState) -> str:
        """Return the reason to end a run whose rate vanished before it learned anything."""
        began, best = self.optimizer.learning_rate, "none" if progress.best is None else f"{progress.best:.4g}"
        return (
            f"the rate was cut from {began:g} to nothing ({progress.rate * self.schedule.decay:.1g}) in {progress.epoch} "
            f"epochs, and the best validation {self.metric.name} is {best}, where a model that knows word frequencies only has "
            f"{self.baseline:.4g}; the best checkpoint is from epoch {progress.best_epoch}; start again, and hold the rate "
            f"at first (--set schedule.grace={progress.epoch}) or cut it less (--set schedule.factor=0.5)"
        )

    def _stall(self, progress: TrainingState, value: float) -> str:
        """Return the reason to end a run whose validation never beat the unigram baseline; otherwise nothing."""
        run = self.run
        if not run.stall_epochs or progress.stalled < 0:
            return ""
        if self.metric.lower_is_better:
            share = value / self.baseline
        else:
            share = self.baseline / value if value else math.inf
        if share < run.stall_ratio:
            progress.stalled = -1
            return ""
        progress.stalled += 1
        if progress.stalled < run.stall_epochs:
            return ""
        began = self.optimizer.learning_rate
        if progress.rate < began:
            rate = (
                f"the rate was cut from {began:g} to {progress.rate:g} meanwhile: start again with another one "
                f"(--set optimizer.learning_rate={began * 4:g}), hold it at first (--set schedule.grace={progress.epoch})"
            )
        else:
            rate = f"change the rate (--set optimizer.learning_rate={began / 4:g}, or {began * 4:g})"
        return (
            f"training is stuck: after {progress.epoch} epochs validation {self.metric.name} is {value:.4g}, and a model that "
            f"knows word frequencies only has {self.baseline:.4g}; {rate}, check that the data are not shuffled word by word, "
            f"or wait longer (--resume --set run.stall_epochs={2 * run.stall_epochs})"
        )


def reopen(progress: TrainingState, schedule: ScheduleSettings, run: RunSettings) -> None:
    """Continue a finished run if the schedule now allows more epochs, or a longer wait for an improvement."""
    if progress.finished in (Ending.PATIENCE, Ending.OVER_FITS):  # both may have come at once
        waited = bool(schedule.stop_after) and progress.since_best >= schedule.stop_after
        stalled = bool(run.stall_epochs) and progress.stalled >= run.stall_epochs
        progress.finished = Ending.PATIENCE if waited else Ending.OVER_FITS if stalled else Ending.EPOCHS
    if progress.finished == Ending.EPOCHS and progress.epoch < schedule.epochs:
        progress.finished = None
        progress.epoch += 1
