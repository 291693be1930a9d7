"""``sememekit sweep``: search the training settings that are best on validation, within a budget."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sememekit.commands._options import Engine, Json, Overrides, Quiet, Recipe, Seed, fail_usage, option
from sememekit.commands._printing import hint, leave_stopped, print_json, print_table, say
from sememekit.commands._progress import progress_bars
from sememekit.commands._typed_table import typed_table
from sememekit.config import named_in, settings_typed_as_options
from sememekit.errors import TrainingError
from sememekit.files import typed
from sememekit.signals import stop_signals

if TYPE_CHECKING:
    from sememekit.jobs.study import TrialReport
    from sememekit.jobs.sweep import SweepReport

FORMER = settings_typed_as_options()  # as for ``train``
NO_OPTIONS = {"--resume": "is no option of sweep: the same command continues the sweep in --out"}
"""Foreign options -> what to type instead."""

EXAMPLES = (
    "sememekit sweep --data data/pd --out s --over encoder.dropout=0.1,0.3 --trials 2",
    "sememekit sweep --data d --out t --over optimizer.clip=0.1..2.0 --cpu-minutes 9",
)


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
        option("--over", "Values: KEY=a,b,c, KEY=LOW..HIGH or KEY=log:LOW..HIGH; repeatable.", metavar="SLOT.KEY=VALUES"),
    ] = None,
    overrides: Overrides = None,
    trials: Annotated[int | None, option("--trials", "Budget: trainings in all.", min=1)] = None,
    cpu_minutes: Annotated[float | None, option("--cpu-minutes", "Budget: CPU time of all trainings.", min=0.01)] = None,
    epochs: Annotated[int | None, option("--epochs", "Epochs of a training at most (schedule.epochs).", min=1)] = None,
    no_pruning: Annotated[bool, option("--no-pruning", "Disable pruning of trials worse than the median.")] = False,
    jobs: Annotated[int, option("--jobs", "Trainings at a time, with one thread each.", min=1)] = 2,
    engine: Engine = "local",
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search the settings that are best on validation, within a budget. Test data are never read.

    Each trial is a run folder, OUT/trial-0001 and so on. No settings are tried twice: the sweep ends when all combinations are
    tried, even with budget left. OUT/best.toml has the best settings, as a recipe for train. The same command continues an
    interrupted sweep; only its budget may change. The exit code is 1 if all trials failed."""
    if out is None:
        fail_usage("missing option '--out': the folder of the sweep")
    if not over:
        fail_usage("missing option '--over': what is tried, such as optimizer.learning_rate=log:0.5..40")
    if (trials is None) == (cpu_minutes is None):
        fail_usage(f"a budget is needed, --trials or --cpu-minutes; {'neither is' if trials is None else 'both are'} given")
    values = {"data.path": data, "graph.path": graph, "clusters.path": clusters}
    table = typed_table(recipe, overrides, {"task": task, "encoder": encoder, "decoder": decoder}, values)
    if epochs is not None:
        table["schedule"] = {**table.get("schedule", {}), "epochs": epochs}

    from sememekit.jobs.sweep import sweep

    def show(trial: "TrialReport") -> None:
        hint(f"trial {trial.number}: {trial.state}, {trial.figure}; {_settings(trial)}", quiet)

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
    print_json(report) if json else _print(report)
    if report.stopped:
        leave_stopped("type the same command to go on")
    if report.trials and all(trial.state == "failed" for trial in report.trials):
        raise _all_failed(report)
    trusting = ["--trust-code"] * any(":" in name for name in named_in(table).values())
    again = typed("sememekit", "train", "--recipe", str(report.best), "--out", "RUN", *trusting)
    hint(f"next: {again}", quiet or report.best is None)


def _print(report: "SweepReport") -> None:
    figure = "validation" if report.metric == "validation" else f"validation {report.metric}"
    columns = ("trial", figure, "epochs", "CPU s", "ended", "settings")
    rows = []
    for trial in report.trials:
        ended = f"{trial.state}: {trial.why}" if trial.why else trial.state
        rows.append((str(trial.number), trial.valid, trial.epochs, round(trial.cpu_seconds), ended, _settings(trial)))
    print_table(f"Sweep: {report.out}, budget {report.budget}", columns, rows)
    tried = ", all combinations of --over" if report.exhausted else ""
    spent = f"{report.num_trials}{tried}, {report.cpu_minutes:.1f} CPU minutes"
    say(f"{spent}; best settings: {report.best or 'none yet'}")


def _all_failed(report: "SweepReport") -> TrainingError:
    """Return the error of a sweep without any figure: the most frequent reason of its trials."""
    reason, times = Counter(trial.why or "it ended before its settings were drawn" for trial in report.trials).most_common(1)[0]
    number = len(report.trials)
    often = "" if times == number else f" (so {times} of them; {report.out}/report.json has the others)"
    failed = "the only trial failed" if number == 1 else f"all {number} trials failed"
    return TrainingError(f"{report.out}: {failed}: {reason}{often}; change --over or --set, and choose another --out")


def _settings(trial: "TrialReport") -> str:
    shown = {key: f"{value:.4g}" if isinstance(value, float) else str(value) for key, value in trial.settings.items()}
    return ", ".join(f"{key}={value}" for key, value in shown.items())
