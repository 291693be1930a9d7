"""The trials of ``sweep``: proposed by Optuna, trained in parallel, pruned, and stored in one file."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from sememekit.config import Record, apply_overrides
from sememekit.errors import ConfigError, DataError, SememekitError, TrainingError
from sememekit.files import is_there, needed
from sememekit.jobs.space import Space, Value, combinations_of, overrides_of
from sememekit.jobs.train import Position
from sememekit.jobs.trainings import Failed, Message, Trained, Trainings, show_position
from sememekit.progress import Progress
from sememekit.runs.plan import read_plan
from sememekit.training import EpochReport, RunFolder

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, Trial

    from sememekit.tasks.base import PrimaryMetric

STUDY: Final = "study.db"
_STARTUP: Final = 4  # first trials, which are random and never pruned


class TrialReport(Record):
    """One trial of a sweep."""

    number: int
    """The number from 1; the run is in ``OUT/trial-NUMBER``."""
    run: str
    settings: dict[str, float | int | bool | str]
    """The swept settings, "slot.key" -> value."""
    state: str
    """"done", "pruned", "failed", "stopped" (out of time) or "unfinished"."""
    valid: float | None
    """The best validation figure; None without any."""
    epochs: int
    """Number of validated epochs."""
    cpu_seconds: float
    """CPU seconds of its process."""
    why: str = ""
    """Reason of a failed trial."""

    @property
    def figure(self) -> str:
        """The best figure as text."""
        value = self.valid
        return "no figure" if value is None else f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}"


@contextmanager
def stored_in(path: Path) -> Iterator[None]:
    """Turn errors of Optuna and SQLite about a damaged or locked file into DataError inside the block."""
    is_there(path, DataError)
    try:
        yield
    except (SememekitError, OSError, MemoryError):
        raise
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")
        raise DataError(
            f"{path}: holds no trials that can be read ({type(error).__name__}: {reason:.200}); copy it again "
            "from where it came from, or choose another --out"
        ) from error


class Study:
    """The trials of one sweep, in ``OUT/study.db``; lower figures are better, scores are negated.

    ``table`` is the plan without the swept settings (``spaces``), ``seed`` the seed of the proposals. The budget is ``trials``
    or ``cpu_seconds``; the other is None. ``pruning`` stops trials that are worse than the median of the others at the same
    epoch. Raises ConfigError: Optuna is not installed."""

    def __init__(
        self,
        out: Path,
        table: Mapping[str, Any],
        spaces: Sequence[Space],
        *,
        seed: int,
        trials: int | None,
        cpu_seconds: float | None,
        pruning: bool,
    ) -> None:
        self.optuna = import_optuna()
        self.out, self.table, self.spaces, self.seed = out, table, spaces, seed
        self.trials, self.cpu_seconds, self.pruning = trials, cpu_seconds, pruning
        self._spaces, self.combinations = {space.key: space.distribution() for space in spaces}, combinations_of(spaces)
        self.metric: PrimaryMetric | None = None
        self.running: dict[str, Trial] = {}
        self._spent: dict[str, float] = {}
        with warnings.catch_warnings(), stored_in(out / STUDY):
            warnings.simplefilter("ignore")
            pruner = self.optuna.pruners.MedianPruner(n_startup_trials=_STARTUP)
            self.study = self.optuna.create_study(
                storage=f"sqlite:///{(out / STUDY).absolute()}", study_name="sweep", pruner=pruner, load_if_exists=True
            )
            self.reports(), self.spent(), self.metric_name()  # what cannot be read is found before anything is trained
            self._check_figures()
        if not self.study.trials:
            self._enqueue_own_settings()

    def _check_figures(self) -> None:
        """Compare each figure with the folder of its trial. Raises DataError: they differ; ``best.toml`` could be wrong."""
        for trial in self.study.trials:
            path, name = self.out / run_name(trial.number), trial.user_attrs.get("metric", "")
            measured = {int(record["epoch"]): record["valid"].get(name) for record in _epochs_of(path)}
            for epoch, value in trial.intermediate_values.items():
                stored = value * trial.user_attrs["sign"]
                if measured.get(epoch, stored) != stored:  # a run that goes on lacks lines, and a run may be gone
                    raise DataError(
                        f"{self.out / STUDY}: says {name} {stored:g} of epoch {epoch} of trial {trial.number + 1}, and "
                        f"{path / 'metrics.jsonl'} {measured[epoch]:g}; one of them was changed: copy {self.out} again from "
                        "where it came from, or choose another --out"
                    )

    def _enqueue_own_settings(self) -> None:
        """Start with the settings of the recipe, if they are within the spaces."""
        plan, own = read_plan(self.table, "the plan").table(), dict[str, Any]()
        for space in self.spaces:
            first, *others = (_value_of(plan, key) for key in space.key.split(","))
            if not space.has(first) or any(value != first for value in others):
                return
            own[space.key] = first
        self.study.enqueue_trial(own)

    def run(
        self, jobs: int, engine: str, progress: Progress, stopping: Callable[[], bool], on_trial: Callable[[TrialReport], None]
    ) -> bool:
        """Train until the budget is spent, ``jobs`` trials at a time on ``engine``; return whether a signal came. Raises
        DataError, CheckpointError: of a trial; the others stop with checkpoints. Raises TrainingError: a process died."""
        unfinished = self._unfinished()
        with Trainings(engine, jobs, self.out) as trainings:

            def begin_more() -> None:
                while len(trainings.running) < jobs and (unfinished or not self.is_spent()):
                    trial = unfinished.pop(0) if unfinished else self._ask()
                    name = run_name(trial.number)
                    self.running[name] = trial
                    trainings.begin(name, apply_overrides(self.table, overrides_of(trial.params)), self.out / name)

            go_on = "the same sweep command goes on, with --jobs 1 in less memory"
            for name, message in trainings.messages(begin_more, stopping, go_on):
                if isinstance(message, Position):
                    show_position(progress, name, message)
                trial = self.running[name]
                if self._take(name, message):
                    trainings.stop(name)
                if name not in self.running:
                    progress(f"train {name}", 1, 1)
                    on_trial(self.report_of(self._stored(trial)))
            return trainings.stopping

    def _take(self, name: str, message: Message) -> bool:
        """Handle a message of a trial; return whether the trial must stop."""
        trial = self.running[name]
        match message:
            case Position(metric=metric) if metric is not None and name not in self._spent:
                self.metric = metric
                self._spent[name] = 0.0
                self._catch_up(trial)
            case EpochReport():
                self._report(trial, vars(message))
                self._spent[name] += message.cpu_seconds
                if self.cpu_seconds is not None and self.spent() >= self.cpu_seconds:
                    trial.set_user_attr("ends", "stopped")
                    return True
                if self.pruning and not message.finished and trial.should_prune():
                    trial.set_user_attr("ends", "pruned")
                    return True
            case Failed(error=error) if not isinstance(error, TrainingError | ConfigError):
                raise type(error)(f"{self.out / name}: {error}")
            case Trained() | Failed():
                self._end(name, message)
        return False

    def _end(self, name: str, message: Trained | Failed) -> None:
        """Store the end of a trial; a trial stopped by a signal is continued by the same command."""
        trial, states = self.running.pop(name), self.optuna.trial.TrialState
        told = self._spent.pop(name, 0.0)
        spent = self._stored(trial).user_attrs.get("cpu_seconds", 0.0) + max(message.cpu_seconds, told)
        trial.set_user_attr("cpu_seconds", spent)  # of a process that was killed only its epochs told
        if isinstance(message, Failed):
            trial.set_user_attr("why", str(message.error))
            self.study.tell(trial, state=states.FAIL)
            return
        if message.report.stopped and self._stored(trial).user_attrs.get("ends") is None:
            return
        trial.set_user_attr("metric", message.report.metric)
        values = self._stored(trial).intermediate_values.values()
        if message.report.stopped or not values:
            self.study.tell(trial, state=states.PRUNED if message.report.stopped else states.FAIL)
        else:
            self.study.tell(trial, min(values), state=states.COMPLETE)

    def _report(self, trial: Trial, epoch: Mapping[str, Any]) -> None:
        """Report an epoch to Optuna once, even if both the run's file and a message have it."""
        assert self.metric is not None
        value = float(epoch["valid"][self.metric.name])
        trial.set_user_attr("sign", 1 if self.metric.lower_is_better else -1)
        trial.set_user_attr("metric", self.metric.name)
        if int(epoch["epoch"]) not in self._stored(trial).intermediate_values:
            trial.report(value if self.metric.lower_is_better else -value, int(epoch["epoch"]))

    def _catch_up(self, trial: Trial) -> None:
        """Read epochs of the run that a killed sweep missed, with their CPU time."""
        stored = self._stored(trial)
        epochs = _epochs_of(self.out / run_name(trial.number))
        for record in epochs:
            if record["epoch"] not in stored.intermediate_values:
                self._report(trial, record)
        told = sum(record.get("cpu_seconds", 0.0) for record in epochs)
        trial.set_user_attr("cpu_seconds", max(stored.user_attrs.get("cpu_seconds", 0.0), told))

    def _ask(self) -> Trial:
        """The next proposal. Its number is the random seed, so that an interrupted sweep makes the same proposals.

        If combinations can be enumerated, tried ones are not proposed again: another is drawn instead."""
        seed = (self.seed * 100_003 + len(self.study.trials)) % 2**32
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.study.sampler = self.optuna.samplers.TPESampler(n_startup_trials=_STARTUP, seed=seed)
        untried = self._untried()
        if untried is not None and not self._waiting():
            copy = self.optuna.create_study(sampler=self.study.sampler)  # proposals cannot be withdrawn
            copy.add_trials([trial for trial in self.study.trials if trial.state.is_finished()])
            proposed = dict(copy.ask(self._spaces).params)
            self.study.enqueue_trial(proposed if proposed in untried else random.Random(seed).choice(untried))
        return cast("Trial", self.study.ask(self._spaces))

    def _untried(self) -> list[dict[str, Value]] | None:
        """Return the untried combinations; None if they cannot be enumerated."""
        tried = [trial.params for trial in self.study.get_trials(deepcopy=False)]
        return self.combinations and [combination for combination in self.combinations if combination not in tried]

    def _waiting(self) -> int:
        return sum(trial.state == self.optuna.trial.TrialState.WAITING for trial in self.study.get_trials(deepcopy=False))

    def is_exhausted(self) -> bool:
        """Return whether every combination was tried, so that no budget allows a further trial."""
        return self._untried() == []

    def _unfinished(self) -> list[Trial]:
        """Return the unfinished trials of an earlier call; trials without settings are given up."""
        states, found = self.optuna.trial.TrialState, []
        for stored in self.study.get_trials(deepcopy=False, states=(states.RUNNING,)):
            if stored.params.keys() == self._spaces.keys():
                found.append(self.optuna.trial.Trial(self.study, stored._trial_id))
            else:
                self.study.tell(stored.number, state=states.FAIL)
        return found

    def _stored(self, trial: Trial) -> FrozenTrial:
        return self.study.trials[trial.number]

    def spent(self) -> float:
        """Return the CPU seconds of all trials; for running trials, of their reported epochs."""
        return sum(trial.user_attrs.get("cpu_seconds", 0.0) for trial in self.study.trials) + sum(self._spent.values())

    def is_spent(self) -> bool:
        """Return whether the budget allows no further trial."""
        if self.is_exhausted():
            return True
        if self.trials is not None:
            return len(self.study.get_trials(deepcopy=False)) - self._waiting() >= self.trials
        assert self.cpu_seconds is not None
        return self.spent() >= self.cpu_seconds

    def reports(self) -> list[TrialReport]:
        """All trials, the best first, trials without a figure last."""
        begun = [trial for trial in self.study.trials if trial.state.name != "WAITING"]
        return [self.report_of(trial) for trial in sorted(begun, key=_best)]

    def report_of(self, trial: FrozenTrial) -> TrialReport:
        """Return the report of a stored trial."""
        best = _best(trial)
        ends = trial.user_attrs.get("ends", "pruned")
        state = {"COMPLETE": "done", "FAIL": "failed", "RUNNING": "unfinished", "PRUNED": ends}[trial.state.name]
        return TrialReport(
            number=trial.number + 1,
            run=str(self.out / run_name(trial.number)),
            settings=trial.params,
            state=state,
            valid=None if math.isinf(best) else best * trial.user_attrs["sign"],
            epochs=len(trial.intermediate_values),
            cpu_seconds=trial.user_attrs.get("cpu_seconds", 0.0),
            why=trial.user_attrs.get("why", ""),
        )

    def metric_name(self) -> str:
        """The name of the compared metric; "validation" before the first figure."""
        return next((one.user_attrs["metric"] for one in self.study.trials if "metric" in one.user_attrs), "validation")


def _epochs_of(run: Path) -> Sequence[dict[str, Any]]:
    """Return the epochs of a run as stored; none if its training left no run, since it failed or was killed at once."""
    return RunFolder.open(run).epochs() if (run / "plan.json").exists() else ()


def _value_of(plan: Mapping[str, Any], key: str) -> Any:
    value: Any = plan
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _best(trial: FrozenTrial) -> float:
    """Return the lowest figure; failed trials do not count."""
    values = trial.intermediate_values.values()
    return min(values) if values and trial.state.name != "FAIL" else math.inf


def run_name(number: int) -> str:
    """The folder of Optuna's trial ``number``, which counts from 0."""
    return f"trial-{number + 1:04d}"


def import_optuna() -> Any:
    """Import Optuna with its log turned off. Raises ConfigError: it is not installed."""
    optuna = needed("optuna", "sweep", "sememekit[sweep]")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
