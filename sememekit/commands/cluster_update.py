"""``sememekit cluster-update``: one E-step on a trained model, its word clusters assigned anew from the training text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from sememekit.build import LoadedRun, load_run
from sememekit.commands.evaluate import _prepare, data_of_run
from sememekit.config import Settings
from sememekit.decoders.base import ClusterLearner
from sememekit.errors import ConfigError
from sememekit.tasks.base import WordPredictor, tallies, word_predictor
from sememekit.text.batching import evaluation_columns
from sememekit.training import RunFolder, autocast
from sememekit.training.checkpoint import step_of

Progress = Callable[[str, int, int | None], None]
ROWS = 70
"""Rows of the training text that are read at once: memory and speed only."""


class ClusterPerplexities(Settings):
    """Eq. (5) and (6) of Shen et al. 2017 on a text; ``perplexity`` is their product."""

    perplexity: float
    cluster_perplexity: float
    in_cluster_perplexity: float


class ClusterUpdateReport(Settings):
    """What assigning the words of a run anew did.

    Attributes:
        run, checkpoint: the run folder and the snapshot that was read.
        written: the run folder that has the new clusters, and ``new_checkpoint``, its snapshot with them.
        passes, tokens_read: how often the training text was read, and predicted tokens in all.
        split: the text of ``before`` and ``after``.
        moved_words, moved_frequency: share of the words that changed their cluster, and of the text that they are.
        homeless_words: words that found no open cluster and went to the least loaded one.
        num_clusters, empty_clusters, largest_cluster: the new clusters.
    """

    run: str
    checkpoint: str
    written: str
    new_checkpoint: str
    passes: int
    tokens_read: int
    split: str
    before: ClusterPerplexities
    after: ClusterPerplexities
    moved_words: float
    moved_frequency: float
    homeless_words: int
    num_clusters: int
    empty_clusters: int
    largest_cluster: int


def cluster_update(
    run: Path,
    *,
    passes: int = 1,
    out: Path | None = None,
    split: str = "valid",
    data: Path | None = None,
    device: str = "auto",
    dtype: str | None = None,
    which: Literal["best", "last"] = "best",
    progress: Progress = lambda stage, done, total: None,
) -> ClusterUpdateReport:
    """Gather q over the training text, assign the words anew, and keep the model with its new clusters.

    Every predicted token of the training text moves q by Eq. (9), without dropout and with the weights as they are; then
    Algorithm 1 runs once. No weight changes, so a converged model is usually a little worse right afterwards: its vectors were
    trained for the old clusters. Training goes on from there with ``train --resume`` or ``--from``.

    Without ``out`` the checkpoint is replaced: a new snapshot with the same state of training is written whole, and only then
    do "best" and "last", as far as they meant the old one, mean the new one. With ``out`` the run stays as it is.

    Args:
        run: the run folder.
        passes: how often the training text is read before the words are assigned; more forget older statistics.
        out: a new run folder for the result; absent or empty.
        split: the text that is measured before and after.
        data: prepared data in place of that of the training; it must have the same vocabulary.
        device, dtype, which: as in ``evaluate_ppl``.
        progress: called as (stage, done, total).

    Raises:
        CheckpointError: no run, a torn one, or ``out`` is taken.
        ConfigError: the run learns no clusters.
        DataError: the data are absent, lack a split, or have another vocabulary.
    """
    if passes < 1:
        raise ConfigError(f"cluster-update: the training text is read once at least, given --passes {passes}")
    loaded = load_run(run, which=which, device=device)
    task = word_predictor(loaded.task, "cluster-update")
    decoder = task.decoder
    if not isinstance(decoder, ClusterLearner):
        name = loaded.plan.table()["decoder"]["name"]
        raise ConfigError(
            f"cluster-update: the decoder {name!r} of {run} learns no word clusters; train one that does: sememekit train "
            f"--decoder self_organized --data {loaded.plan.data.path or 'DIR'} --out RUN"
        )
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"cluster-update: {out} exists already; choose another --out, or leave it out to change {run} itself")
    dtype = _prepare(loaded, device, dtype)
    prepared = data_of_run(loaded, data)
    text, judged = prepared.tokens("train"), prepared.tokens(split)
    with autocast(loaded.device, dtype):
        before = _measure(task, judged, partial(progress, "before"))
        tokens_read = 0
        for number in range(1, passes + 1):
            tokens_read += _observe(task, decoder, text, partial(progress, f"pass {number} of {passes}"))
        change = decoder.reassign()
        after = _measure(task, judged, partial(progress, "after"))
    target = loaded.folder if out is None else _copy(loaded, out)
    with target.locked():
        name = _keep(loaded, target, task)
    report = ClusterUpdateReport(
        run=str(run),
        checkpoint=loaded.snapshot,
        written=str(target.path),
        new_checkpoint=name,
        passes=passes,
        tokens_read=tokens_read,
        split=split,
        before=before,
        after=after,
        num_clusters=decoder.num_clusters,
        **asdict(change),
    )
    values = {**asdict(change), **after.model_dump()}
    target.append_metrics({"kind": "ClusterUpdate", "step": step_of(name), "split": split, "passes": passes, "values": values})
    return report


def _measure(task: WordPredictor, tokens: np.ndarray, progress: Callable[[int, int], None]) -> ClusterPerplexities:
    whole, parts = tallies(task.score(tokens, progress=progress))
    return ClusterPerplexities(
        perplexity=whole.perplexity,
        cluster_perplexity=parts["cluster"].perplexity,
        in_cluster_perplexity=parts["in_cluster"].perplexity,
    )


@torch.no_grad()
def _observe(task: WordPredictor, decoder: ClusterLearner, tokens: np.ndarray, progress: Callable[[int, int], None]) -> int:
    """Read a text as evaluation does and count each predicted token; how many there were."""
    inputs, targets, mask = evaluation_columns(tokens, task.evaluation_batch_size)
    state = task.encoder.start(inputs.shape[1])
    done = 0
    for begin in range(0, len(inputs), ROWS):
        part = slice(begin, begin + ROWS)
        hidden, state = task.contexts(torch.from_numpy(inputs[part]).to(task.device), state)
        counted = torch.from_numpy(mask[part]).to(task.device)
        decoder.observe(hidden[counted], torch.from_numpy(targets[part]).to(task.device)[counted])
        done += int(mask[part].sum())
        progress(done, len(tokens) - 1)
    return done


def _copy(loaded: LoadedRun, out: Path) -> RunFolder:
    """A run folder with the same plan and files, and no checkpoint yet."""
    source = loaded.folder
    files = {
        name: source.file(name).read_bytes()
        for name in ("vocabulary.tsv", "graph.json", "clusters.json", "sentencepiece.model", "data.json")
        if source.file(name).exists()
    }
    copy = RunFolder.create(out, source.plan, source.versions, files)
    for record in source.metrics():
        copy.append_metrics(record)
    return copy


def _keep(loaded: LoadedRun, target: RunFolder, task: WordPredictor) -> str:
    """Write the changed model beside the state of training that its snapshot has."""
    source = loaded.folder
    if target is source:
        return source.revise(loaded.snapshot, task)
    which: Literal["best", "last"] = "best" if source.pointer().get("best") == loaded.snapshot else "last"
    snapshot = source.load(which, with_trainer=True)
    step = step_of(snapshot.name)
    target.forget_metrics_after(step)
    return target.save(step, task, snapshot.trainer, best=True)
