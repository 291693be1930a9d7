"""``sememekit cluster-update``: one E-step on a trained model, its word clusters assigned anew, and the M-step after it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from sememekit.commands.train import TrainReport, train
from sememekit.config import Record
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import ClusterLearner
from sememekit.errors import ConfigError
from sememekit.files import sync_folder
from sememekit.measure.scored import tallies
from sememekit.progress import Progress
from sememekit.runs.run import Run, Which
from sememekit.tasks.writing import Predictor, predictions, predictor
from sememekit.training import Report, RunFolder
from sememekit.training.checkpoint import step_of
from sememekit.training.trainer import order_of_epoch


class ClusterPerplexities(Record):
    """Eq. (5) and (6) of Shen et al. 2017 on a text; ``perplexity`` is their product."""

    perplexity: float
    cluster_perplexity: float
    in_cluster_perplexity: float


class ClusterUpdateReport(Record):
    """What assigning the words of a run anew did, and what training on did after it.

    Attributes:
        run, checkpoint: the run folder and the snapshot that was read.
        written: the run folder that has the new clusters, and ``new_checkpoint``, its best snapshot at the end.
        statistics: "exact" for the mean of Eq. (8), "running" for that of Eq. (9).
        tokens_read: predicted tokens of the training text, each time it was read.
        objective_before, objective_after: Eq. (7), mean over the training text of log2 p(C(w) | h), in bits: higher is better.
        split: the text of ``before``, ``after`` and ``trained``.
        before, after: with the old clusters and with the new ones, the weights being the same.
        trained: of the best snapshot after the M-step, where ``epochs`` were asked for.
        epochs_trained: epochs of the M-step that were done.
        best_epoch: the epoch of the best snapshot; that before the M-step where none of its epochs was better.
        finished: why the M-step ended.
        stopped: whether a signal ended it; ``train --resume`` goes on with it.
        moved_words, moved_frequency: share of the words that changed their cluster, and of the text that they are.
        homeless_words: words that found no open cluster and went to the least loaded one.
        num_clusters, empty_clusters, largest_cluster: the new clusters.
    """

    run: str
    checkpoint: str
    written: str
    new_checkpoint: str
    statistics: Literal["exact", "running"]
    tokens_read: int
    objective_before: float
    objective_after: float
    split: str
    before: ClusterPerplexities
    after: ClusterPerplexities
    trained: ClusterPerplexities | None = None
    epochs_trained: int = 0
    best_epoch: int = 0
    finished: str = ""
    stopped: bool = False
    moved_words: float
    moved_frequency: float
    homeless_words: int
    num_clusters: int
    empty_clusters: int
    largest_cluster: int


@dataclass
class _Sums:
    """Sums of log2 p(c | h) over the occurrences of each word (V, C), and how many these were (V,), in float64 on the CPU."""

    bits: Tensor
    counts: Tensor

    def objective(self, decoder: ClusterLearner) -> float:
        """Eq. (7): the mean over all occurrences of the bits of the word's own cluster."""
        cluster_of = decoder.clusters()
        assert cluster_of is not None
        own = self.bits.gather(1, cluster_of.cpu()[:, None]).sum()
        return float(own / self.counts.sum())


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
    progress: Progress = lambda stage, done, total: None,
    on_report: Callable[[Report], None] = lambda report: None,
) -> ClusterUpdateReport:
    """Take q over the training text, assign the words anew, keep the model with its new clusters, and train it on.

    E-step: q(w, c) is the mean of log2 p(c | h) over all occurrences of w in the training text, Eq. (8) of Shen et al. 2017,
    without dropout and with the weights as they are: one reading. Words that do not occur keep their q. Then Algorithm 1 runs
    once. It optimises p(C(w) | h) alone, Eq. (7); the words of a new cluster have never been told apart, so the perplexity gets
    worse until the vectors have followed. M-step: ``epochs`` more epochs of the run's own training with the clusters held.

    Without ``out`` the snapshot is replaced: a new one with the same state of training is written whole, and only then
    do "best" and "last", as far as they meant the old one, mean the new one. With ``out`` the run stays as it is, and the new
    folder appears by one rename. A killed M-step goes on with ``train --resume``, with the clusters held to its end.

    Args:
        run: the run folder.
        epochs: of the M-step; 0 assigns only.
        running_passes: read the training text so often and let each occurrence move the q that training left by Eq. (9);
            0 takes the exact mean.
        out: a new run folder for the result; absent or empty.
        split: the text that is measured before and after.
        data: prepared data in place of that of the training; it must have the same vocabulary.
        device, dtype, which: as in ``evaluate_ppl``.
        progress: called as (stage, done, total).
        on_report: called with each report of the M-step.

    Raises:
        CheckpointError: no run, a torn one, or ``out`` is taken.
        ConfigError: the run learns no clusters, or the M-step would drop a later snapshot.
        DataError: the data are absent, lack a split, or have another vocabulary.
    """
    if running_passes < 0 or epochs < 0:
        name, value = ("running-passes", running_passes) if running_passes < 0 else ("epochs", epochs)
        raise ConfigError(f"cluster-update: --{name} {value}: a number from 0 up is wanted")
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
            f"cluster-update: training on from {loaded.snapshot} would drop the later {pointer.get('last')} of {run}; keep "
            "both with --out NEW_RUN, or begin with the later one: --which last"
        )
    prepared = loaded.data(data)
    prepared.tokens(split), prepared.tokens("train")  # a missing split is told before the long reading
    with loaded.autocast():
        before = _measure(task, prepared, split, partial(progress, "before"))
        read = 0
        for number in range(1, running_passes):
            read += int(_gather(task, decoder, prepared, partial(progress, f"reading {number}"), move=True).counts.sum())
        last = partial(progress, f"reading {running_passes}" if running_passes else "reading")
        sums = _gather(task, decoder, prepared, last, move=running_passes > 0)
        read += int(sums.counts.sum())
        objective_before = sums.objective(decoder)
        if not running_passes:
            seen = sums.counts > 0
            decoder.know(sums.bits / sums.counts.clamp(min=1.0)[:, None], seen)
        change = decoder.reassign()
        objective_after = sums.objective(decoder)
        after = _measure(task, prepared, split, partial(progress, "after"))
        known = split == "valid" and task.headline.name == "perplexity"
        headline = after.perplexity if known else task.evaluate(prepared, "valid")[task.headline.name]
    state, target_epochs, steps = _state(loaded, prepared, headline, epochs)
    decoder.hold(steps)
    record = {
        "kind": "ClusterUpdate",
        "split": split,
        "statistics": "running" if running_passes else "exact",
        "values": {
            **asdict(change),
            **after.model_dump(),
            "objective_before": objective_before,
            "objective_after": objective_after,
        },
    }
    where, name = _keep(loaded, task, state, record, out)
    report = ClusterUpdateReport(
        run=str(run),
        checkpoint=loaded.snapshot,
        written=str(where),
        new_checkpoint=name,
        statistics="running" if running_passes else "exact",
        tokens_read=read,
        objective_before=objective_before,
        objective_after=objective_after,
        split=split,
        before=before,
        after=after,
        num_clusters=decoder.num_clusters,
        **asdict(change),
    )
    if not epochs:
        return report
    changed: dict[str, Any] = {} if data is None else {"data": {"path": str(data)}}
    changed |= {} if device == "auto" else {"run": {"device": device}}
    trained = _train_on(where, loaded, changed, target_epochs, on_report)
    best = Run.open(where, device=device, dtype=dtype)
    with best.autocast():
        measured = _measure(predictor(best.task, "cluster-update"), prepared, split, partial(progress, "trained"))
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


def _measure(task: Predictor, data: PreparedData, split: str, progress: Callable[[int, int], None]) -> ClusterPerplexities:
    whole, parts = tallies(predictions(task, data, split, progress))
    return ClusterPerplexities(
        perplexity=whole.perplexity,
        cluster_perplexity=parts["cluster"].perplexity,
        in_cluster_perplexity=parts["in_cluster"].perplexity,
    )


@torch.no_grad()
def _gather(
    task: Predictor, decoder: ClusterLearner, data: PreparedData, progress: Callable[[int, int], None], *, move: bool
) -> _Sums:
    """Read the training text as evaluation does and add up log2 p(c | h) by word; ``move`` lets it move q by Eq. (9), too."""
    size = len(data.vocabulary)
    sums = _Sums(torch.zeros(size, decoder.num_clusters, dtype=torch.float64), torch.zeros(size, dtype=torch.float64))
    for chunk in predictions(task, data, "train", progress):
        assert chunk.hidden is not None
        rows, words = chunk.hidden[chunk.mask], chunk.targets[chunk.mask]
        sums.bits.index_add_(0, words.cpu(), decoder.cluster_bits(rows).double().cpu())
        sums.counts += torch.bincount(words.cpu(), minlength=size)
        if move:
            decoder.observe(rows, words)
    return sums


def _state(loaded: Run, data: PreparedData, headline: float, epochs: int) -> tuple[dict[str, Any], int, int]:
    """The state of training beside the new model, the epoch that the M-step ends with, and its steps.

    What the snapshot was worth is no longer true: its value on validation is that of the new clusters.
    """
    pointer = loaded.folder.pointer()
    which: Literal["best", "last"] = "best" if pointer.get("best") == loaded.snapshot else "last"
    state = loaded.folder.load(which, with_trainer=True).trainer
    stand = dict(state["progress"])
    if which == "best":
        stand["best"] = headline
    done = stand["epoch"] if stand["finished"] else stand["epoch"] - 1
    steps = 0
    if epochs:
        stand.update(epoch=done + 1, finished="", since_best=0)
        orders = [order_of_epoch(loaded.plan.run.seed, epoch) for epoch in range(done + 1, done + epochs + 1)]
        steps = sum(loaded.task.num_batches(data, order) for order in orders) - stand["batch"]
    return {**state, "progress": stand}, done + epochs, steps


def _keep(loaded: Run, task: Predictor, state: dict[str, Any], record: dict[str, Any], out: Path | None) -> tuple[Path, str]:
    """Write the changed model with a state of training, in its run or as a run of its own; the folder and the snapshot.

    A run of its own is built in a hidden folder beside ``out`` and appears by one rename, so that no part of it is ever there.
    """
    source, step = loaded.folder, step_of(loaded.snapshot)
    if out is None:
        with source.locked():
            name = source.revise(loaded.snapshot, task, state)
            source.append_metrics({**record, "step": step})
        return source.path, name
    hidden = out.with_name(f".{out.name}.partial")
    if hidden.exists():
        shutil.rmtree(hidden)
    files = source.kept()
    copy = RunFolder.create(hidden, source.plan, source.versions, files)
    for line in source.metrics():
        if line["step"] <= step:
            copy.append_metrics(line)
    copy.append_metrics({**record, "step": step})
    name = copy.save(step, task, state, best=True)
    sync_folder(hidden)
    hidden.replace(out)
    sync_folder(out.parent)
    return out, name


def _train_on(
    where: Path, loaded: Run, changed: dict[str, Any], last_epoch: int, on_report: Callable[[Report], None]
) -> TrainReport:
    """The M-step: the run goes on as ``train --resume`` would, up to ``last_epoch``; its own schedule may be longer."""
    report = train({"schedule": {"epochs": last_epoch}, **changed}, where, resume=True, on_report=on_report)
    planned = loaded.plan.schedule.epochs
    if planned > last_epoch and not report.stopped:
        folder = RunFolder.open(where)
        plan = {**folder.plan, "schedule": {**folder.plan["schedule"], "epochs": planned}}
        folder.replace_plan(plan)
    return report
