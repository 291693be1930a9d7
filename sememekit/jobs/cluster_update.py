"""Reassign the word clusters of a trained model (E-step), and continue its training (M-step)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sememekit.decoders.base import ClusterLearner
from sememekit.errors import ConfigError
from sememekit.jobs.train import train
from sememekit.progress import Progress, silent
from sememekit.runs.cluster_update import ClusterUpdateReport, e_step, keep_clusters, measure_clusters, training_state
from sememekit.runs.run import Run, Which
from sememekit.tasks.writing import Predictor, predictor
from sememekit.training import Report, RunFolder
from sememekit.training.metrics import CLUSTER_UPDATE


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
    which: Which = "best",
    progress: Progress = silent,
    on_report: Callable[[Report], None] = lambda report: None,
) -> ClusterUpdateReport:
    """Reassign the words of a run to clusters by its training text (E-step), store the result, and continue training (M-step).

    E-step: q(w, c) is the mean of log2 p(c | h) over all occurrences of w in the training text, Eq. (8) of Shen et al. 2017,
    without dropout and with the present weights. With ``running_passes`` each occurrence updates the stored q by Eq. (9)
    instead. Words that do not occur keep their q. Then Algorithm 1 runs once. It optimises only p(C(w) | h), Eq. (7), so the
    perplexity gets worse until the vectors adapt. As it is greedy with bounded clusters, Eq. (7) can get worse, too
    (``objective_fell``); the new clusters are kept anyway. M-step: ``epochs`` more epochs of the run's training with fixed
    clusters.

    Without ``out`` a new snapshot replaces the old one as "best" or "last" atomically. With ``out`` the run does not change,
    and the new folder appears by one rename. ``train --resume`` continues a killed M-step. Arguments as ``sememekit
    cluster-update --help``; ``on_report`` is called with each report of the M-step.

    Raises:
        CheckpointError: no run, a torn one, or ``out`` is taken.
        ConfigError: the run learns no clusters, or the M-step would discard a later snapshot.
        DataError: the data are absent, lack a split, or have another vocabulary."""
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
    values = {**done.change._asdict(), **after.model_dump(), **objectives}
    record = {"kind": CLUSTER_UPDATE, "split": split, "statistics": statistics, "values": values}
    where, name = keep_clusters(loaded, task, state, record, out, target_epochs if epochs else 0)
    report = ClusterUpdateReport(
        **loaded.of_run,
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
        **done.change._asdict(),
    )
    if not epochs:
        return report
    changed: dict[str, Any] = {"schedule": {"epochs": target_epochs}} | ({} if data is None else {"data": {"path": str(data)}})
    changed |= {} if device == "auto" else {"run": {"device": device}}
    trained = train(changed, where, resume=True, on_report=on_report)
    planned = loaded.plan.schedule.epochs
    if planned > target_epochs and not trained.stopped:  # the run's schedule is longer
        folder = RunFolder.open(where)
        folder.replace_plan({**folder.plan, "schedule": {**folder.plan["schedule"], "epochs": planned}})
    best = Run.open(where, device=device, dtype=dtype)
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
    run: Path, epochs: int, running_passes: int, out: Path | None, *, which: Which, device: str, dtype: str | None
) -> tuple[Run, Predictor, ClusterLearner]:
    """The run, its task and its decoder; CheckpointError and ConfigError as ``cluster_update``."""
    if running_passes < 0 or epochs < 0:
        name, value = ("running-passes", running_passes) if running_passes < 0 else ("epochs", epochs)
        raise ConfigError(f"cluster-update: --{name} {value} is below 0; give 0 or more")
    loaded = Run.open(run, which=which, device=device, dtype=dtype)
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
