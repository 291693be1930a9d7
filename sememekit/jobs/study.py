"""The trials of ``sweep``: what Optuna proposes, trained side by side, pruned, and kept in one file."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sememekit.config import Record, apply_overrides, differences
from sememekit.errors import ConfigError, DataError, SememekitError, TrainingError
from sememekit.files import is_there, read_object
from sememekit.jobs.on_engine import open_trainings
from sememekit.jobs.space import Space, Value, combinations_of, overrides_of
from sememekit.jobs.train import Position
from sememekit.jobs.trainings import Failed, Message, Trained, show_position
from sememekit.progress import Progress
from sememekit.runs.plan import read_plan
from sememekit.training import EpochReport, metrics

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, Trial

    from sememekit.tasks.base import PrimaryMetric

STUDY: Final = "study.db"
_STARTUP: Final = 4
"""Trials that are drawn at random, and never pruned, before the others."""
_WARM_UP: Final = 1
"""Epochs of a trial in which it is not pruned."""


class TrialReport(Record):
    """One trial of a sweep.

    Attributes:
        number: from 1; the run is in ``OUT/trial-NUMBER``.
        settings: of what was swept, "slot.key" -> value.
        state: "done", "pruned", "failed", "stopped" (out of time) or "unfinished".
        valid: the best validation figure; None where there is none.
        epochs: that were validated.
        cpu_seconds: of its process.
        why: of a trial that failed.
    """

    number: int
    run: str
    settings: dict[str, float | int | bool | str]
    state: str
    valid: float | None
    epochs: int
    cpu_seconds: float
    why: str = ""

    @property
    def figure(self) -> str:
        """The best figure as it is shown."""
        value = self.valid
        return "no figure" if value is None else f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}"


@contextmanager
def stored_in(path: Path) -> Iterator[None]:
    """Inside, whatever Optuna and SQLite raise about a damaged or blocked file is a DataError that names it."""
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
    """The trials of one sweep, in ``OUT/study.db``; every figure in it is to be low, a score with its sign turned.

    Args:
        out: the folder of the sweep.
        table: what is trained, without what is swept.
        spaces: what is swept.
        seed: of the proposals.
        trials: how many in all; None where CPU time is the budget.
        cpu_seconds: of all trials; None where their number is the budget.
        pruning: whether a trial ends that is worse than the median of the others at its epoch.

    Raises ConfigError: Optuna is not installed."""

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
        self.combinations = combinations_of(spaces)
        self.metric: PrimaryMetric | None = None
        self.running: dict[str, Trial] = {}
        self._spent: dict[str, float] = {}
        with warnings.catch_warnings(), stored_in(out / STUDY):
            warnings.simplefilter("ignore")
            pruner = self.optuna.pruners.MedianPruner(n_startup_trials=_STARTUP, n_warmup_steps=_WARM_UP)
            self.study = self.optuna.create_study(
                storage=f"sqlite:///{(out / STUDY).absolute()}", study_name="sweep", pruner=pruner, load_if_exists=True
            )
            self.reports(), self.spent(), self.metric_name()  # what cannot be read is found before anything is trained
            self._check_figures()
        if not self.study.trials:
            self._enqueue_own_settings()

    def _check_figures(self) -> None:
        """Compare each figure with the one in the folder of its trial. Raises DataError: they differ, and ``best.toml`` would
        name other settings than the best."""
        for trial in self.study.trials:
            path, name = self.out / run_name(trial.number) / "metrics.jsonl", trial.user_attrs.get("metric", "")
            measured = {int(record["epoch"]): record["valid"].get(name) for record in metrics.epochs(path)}
            for epoch, value in trial.intermediate_values.items():
                stored = value * trial.user_attrs["sign"]
                if measured.get(epoch, stored) != stored:  # a run that goes on lacks lines, and a run may be gone
                    raise DataError(
                        f"{self.out / STUDY}: says {name} {stored:g} of epoch {epoch} of trial {trial.number + 1}, and {path} "
                        f"{measured[epoch]:g}; one of them was changed: copy {self.out} again from where it came from, or "
                        "choose another --out"
                    )

    def _enqueue_own_settings(self) -> None:
        """The first trial is what the recipe says, where that lies within what is swept."""
        plan = read_plan(self.table, "the plan").table()
        own: dict[str, Any] = {}
        for space in self.spaces:
            values = [_value_of(plan, key) for key in space.key.split(",")]
            if not space.has(values[0]) or any(value != values[0] for value in values):
                return
            own[space.key] = values[0]
        self.study.enqueue_trial(own)

    def run(
        self,
        jobs: int,
        engine: str,
        progress: Progress,
        asked_to_stop: Callable[[], bool],
        on_trial: Callable[[TrialReport], None],
    ) -> bool:
        """Train until the budget is spent, ``jobs`` trials at a time on ``engine``; whether a signal ended it. Raises
        DataError, CheckpointError: of a trial; the others were stopped with checkpoints. Raises TrainingError: a process died.
        """
        unfinished = self._unfinished()
        with open_trainings(engine, jobs, self.out) as trainings:

            def begin_more() -> None:
                while len(trainings.running) < jobs and (unfinished or not self.is_spent()):
                    trial = unfinished.pop(0) if unfinished else self._ask()
                    name = run_name(trial.number)
                    self.running[name] = trial
                    trainings.begin(name, self._table_of(trial), self.out / name)

            def death(name: str, code: int) -> TrainingError:
                return TrainingError(
                    f"training of {self.out / name} ended with exit code {code} before it was done (out of memory?); "
                    "the same sweep command goes on, with --jobs 1 in less memory"
                )

            for name, message in trainings.messages(begin_more, asked_to_stop, death):
                if isinstance(message, Position):
                    show_position(progress, name, message)
                if self._take(name, message):
                    trainings.stop(name)
                if name not in self.running:
                    progress(f"train {name}", 1, 1)
                    on_trial(self.report_of(self.study.trials[number_of(name)]))
            return trainings.stopping

    def _take(self, name: str, message: Message) -> bool:
        """Take in what a trial says; whether it shall stop."""
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
            case Trained():
                self._end(name, message)
            case Failed(error=TrainingError() | ConfigError() as error, cpu_seconds=seconds):
                self._count_time(trial, max(seconds, self._spent.pop(name, 0.0)))
                trial.set_user_attr("why", str(error))
                self._tell(trial, self.optuna.trial.TrialState.FAIL)
                del self.running[name]
            case Failed(error=error):
                raise type(error)(f"{self.out / name}: {error}")
        return False

    def _end(self, name: str, trained: Trained) -> None:
        trial = self.running.pop(name)
        told = self._spent.pop(name, 0.0)
        self._count_time(trial, max(trained.cpu_seconds, told))  # of a process that was killed only its epochs told
        states = self.optuna.trial.TrialState
        ends = self._stored(trial).user_attrs.get("ends")
        if trained.report.stopped and ends is None:
            return  # by a signal: the same command goes on with it
        trial.set_user_attr("metric", trained.report.metric)
        self._tell(trial, states.PRUNED if trained.report.stopped else states.COMPLETE)

    def _tell(self, trial: Trial, state: Any) -> None:
        values = self._stored(trial).intermediate_values.values()
        best = min(values) if values else None
        if state == self.optuna.trial.TrialState.COMPLETE and best is None:
            state = self.optuna.trial.TrialState.FAIL
        self.study.tell(trial, best if state == self.optuna.trial.TrialState.COMPLETE else None, state=state)

    def _report(self, trial: Trial, epoch: Mapping[str, Any]) -> None:
        """Tell Optuna of an epoch, once: an epoch may be read from the run's file before its message arrives."""
        assert self.metric is not None
        value = float(epoch["valid"][self.metric.name])
        trial.set_user_attr("sign", 1 if self.metric.lower_is_better else -1)
        trial.set_user_attr("metric", self.metric.name)
        if int(epoch["epoch"]) not in self._stored(trial).intermediate_values:
            trial.report(value if self.metric.lower_is_better else -value, int(epoch["epoch"]))

    def _catch_up(self, trial: Trial) -> None:
        """Epochs that the run has and a killed sweep did not hear of, with their CPU time."""
        stored = self._stored(trial)
        epochs = metrics.epochs(self.out / run_name(trial.number) / "metrics.jsonl")
        for record in epochs:
            if record["epoch"] not in stored.intermediate_values:
                self._report(trial, record)
        told = sum(record.get("cpu_seconds", 0.0) for record in epochs)
        trial.set_user_attr("cpu_seconds", max(stored.user_attrs.get("cpu_seconds", 0.0), told))

    def _count_time(self, trial: Trial, cpu_seconds: float) -> None:
        before = self._stored(trial).user_attrs.get("cpu_seconds", 0.0)
        trial.set_user_attr("cpu_seconds", before + cpu_seconds)

    def _ask(self) -> Trial:
        """The next proposal; its number alone decides the random numbers, so that an interrupted sweep proposes the same.

        Where the combinations can be counted, one that was tried is not proposed again: another one is drawn in its place.
        """
        seed = (self.seed * 100_003 + len(self.study.trials)) % 2**32
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.study.sampler = self.optuna.samplers.TPESampler(n_startup_trials=_STARTUP, seed=seed)
        untried = self._untried()
        if untried is not None and not self._waiting():
            proposed = self._proposed()
            self.study.enqueue_trial(proposed if proposed in untried else random.Random(seed).choice(untried))
        return self._drawn(self.study)

    def _proposed(self) -> dict[str, Value]:
        """What the sampler would propose, asked of a copy of the study: a proposal cannot be taken back."""
        copy = self.optuna.create_study(sampler=self.study.sampler)
        copy.add_trials([trial for trial in self.study.trials if trial.state.is_finished()])
        return dict(self._drawn(copy).params)

    def _drawn(self, study: Any) -> Trial:
        trial: Trial = study.ask()
        for space in self.spaces:
            space.suggest(trial)
        return trial

    def _untried(self) -> list[dict[str, Value]] | None:
        """Combinations that no trial has; None where they cannot be counted."""
        if self.combinations is None:
            return None
        tried = [trial.params for trial in self.study.get_trials(deepcopy=False)]
        return [combination for combination in self.combinations if combination not in tried]

    def _waiting(self) -> int:
        return sum(trial.state == self.optuna.trial.TrialState.WAITING for trial in self.study.get_trials(deepcopy=False))

    def is_exhausted(self) -> bool:
        """Whether every combination was tried, so that no budget allows a further trial."""
        return self._untried() == []

    def _table_of(self, trial: Trial) -> dict[str, Any]:
        return apply_overrides(self.table, overrides_of(trial.params))

    def _unfinished(self) -> list[Trial]:
        """Trials that an earlier call began and did not end; one that has no settings yet is given up."""
        states, found = self.optuna.trial.TrialState, []
        for stored in self.study.get_trials(deepcopy=False, states=(states.RUNNING,)):
            if set(stored.params) == {space.key for space in self.spaces}:
                found.append(self.optuna.trial.Trial(self.study, stored._trial_id))
            else:
                self.study.tell(stored.number, state=states.FAIL)
        return found

    def _stored(self, trial: Trial) -> FrozenTrial:
        return self.study.trials[trial.number]

    def spent(self) -> float:
        """CPU seconds of all trials; of those at hand as far as their epochs told."""
        return sum(trial.user_attrs.get("cpu_seconds", 0.0) for trial in self.study.trials) + sum(self._spent.values())

    def is_spent(self) -> bool:
        """Whether the budget allows no further trial."""
        if self.is_exhausted():
            return True
        if self.trials is not None:
            return len(self.study.get_trials(deepcopy=False)) - self._waiting() >= self.trials
        assert self.cpu_seconds is not None
        return self.spent() >= self.cpu_seconds

    def reports(self) -> list[TrialReport]:
        """All trials, the best first, those without a figure last."""
        states = self.optuna.trial.TrialState
        begun = [trial for trial in self.study.trials if trial.state != states.WAITING]
        return [self.report_of(trial) for trial in sorted(begun, key=_best)]

    def report_of(self, trial: FrozenTrial) -> TrialReport:
        """What is stored of a trial."""
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
        """The figure that is compared; "validation" before there is one."""
        return next((one.user_attrs["metric"] for one in self.study.trials if "metric" in one.user_attrs), "validation")


def _value_of(plan: Mapping[str, Any], key: str) -> Any:
    value: Any = plan
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _best(trial: FrozenTrial) -> float:
    """The lowest figure; one of a trial that failed counts for nothing."""
    values = trial.intermediate_values.values()
    return min(values) if values and trial.state.name != "FAIL" else math.inf


def run_name(number: int) -> str:
    """The folder of Optuna's trial ``number``, which counts from 0."""
    return f"trial-{number + 1:04d}"


def number_of(name: str) -> int:
    """The inverse of ``run_name``."""
    return int(name.removeprefix("trial-")) - 1


def import_optuna() -> Any:
    """Optuna, which says nothing by itself. Raises ConfigError: it is not installed."""
    try:
        import optuna
    except ModuleNotFoundError:
        raise ConfigError(
            "sweep proposes settings by Optuna, which is not installed; run: pip install 'sememekit[sweep]' (in a source tree: "
            "pip install -c constraints.txt -e '.[sweep]')"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def check_same(out: Path, said: Mapping[str, Any], file: str) -> None:
    """Refuse to go on with a sweep of other settings; the budget may be another one. Raises ConfigError: what differs, with
    both values; or the folder holds something else. Raises DataError: the folder has a study without its settings."""
    path = out / file
    if not path.is_file():
        if (out / STUDY).exists():
            raise DataError(
                f"{path} is missing beside {STUDY}, so nobody knows what is swept there; choose another --out, or delete {out}"
            )
        if out.exists() and (not out.is_dir() or any(entry.name != ".lock" for entry in out.iterdir())):
            raise ConfigError(f"{out} holds files that sweep did not write; choose another --out, or empty it")
        return
    stored = read_object(path, lambda why: DataError(f"{why}; choose another --out, or delete {out}"))
    if lacking := [key for key in said if key not in stored]:
        raise DataError(f"{path} says no {', '.join(lacking)}; it was changed; choose another --out, or delete {out}")
    if not isinstance(stored["table"], dict) or not all(isinstance(keys, dict) for keys in stored["table"].values()):
        raise DataError(f"{path} has no table of settings; it was changed; choose another --out, or delete {out}")
    told = [differences(stored["table"], said["table"])]
    for key, name in (("over", "--over"), ("seed", "--seed"), ("pruning", "pruning")):
        if stored[key] != said[key]:
            there, given = (" ".join(value) if isinstance(value, list) else value for value in (stored[key], said[key]))
            told.append(f"{name} is {there} there, given {given}")
    if any(told):
        raise ConfigError(
            f"{out} is a sweep with other settings: {'; '.join(filter(None, told))}; choose another --out, or type the command "
            "as before (only the budget may change)"
        )
