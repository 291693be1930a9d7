"""Search the training settings that are best on validation, within a budget."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sememekit.config import Record, apply_overrides, differences
from sememekit.engines.base import engine_of
from sememekit.errors import ConfigError, DataError
from sememekit.files import read_object, replace_file, sole_command, to_json
from sememekit.jobs.recipes import toml_text
from sememekit.jobs.space import overrides_of, read_spaces
from sememekit.jobs.study import STUDY, Study, TrialReport, import_optuna
from sememekit.progress import Progress, silent
from sememekit.runs.build import sources_of
from sememekit.runs.plan import read_plan
from sememekit.signals import stop_signals

SETTINGS, BEST, REPORT = "sweep.json", "best.toml", "report.json"


class SweepReport(Record):
    """The result of a sweep."""

    out: str
    """Its folder; ``best.toml`` there has the settings of the best trial."""
    budget: str
    """Such as "12 trials" or "30 CPU minutes"."""
    metric: str
    """The compared validation metric."""
    cpu_minutes: float
    """CPU time of all trials so far."""
    trials: tuple[TrialReport, ...]
    """Sorted by ``valid``, the best first; those without a figure last."""
    best: str | None
    """The file with the best settings; None before a trial has a figure."""
    stopped: bool
    """True if a signal stopped it; the same command continues it."""
    exhausted: bool
    """True if every combination of values was tried, so that a larger budget adds nothing."""

    @property
    def num_trials(self) -> str:
        """The number of trials, as "1 trial"."""
        return _trials(len(self.trials))


def sweep(
    table: Mapping[str, Any],
    out: Path,
    over: Sequence[str],
    *,
    trials: int | None = None,
    cpu_minutes: float | None = None,
    pruning: bool = True,
    jobs: int = 2,
    engine: str = "local",
    seed: int = 0,
    progress: Progress = silent,
    on_trial: Callable[[TrialReport], None] = lambda trial: None,
    should_stop: Callable[[], bool] | None = None,
) -> SweepReport:
    """Search settings with Optuna, and store the best; an unfinished sweep in ``out`` is continued.

    Proposals come from the tree-structured Parzen estimator (Bergstra et al. 2011); the first trial is the plan itself, if it
    lies within ``over``. Settings are not repeated; the sweep ends early when all combinations were tried. With one job, an
    interrupted sweep proposes the same as an uninterrupted one.

    Options are as in ``sweep --help``; ``table`` is as ``train`` takes it. After ``cpu_minutes`` no training begins, and
    running trainings end after their epoch. ``pruning`` stops trials, after the first four, that are worse than the median at
    the same epoch. ``progress`` is called for each trial as "train trial-0001", ``on_trial`` with each finished trial,
    ``should_stop`` between messages (default: whether a signal came).

    Raises ConfigError: a bad table, an unknown key, no Optuna, or a sweep of other settings. Raises DataError, CheckpointError:
    of a trial. Raises TrainingError: a process died. A diverging training is a failed trial."""
    if (trials is None) == (cpu_minutes is None):
        raise ConfigError(
            f"a sweep has one budget: trials or cpu_minutes; given trials={trials} and cpu_minutes={cpu_minutes}; leave one out"
        )
    import_optuna()
    engine_of(engine)
    out, spaces = Path(out), read_spaces(over)
    whole = {slot: dict(keys) for slot, keys in table.items() if slot != "claim"}
    whole["run"] = {"threads": 1, **whole.get("run", {})}
    for space in spaces:
        for value in space.values:
            read_plan(apply_overrides(whole, overrides_of({space.key: value})), f"--over {space.key}={value}")
    first = overrides_of({space.key: space.values[0] for space in spaces if space.values})
    sources_of(read_plan(apply_overrides(whole, first), "the plan"))  # what every trial lacks is told before there is a folder
    budget = _trials(trials) if trials is not None else f"{cpu_minutes:g} CPU minutes"
    said = {"table": whole, "over": list(over), "seed": seed, "pruning": pruning, "budget": budget}
    _check_same(out, said)
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        held.enter_context(sole_command(out, "sweep", ConfigError))
        asked_to_stop = should_stop or held.enter_context(stop_signals(patient=True))
        replace_file(out / SETTINGS, to_json(said))
        seconds = None if cpu_minutes is None else 60 * cpu_minutes
        study = Study(out, whole, spaces, seed=seed, trials=trials, cpu_seconds=seconds, pruning=pruning)
        stopped = study.run(jobs, engine, progress, asked_to_stop, on_trial)
    found = study.reports()
    report = SweepReport(
        out=str(out),
        budget=budget,
        metric=study.metric_name(),
        cpu_minutes=study.spent() / 60,
        trials=tuple(found),
        best=str(out / BEST) if found and found[0].valid is not None else None,
        stopped=stopped,
        exhausted=study.is_exhausted(),
    )
    if report.best is not None:
        plan = apply_overrides(whole, overrides_of(found[0].settings))
        plan["run"] = {key: value for key, value in plan["run"].items() if key not in ("threads", "device")}
        text = toml_text({slot: keys for slot, keys in plan.items() if keys or slot != "run"})
        told = f"trial {found[0].number}, validation {report.metric} {found[0].figure}"
        replace_file(out / BEST, f"# Best of {report.num_trials} of a sweep: {told}.\n{text}\n".encode())
    replace_file(out / REPORT, report.model_dump_json(indent=1).encode() + b"\n")
    return report


def _trials(number: int) -> str:
    return f"{number} trial{'' if number == 1 else 's'}"


def _check_same(out: Path, said: Mapping[str, Any]) -> None:
    """Refuse to continue a sweep with other settings (except the budget). Raises ConfigError: they differ, or the folder has
    other content. Raises DataError: the study has no settings."""
    path = out / SETTINGS
    if not path.is_file():
        if (out / STUDY).exists():
            raise DataError(
                f"{path} is missing beside {STUDY}, so the settings of the sweep are unknown; choose another --out, or delete "
                f"{out}"
            )
        if out.exists() and (not out.is_dir() or any(entry.name != ".lock" for entry in out.iterdir())):
            raise ConfigError(f"{out} holds files that sweep did not write; choose another --out, or empty it")
        return
    stored = read_object(path, lambda why: DataError(f"{why}; choose another --out, or delete {out}"))
    if lacking := [key for key in said if key not in stored]:
        raise DataError(f"{path} lacks {', '.join(lacking)}; it was changed; choose another --out, or delete {out}")
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
