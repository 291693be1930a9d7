"""``sememekit sweep``: the settings of a training that are best on validation, within a stated budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from sememekit.commands._exit import STOPPED, fail_usage
from sememekit.commands._options import Engine, Json, Overrides, Quiet, Recipe, Seed, option
from sememekit.commands._printing import hint, print_json, print_table, remark, say
from sememekit.commands._progress import progress_bars
from sememekit.commands._typed_table import typed_table
from sememekit.commands.train import PLACES, VARIANTS
from sememekit.config import named_in, settings_typed_as_options
from sememekit.errors import ConfigError, TrainingError
from sememekit.files import typed
from sememekit.progress import Progress, silent
from sememekit.signals import stop_signals

if TYPE_CHECKING:
    from sememekit.runs.train_report import SweepReport, TrialReport

FORMER = settings_typed_as_options()
"""As of ``train``."""
NO_OPTIONS = {"--resume": "is no option of sweep: the same command goes on with the sweep in --out"}
"""What is typed as an option and is none, and what to do."""

EXAMPLES = (
    "sememekit sweep --data data/pd --out s --over encoder.dropout=0.1,0.3 --trials 2",
    "sememekit sweep --data d --out t --over optimizer.clip=0.1..2.0 --cpu-minutes 9",
)

SETTINGS: Final = "sweep.json"
BEST: Final = "best.toml"
REPORT: Final = "report.json"
JOBS: Final = 2


def command(
    recipe: Recipe = None,
    task: Annotated[str | None, option("--task", "Task (see train).", "task")] = None,
    encoder: Annotated[str | None, option("--encoder", "Encoder (see train).", "encoder")] = None,
    decoder: Annotated[str | None, option("--decoder", "Output layer (see train).", "decoder")] = None,
    data: Annotated[Path | None, option("--data", "Prepared data.")] = None,
    graph: Annotated[Path | None, option("--graph", "Sememe graph.")] = None,
    clusters: Annotated[Path | None, option("--clusters", "Word clusters.")] = None,
    out: Annotated[Path | None, option("--out", "Folder of the sweep; an unfinished sweep continues.")] = None,
    over: Annotated[
        list[str] | None,
        option(
            "--over",
            "What is tried: KEY=a,b,c, KEY=LOW..HIGH, or KEY=log:LOW..HIGH where the logarithm is drawn. May be repeated.",
            metavar="SLOT.KEY=VALUES",
        ),
    ] = None,
    overrides: Overrides = None,
    trials: Annotated[int | None, option("--trials", "Budget: trainings in all.", min=1)] = None,
    cpu_minutes: Annotated[float | None, option("--cpu-minutes", "Budget: CPU time of all trainings.", min=0.01)] = None,
    epochs: Annotated[int | None, option("--epochs", "Epochs of a training at most (schedule.epochs).", min=1)] = None,
    no_pruning: Annotated[bool, option("--no-pruning", "Disable pruning of trials worse than the median.")] = False,
    jobs: Annotated[int, option("--jobs", "Trainings at a time, with one thread each.", min=1)] = JOBS,
    engine: Engine = "local",
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search the settings that are best on validation, within a budget. Test data are never read.

    Each trial is a run folder, OUT/trial-0001 and so on. No settings are tried twice: where all combinations of values were
    tried the sweep ends, whatever is left of its budget. The best settings are written to OUT/best.toml, a recipe for train.
    The same command goes on with a sweep that was stopped; only its budget may change. Where all trials failed the exit code
    is 1.
    """
    if out is None:
        fail_usage("missing option '--out': the folder of the sweep")
    if not over:
        fail_usage("missing option '--over': what is tried, such as optimizer.learning_rate=log:0.5..40")
    if (trials is None) == (cpu_minutes is None):
        fail_usage(f"a budget is needed, --trials or --cpu-minutes; {'neither is' if trials is None else 'both are'} given")
    table = typed_table({**locals(), "seed": None}, PLACES, VARIANTS)
    if epochs is not None:
        table["schedule"] = {**table.get("schedule", {}), "epochs": epochs}

    def show(trial: TrialReport) -> None:
        hint(f"trial {trial.number}: {trial.state}, {_figure(trial.valid)}; {_settings(trial)}", quiet)

    with progress_bars(quiet) as progress, stop_signals(patient=True, lasting=True) as asked_to_stop:
        report = sweep(
            table,
            out,
            over,
            trials=trials,
            cpu_minutes=cpu_minutes,
            pruning=not no_pruning,
            jobs=jobs,
            engine=engine,
            seed=seed,
            progress=progress,
            on_trial=show,
            should_stop=asked_to_stop,
        )
    if json:
        print_json(report)
    else:
        _print(report)
    if report.stopped:
        remark("stopped by a signal; type the same command to go on", quiet=False)
        raise typer.Exit(STOPPED)
    if report.trials and all(trial.state == "failed" for trial in report.trials):
        raise _all_failed(report)
    trusting = ["--trust-code"] * any(":" in name for name in named_in(table).values())
    again = typed("sememekit", "train", "--recipe", str(report.best), "--out", "RUN", *trusting)
    hint(f"next: {again}", quiet or report.best is None)


def sweep(
    table: Mapping[str, Any],
    out: Path,
    over: Sequence[str],
    *,
    trials: int | None = None,
    cpu_minutes: float | None = None,
    pruning: bool = True,
    jobs: int = JOBS,
    engine: str = "local",
    seed: int = 0,
    progress: Progress = silent,
    on_trial: Callable[[TrialReport], None] = lambda trial: None,
    should_stop: Callable[[], bool] | None = None,
) -> SweepReport:
    """Train with settings that Optuna proposes, and keep the best; goes on with what is in ``out``.

    Proposals are those of the tree-structured Parzen estimator (Bergstra et al. 2011); the first trial is the plan as it is,
    where that lies within ``over``. Settings are not tried twice; where all combinations of values were, the sweep ends before
    its budget is spent. With one job, a sweep that was interrupted proposes the same as one that was not.

    Args:
        table: slot -> keys, as ``train`` takes it.
        out: the folder of the sweep.
        over: what is tried, as ``--over`` takes it.
        trials: the budget, in trainings; or
        cpu_minutes: in CPU time, after which no training begins and those at hand end with their epoch.
        pruning: whether a trial ends that is worse than the median of the others at its epoch, after four trials.
        jobs: trainings at a time.
        engine: where they run, as ``--engine`` takes it.
        seed: of the proposals.
        progress: told of each trial as "train trial-0001".
        on_trial: told each trial that ended.
        should_stop: read between messages; signals tell it unless given.

    Raises ConfigError: a bad table, a key that there is not, no Optuna, or a folder with a sweep of other settings. Raises
    DataError, CheckpointError: of a trial. Raises TrainingError: a process died. A training that diverges is a trial that
    failed."""
    from sememekit.commands.sweeping.space import overrides_of, read_spaces
    from sememekit.commands.sweeping.study import Study, check_same, import_optuna
    from sememekit.config import apply_overrides
    from sememekit.engines.base import engine_of
    from sememekit.files import replace_file, sole_writer, to_json
    from sememekit.runs.plan import read_plan

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
    budget = _trials(trials) if trials is not None else f"{cpu_minutes:g} CPU minutes"
    said = {"table": whole, "over": list(over), "seed": seed, "pruning": pruning, "budget": budget}
    check_same(out, said, SETTINGS)
    out.mkdir(parents=True, exist_ok=True)
    seconds = None if cpu_minutes is None else 60 * cpu_minutes
    with ExitStack() as held:
        held.enter_context(sole_writer(out / ".lock", lambda holder: _busy(out, holder)))
        asked_to_stop = should_stop or held.enter_context(stop_signals(patient=True))
        replace_file(out / SETTINGS, to_json(said))
        study = Study(out, whole, spaces, seed=seed, trials=trials, cpu_seconds=seconds, pruning=pruning)
        stopped = study.run(jobs, engine, progress, asked_to_stop, on_trial)
    report = _report(study, out, budget, stopped)
    if report.best is not None:
        replace_file(out / BEST, _recipe(whole, report).encode())
    replace_file(out / REPORT, report.model_dump_json(indent=1).encode() + b"\n")
    return report


def _busy(out: Path, holder: str) -> ConfigError:
    return ConfigError(f"{out} is being written by another sweep ({holder}); wait until it has ended, or choose another --out")


def _report(study: Any, out: Path, budget: str, stopped: bool) -> SweepReport:
    from sememekit.runs.train_report import SweepReport

    found = study.reports()
    return SweepReport(
        out=str(out),
        budget=budget,
        metric=study.metric_name(),
        cpu_minutes=study.spent() / 60,
        trials=tuple(found),
        best=str(out / BEST) if found and found[0].valid is not None else None,
        stopped=stopped,
        exhausted=study.is_exhausted(),
    )


def _recipe(table: Mapping[str, Any], report: SweepReport) -> str:
    """The best settings as a recipe; threads and devices are for who trains with it."""
    from sememekit.commands.recipes import toml_text
    from sememekit.commands.sweeping.space import overrides_of
    from sememekit.config import apply_overrides

    best = report.trials[0]
    plan = apply_overrides(table, overrides_of(best.settings))
    plan["run"] = {key: value for key, value in plan["run"].items() if key not in ("threads", "device")}
    if not plan["run"]:
        del plan["run"]
    figure = f"validation {report.metric} {_figure(best.valid)}"
    return f"# Best of {_trials(len(report.trials))} of a sweep: trial {best.number}, {figure}.\n{toml_text(plan)}\n"


def _print(report: SweepReport) -> None:
    figure = "validation" if report.metric == "validation" else f"validation {report.metric}"
    columns = ("trial", figure, "epochs", "CPU s", "ended", "settings")
    rows = [
        (
            str(trial.number),
            trial.valid,
            trial.epochs,
            round(trial.cpu_seconds),
            f"{trial.state}: {trial.why}" if trial.why else trial.state,
            _settings(trial),
        )
        for trial in report.trials
    ]
    print_table(f"Sweep: {report.out}, budget {report.budget}", columns, rows)
    tried = ", all combinations of --over" if report.exhausted else ""
    spent = f"{_trials(len(report.trials))}{tried}, {report.cpu_minutes:.1f} CPU minutes"
    say(f"{spent}; best settings: {report.best or 'none yet'}")


def _all_failed(report: SweepReport) -> TrainingError:
    """Of a sweep without any figure: the reason that most of its trials have."""
    reason, times = Counter(trial.why or "it ended before its settings were drawn" for trial in report.trials).most_common(1)[0]
    number = len(report.trials)
    often = "" if times == number else f" (so {times} of them; {report.out}/{REPORT} has the others)"
    failed = "the only trial failed" if number == 1 else f"all {number} trials failed"
    return TrainingError(f"{report.out}: {failed}: {reason}{often}; change --over or --set, and choose another --out")


def _trials(number: int) -> str:
    return f"{number} trial{'' if number == 1 else 's'}"


def _settings(trial: TrialReport) -> str:
    shown = {key: f"{value:.4g}" if isinstance(value, float) else str(value) for key, value in trial.settings.items()}
    return ", ".join(f"{key}={value}" for key, value in shown.items())


def _figure(value: float | None) -> str:
    return "no figure" if value is None else f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}"
