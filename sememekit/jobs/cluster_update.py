"""Reassign the word clusters of a trained model (E-step), and continue its training (M-step)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from sememekit.config import Record
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import ClusterChange, ClusterLearner
from sememekit.errors import ConfigError
from sememekit.jobs.train import train
from sememekit.measure.perplexity import perplexity_metrics
from sememekit.progress import OneStage, Progress, silent
from sememekit.runs.run import OfRun, Run, Which
from sememekit.tasks.writing import Predictor, predictions, predictor
from sememekit.training import Report, RunFolder
from sememekit.training.metrics import CLUSTER_UPDATE
from sememekit.training.snapshots import step_of
from sememekit.training.trainer import epoch_seed


class ClusterPerplexities(Record):
    """Eq. (5) and (6) of Shen et al. 2017 on a text; ``perplexity`` is their product."""

    perplexity: float
    cluster_perplexity: float
    in_cluster_perplexity: float


class ClusterUpdateReport(OfRun):
    """The effect of reassigning the words of a run to clusters, and of the training after it."""

    written: str
    """The run folder with the new clusters; ``new_checkpoint`` is its best snapshot at the end."""
    new_checkpoint: str
    statistics: Literal["exact", "running"]
    """"exact" for the mean of Eq. (8), "running" for the mean of Eq. (9), Shen et al. 2017."""
    tokens_read: int
    """Predicted tokens of the training text, summed over all readings."""
    objective_before: float
    objective_after: float
    """objective_before, objective_after: Eq. (7), mean over the training text of log2 p(C(w) | h), in bits: higher is better.
    Clusters without words have probability zero, so this is -log2 of the cluster perplexity of the training text."""
    objective_fell: bool
    """True if the new clusters are worse by Eq. (7) than the old ones."""
    split: str
    before: ClusterPerplexities
    after: ClusterPerplexities
    """before, after: perplexities on ``split`` with the old and the new clusters, by the same weights."""
    trained: ClusterPerplexities | None = None
    """Perplexities of the best snapshot after the M-step, if there were ``epochs``."""
    epochs_trained: int = 0
    best_epoch: int = 0
    """The epoch of the best snapshot; the last epoch before the M-step if the M-step did not improve it."""
    finished: str = ""
    """Reason why the M-step ended."""
    stopped: bool = False
    """True if a signal ended it; ``train --resume`` continues it."""
    moved_words: float
    moved_frequency: float
    """moved_words, moved_frequency: share of words that changed their cluster, and the share of tokens of these words."""
    orphaned_words: int
    """Words that were put into the least loaded cluster, since no cluster was open."""
    num_clusters: int
    empty_clusters: int
    largest_cluster: int


@dataclass
class _ClusterBits:
    """Sums over the occurrences of words in the training text, in float64 on the CPU."""

    bits: Tensor  # (V, C) log2 p(c | h) over the occurrences of each word, for all clusters, empty ones included
    counts: Tensor  # (V,) the number of occurrences
    filled: Tensor  # (C,) which clusters have words
    filled_bits: float = 0.0  # log2 of the total probability of the filled clusters, summed over all occurrences

    def objective(self, decoder: ClusterLearner) -> float:
        """Eq. (7): the mean over all occurrences of the bits of the word's own cluster among the filled ones."""
        own = self.bits.gather(1, decoder.clusters().cpu()[:, None]).sum()
        return float((own - self.filled_bits) / self.counts.sum())


def _filled(decoder: ClusterLearner) -> Tensor:
    return torch.bincount(decoder.clusters().cpu(), minlength=decoder.num_clusters) > 0


def _bits_of_filled(bits: Tensor, filled: Tensor) -> float:
    """Return log2 of the total probability of some clusters, from ``bits`` (N, C), summed over N."""
    return 0.0 if filled.all() else float((bits[:, filled] * math.log(2.0)).logsumexp(dim=1).sum()) / math.log(2.0)


def measure_clusters(task: Predictor, data: PreparedData, split: str, progress: OneStage) -> ClusterPerplexities:
    """Perplexity of a split and of its two terms."""
    found = perplexity_metrics(predictions(task, data, split, progress))
    return ClusterPerplexities(**{name: found[name] for name in ClusterPerplexities.model_fields})


def e_step(
    task: Predictor, decoder: ClusterLearner, data: PreparedData, running_passes: int, progress: Progress
) -> tuple[ClusterChange, int, dict[str, float]]:
    """Read the training text and reassign words to clusters: by the exact mean of Eq. (8), or, with ``running_passes`` over the
    text, by the running mean of Eq. (9), Shen et al. 2017. Return the change, ``tokens_read`` and the report's objectives."""
    read = 0
    for number in range(1, running_passes):
        read += int(_read_bits(task, decoder, data, partial(progress, f"reading {number}"), move=True).counts.sum())
    last = partial(progress, f"reading {running_passes}" if running_passes else "reading")
    sums = _read_bits(task, decoder, data, last, move=running_passes > 0)
    read += int(sums.counts.sum())
    before = sums.objective(decoder)
    if not running_passes:
        seen = sums.counts > 0
        decoder.set_cluster_statistics(sums.bits / sums.counts.clamp(min=1.0)[:, None], seen)
    change = decoder.reassign()
    _reread_filled(task, decoder, data, partial(progress, "reading again"), sums)
    return change, read, {"objective_before": before, "objective_after": sums.objective(decoder)}


@torch.no_grad()
def _read_bits(task: Predictor, decoder: ClusterLearner, data: PreparedData, progress: OneStage, *, move: bool) -> _ClusterBits:
    """Read the training text as in evaluation and sum log2 p(c | h) by word; with ``move`` also update q by Eq. (9)."""
    size = len(data.vocabulary)
    table, counts = (torch.zeros(*shape, dtype=torch.float64) for shape in ((size, decoder.num_clusters), (size,)))
    sums = _ClusterBits(table, counts, _filled(decoder))
    for chunk in predictions(task, data, "train", progress):
        assert chunk.hidden is not None
        rows, words = chunk.hidden[chunk.mask], chunk.targets[chunk.mask]
        bits = decoder.cluster_bits(rows).double().cpu()
        sums.bits.index_add_(0, words.cpu(), bits)
        sums.filled_bits += _bits_of_filled(bits, sums.filled)
        sums.counts += torch.bincount(words.cpu(), minlength=size)
        if move:
            decoder.observe(rows, words)
    return sums


@torch.no_grad()
def _reread_filled(
    task: Predictor, decoder: ClusterLearner, data: PreparedData, progress: OneStage, sums: _ClusterBits
) -> None:
    """Update ``sums`` for the clusters that have words now; the text is read again only if needed."""
    filled = _filled(decoder)
    if torch.equal(filled, sums.filled):
        return
    sums.filled, sums.filled_bits = filled, 0.0
    if filled.all():
        return
    for chunk in predictions(task, data, "train", progress):
        assert chunk.hidden is not None
        sums.filled_bits += _bits_of_filled(decoder.cluster_bits(chunk.hidden[chunk.mask]).double().cpu(), filled)


def training_state(
    loaded: Run, data: PreparedData, valid_metric: float, epochs: int, *, alone: bool
) -> tuple[dict[str, Any], int, int]:
    """Return the training state for the new model, the last epoch of the M-step, and its steps.

    The validation metric of the snapshot is replaced by the metric with the new clusters. In a new folder (``alone``) this
    snapshot counts as the best, since no other is copied."""
    which: Which = "best" if loaded.folder.pointer().get("best") == loaded.snapshot else "last"
    state = loaded.folder.load(which, with_trainer=True).trainer
    stand = dict(state["progress"])
    done = stand["epoch"] if stand["finished"] else stand["epoch"] - 1
    if which == "best":
        stand["best"] = valid_metric
    elif alone:
        stand.update(best=valid_metric, best_epoch=done, since_best=0)
    steps = 0
    if epochs:
        stand.update(epoch=done + 1, finished="", since_best=0)
        run = loaded.plan.run
        orders = [epoch_seed(run.seed, run.earlier_epochs + epoch) for epoch in range(done + 1, done + epochs + 1)]
        steps = sum(loaded.task.num_batches(data, order) for order in orders) - stand["batch"]
    return {**state, "progress": stand}, done + epochs, steps


def keep_clusters(
    loaded: Run, task: Predictor, state: dict[str, Any], record: dict[str, Any], out: Path | None, epochs: int = 0
) -> tuple[Path, str]:
    """Write the changed model with its training state, into its run or a new one; return folder and snapshot.

    The schedule of a new run ends after ``epochs`` (if above 0), so that ``train --resume`` ends a killed M-step there, too."""
    source, record = loaded.folder, {**record, "step": step_of(loaded.snapshot)}
    if out is None:
        with source.locked():
            source.forget_repeated_metrics()
            source.append_metrics(record)  # first, as the snapshot holds the hash of all lines
            name = source.revise(loaded.snapshot, task, state)
        return source.path, name
    plan = source.plan
    if epochs:
        plan = {**plan, "schedule": {**plan["schedule"], "epochs": epochs}}
    written = source.write_beside(
        out, plan, source.versions, source.kept(), loaded.snapshot, task, state, [record], check=Run.open
    )
    return out, written


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
    (``objective_fell``); the new clusters are kept anyway. M-step: ``epochs`` more epochs of training with fixed clusters.

    Without ``out`` a new snapshot replaces the old one as "best" or "last" atomically. With ``out`` the run does not change,
    and the new folder appears by one rename. ``train --resume`` continues a killed M-step. Arguments as ``sememekit
    cluster-update --help``; ``on_report`` is called with each report of the M-step.

    Raises CheckpointError: no run, a torn one, or ``out`` is taken. Raises ConfigError: the run learns no clusters, or the
    M-step would discard a later snapshot. Raises DataError: the data are absent, lack a split, or have another vocabulary."""
    loaded, task, decoder = _opened(run, epochs, running_passes, out, which=which, device=device, dtype=dtype)
    prepared = loaded.data(data)
    prepared.tokens(split), prepared.tokens("train")  # a missing split is an error before the long reading
    with loaded.autocast():
        before = measure_clusters(task, prepared, split, partial(progress, "before"))
        change, read, objectives = e_step(task, decoder, prepared, running_passes, progress)
        after = measure_clusters(task, prepared, split, partial(progress, "after"))
        known = split == "valid" and task.metric.name == "perplexity"
        valid_metric = after.perplexity if known else task.evaluate(prepared, "valid")[task.metric.name]
    state, target_epochs, steps = training_state(loaded, prepared, valid_metric, epochs, alone=out is not None)
    decoder.freeze_clusters(steps)
    statistics: Literal["running", "exact"] = "running" if running_passes else "exact"
    values = {**change._asdict(), **after.model_dump(), **objectives}
    record = {"kind": CLUSTER_UPDATE, "split": split, "statistics": statistics, "values": values}
    where, name = keep_clusters(loaded, task, state, record, out, target_epochs if epochs else 0)
    report = ClusterUpdateReport(
        **loaded.of_run,
        written=str(where),
        new_checkpoint=name,
        statistics=statistics,
        tokens_read=read,
        split=split,
        before=before,
        after=after,
        num_clusters=decoder.num_clusters,
        objective_fell=objectives["objective_after"] < objectives["objective_before"],
        **objectives,
        **change._asdict(),
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
    loaded.folder.metrics()  # lines that were changed are found before the long reading
    pointer = loaded.folder.pointer()
    if epochs and out is None and pointer.get("last") != loaded.snapshot:
        raise ConfigError(
            f"cluster-update: training on from {loaded.snapshot} would delete the later {pointer.get('last')} of {run}; keep "
            "both with --out NEW_RUN, or begin with the later one: --which last"
        )
    return loaded, task, decoder
