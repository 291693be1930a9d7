"""``sememekit cluster-update``: an E-step on a trained model, which reassigns its word clusters, and an M-step after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sememekit.commands._exit import STOPPED
from sememekit.commands._options import Device, Dtype, EvaluationData, Json, Quiet, Run, Split, Which, WhichName, option
from sememekit.commands._printing import hint, print_fields, print_json, print_table, remark
from sememekit.commands._progress import progress_bars
from sememekit.commands.train import train
from sememekit.errors import ConfigError
from sememekit.figures import percent
from sememekit.files import typed
from sememekit.progress import Progress, silent

if TYPE_CHECKING:
    from sememekit.decoders.base import ClusterLearner
    from sememekit.runs.cluster_update import ClusterUpdateReport
    from sememekit.runs.run import Run as LoadedRun
    from sememekit.runs.train_report import TrainReport
    from sememekit.tasks.writing import Predictor
    from sememekit.training import Report

EXAMPLES = ("sememekit cluster-update runs/words --out runs/words-2",)


def command(
    run: Run,
    which: Which = "best",
    epochs: Annotated[int, option("--epochs", "Epochs of further training with the new clusters fixed.", min=0)] = 0,
    running_passes: Annotated[
        int, option("--running-passes", "Passes over the text that update the running mean; 0 computes the exact mean.", min=0)
    ] = 0,
    out: Annotated[Path | None, option("--out", "A new run folder for the result; without it RUN is changed.")] = None,
    split: Split = "valid",
    data: EvaluationData = None,
    device: Device = "auto",
    dtype: Dtype = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Assign the words of a trained model to its clusters anew from its training text (E-step), and train it on (M-step).

    Without --epochs no weight changes, and the perplexity usually gets worse: the vectors have not followed. Without --out the
    checkpoint is replaced, atomically. train --resume goes on from either, and with an M-step that was stopped.
    """
    from sememekit.training import StepReport

    with progress_bars(quiet) as show:

        def on_report(report: Report) -> None:
            if isinstance(report, StepReport):
                show(f"epoch {report.epoch}", report.batch, report.num_batches)

        result = cluster_update(
            run,
            epochs=epochs,
            running_passes=running_passes,
            out=out,
            split=split,
            data=data,
            device=device,
            dtype=dtype,
            which=which,
            progress=show,
            on_report=on_report,
        )
    if json:
        print_json(result)
    else:
        _print_update(run, result)
    if result.orphaned_words:
        remark(
            f"{result.orphaned_words} words were put into the least loaded cluster, since every cluster was full; to "
            "make room, raise decoder.gamma or decoder.frequency_budget",
            quiet,
        )
    if result.objective_fell:
        remark(f"warning: {_told_of_fall(run, result, out)}", quiet)
    again = typed("sememekit", "train", "--out", result.written, "--resume")
    if result.stopped:
        remark(f"stopped by a signal; go on with: {again}", quiet=False)
        raise typer.Exit(STOPPED)
    if not epochs:
        hint(f"next: {again} --set schedule.epochs=N, to train on", quiet)


def _told_of_fall(run: Path, result: ClusterUpdateReport, out: Path | None) -> str:
    numbers = f"from {result.objective_before:.4f} to {result.objective_after:.4f} bits"
    kept = (
        f"{run} is as it was: go on with it, or compare both after training {out} on"
        if out is not None
        else f"{run} has them now: train it on and compare with the perplexity before; --out NEW_RUN keeps the old ones"
    )
    exact = "; without --running-passes the mean is exact" if result.statistics == "running" else ""
    return f"the new clusters are worse by Eq. (7) on the training text, which fell {numbers}; {kept}{exact}"


def _print_update(run: Path, result: ClusterUpdateReport) -> None:
    steps = [("before", result.before), ("new clusters", result.after), ("trained on", result.trained)]
    columns = [(name, values) for name, values in steps if values is not None]
    rows = [
        (name.replace("_", " "), *(getattr(values, name) for _, values in columns))
        for name in ("perplexity", "cluster_perplexity", "in_cluster_perplexity")
    ]
    print_table(f"Clusters of {run}, on {result.split}", ("", *(name for name, _ in columns)), rows)
    moved = {
        "words moved": percent(result.moved_words, 2),
        "text that they are": percent(result.moved_frequency, 2),
    }
    objective = {"objective, bits (Eq. 7)": f"{result.objective_before:.4f} -> {result.objective_after:.4f}"}
    trained = ("epochs_trained", "best_epoch", "finished") if result.trained else ()
    names = ("statistics", "tokens_read", "num_clusters", "empty_clusters", "largest_cluster", *trained)
    written = {"written": f"{result.written} ({result.new_checkpoint})"}
    print_fields("", objective | moved | {name: getattr(result, name) for name in names} | written)


def cluster_update(
    run: Path,
    *,
    epochs: int = 0,
    running_passes: int = 0,
    out: Path | None = None,
    split: str = "valid",
    data: Path | None = None,
    device: str = "auto",
    dtype: str | None = None,
    which: WhichName = "best",
    progress: Progress = silent,
    on_report: Callable[[Report], None] = lambda report: None,
) -> ClusterUpdateReport:
    """Assign the words of a run to clusters anew by its training text (E-step), keep the result, and train it on (M-step).

    E-step: q(w, c) is the mean of log2 p(c | h) over all occurrences of w in the training text, Eq. (8) of Shen et al. 2017,
    without dropout and with the weights as they are; with ``running_passes`` each occurrence moves the q that training left by
    Eq. (9) instead. Words that do not occur keep their q. Then Algorithm 1 runs once. It optimises p(C(w) | h) alone, Eq. (7),
    so the perplexity gets worse until the vectors have followed. It is greedy and its clusters are bounded, so Eq. (7) can get
    worse, too (``objective_fell``); the new clusters are kept all the same. M-step: ``epochs`` more epochs of the run's own
    training with the clusters fixed.

    Without ``out`` a new snapshot is written whole, and then "best" and "last" mean it where they meant the old one. With
    ``out`` the run stays as it is, and the new folder appears by one rename. A killed M-step goes on with ``train --resume``.
    Arguments as ``sememekit cluster-update --help``; ``on_report`` is called with each report of the M-step.

    Raises:
        CheckpointError: no run, a torn one, or ``out`` is taken.
        ConfigError: the run learns no clusters, or the M-step would drop a later snapshot.
        DataError: the data are absent, lack a split, or have another vocabulary.
    """
    from sememekit.runs.cluster_update import (
        ClusterUpdateReport,
        e_step,
        keep_clusters,
        measure_clusters,
        training_state,
    )
    from sememekit.runs.run import Run as LoadedRun
    from sememekit.tasks.writing import predictor
    from sememekit.training.metrics import CLUSTER_UPDATE

    loaded, task, decoder = _opened(run, epochs, running_passes, out, which=which, device=device, dtype=dtype)
    prepared = loaded.data(data)
    prepared.tokens(split), prepared.tokens("train")  # a missing split is an error before the long reading
    with loaded.autocast():
        before = measure_clusters(task, prepared, split, partial(progress, "before"))
        done = e_step(task, decoder, prepared, running_passes, progress)
        after = measure_clusters(task, prepared, split, partial(progress, "after"))
        known = split == "valid" and task.metric.name == "perplexity"
        valid_metric = after.perplexity if known else task.evaluate(prepared, "valid")[task.metric.name]
    state, target_epochs, steps = training_state(loaded, prepared, valid_metric, epochs, alone=out is not None)
    decoder.freeze_clusters(steps)
    statistics: Literal["running", "exact"] = "running" if running_passes else "exact"
    objectives = {"objective_before": done.objective_before, "objective_after": done.objective_after}
    values = {**asdict(done.change), **after.model_dump(), **objectives}
    record = {"kind": CLUSTER_UPDATE, "split": split, "statistics": statistics, "values": values}
    where, name = keep_clusters(loaded, task, state, record, out, target_epochs if epochs else 0)
    report = ClusterUpdateReport(
        run=str(run),
        checkpoint=loaded.snapshot,
        written=str(where),
        new_checkpoint=name,
        statistics=statistics,
        tokens_read=done.tokens_read,
        split=split,
        before=before,
        after=after,
        num_clusters=decoder.num_clusters,
        objective_fell=done.objective_after < done.objective_before,
        **objectives,
        **asdict(done.change),
    )
    if not epochs:
        return report
    changed: dict[str, Any] = {} if data is None else {"data": {"path": str(data)}}
    changed |= {} if device == "auto" else {"run": {"device": device}}
    trained = _train_on(where, loaded, changed, target_epochs, on_report)
    best = LoadedRun.open(where, device=device, dtype=dtype)
    with best.autocast():
        measured = measure_clusters(predictor(best.task, "cluster-update"), prepared, split, partial(progress, "trained"))
    return report.model_copy(
        update={
            "new_checkpoint": best.snapshot,
            "trained": measured,
            "epochs_trained": trained.epochs - (target_epochs - epochs),
            "best_epoch": trained.best_epoch,
            "finished": trained.finished,
            "stopped": trained.stopped,
        }
    )


def _opened(
    run: Path, epochs: int, running_passes: int, out: Path | None, *, which: WhichName, device: str, dtype: str | None
) -> tuple[LoadedRun, Predictor, ClusterLearner]:
    """The run, its task and its decoder; CheckpointError and ConfigError as ``cluster_update``."""
    from sememekit.decoders.base import ClusterLearner
    from sememekit.runs.run import Run as LoadedRun
    from sememekit.tasks.writing import predictor

    if running_passes < 0 or epochs < 0:
        name, value = ("running-passes", running_passes) if running_passes < 0 else ("epochs", epochs)
        raise ConfigError(f"cluster-update: --{name} {value} is below 0; give 0 or more")
    loaded = LoadedRun.open(run, which=which, device=device, dtype=dtype)
    task = predictor(loaded.task, "cluster-update")
    decoder = task.decoder
    if not isinstance(decoder, ClusterLearner):
        name = loaded.plan.table()["decoder"]["name"]
        raise ConfigError(
            f"cluster-update: the decoder {name!r} of {run} learns no word clusters; train one that does: sememekit train "
            f"--decoder self_organized --data {loaded.plan.data.path or 'DIR'} --out RUN"
        )
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"cluster-update: {out} exists already; choose another --out, or leave it out to change {run} itself")
    pointer = loaded.folder.pointer()
    if epochs and out is None and pointer.get("last") != loaded.snapshot:
        raise ConfigError(
            f"cluster-update: training on from {loaded.snapshot} would delete the later {pointer.get('last')} of {run}; keep "
            "both with --out NEW_RUN, or begin with the later one: --which last"
        )
    return loaded, task, decoder


def _train_on(
    where: Path, loaded: LoadedRun, changed: dict[str, Any], last_epoch: int, on_report: Callable[[Report], None]
) -> TrainReport:
    """The M-step, as ``train --resume`` would do it, up to ``last_epoch``; the run's own schedule may be longer."""
    from sememekit.training import RunFolder

    report = train({"schedule": {"epochs": last_epoch}, **changed}, where, resume=True, on_report=on_report)
    planned = loaded.plan.schedule.epochs
    if planned > last_epoch and not report.stopped:
        folder = RunFolder.open(where)
        folder.replace_plan({**folder.plan, "schedule": {**folder.plan["schedule"], "epochs": planned}})
    return report
