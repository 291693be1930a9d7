"""``sememekit train``: from a recipe's table to a run folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from sememekit.config import Record, trusting_code
from sememekit.data.prepared import PreparedData
from sememekit.errors import CheckpointError, ConfigError
from sememekit.reports.run import report as write_report
from sememekit.runs.augment import FILE as AUGMENT_FILE
from sememekit.runs.augment import augmented
from sememekit.runs.build import (
    CLUSTERS,
    Plan,
    build_task,
    check_counts,
    check_plan_code,
    clusters_of,
    completed,
    data_of,
    graph_of,
    labels_of,
    load_weights,
    plan_of_run,
    prepare_torch,
    read_plan,
    remarks_on,
    run_files,
    stored_chunks,
    stored_clusters,
    versions,
    vocabulary_of_run,
)
from sememekit.sememes import SememeGraph
from sememekit.tasks.base import Task, is_label_predictor
from sememekit.tasks.vectors import VectorCoverage
from sememekit.text.vocabulary import Vocabulary
from sememekit.training import EpochReport, Report, RunFolder, StopReport, Trainer
from sememekit.training.checkpoint import Snapshot, write_run_manifest
from sememekit.training.manifest import MANIFEST
from sememekit.training.metrics import warn_of_lost_epochs
from sememekit.training.progress import ending_text
from sememekit.training.signals import stop_signals
from sememekit.training.tensorboard import TensorBoardLog
from sememekit.word_classes.file import read_clusters

MAY_CHANGE = (
    "schedule.epochs",
    "schedule.stop_after",
    "run.device",
    "run.threads",
    "run.report_every",
    "run.checkpoint_every",
    "run.stall_epochs",
    "data.path",
)
"""Settings that a resumed run may have otherwise than it began with."""

_CHECKED_BY_CONTENT = ("graph.path", "clusters.path")
"""Files that the run keeps a copy of: another path is fine, other content is not."""


class TrainReport(Record):
    """What a training command did.

    Attributes:
        run: the run folder.
        epochs: epochs done in all, earlier calls included.
        metric: the headline metric, such as "perplexity" or "accuracy".
        best_valid: best value of it on validation.
        best_epoch: the epoch of it.
        tokens_per_second: predictions of training a second over this call: tokens, or examples of a classifier.
        parameters: how many numbers are learnt, shared ones once.
        vectors: how much of the training text has a vector of the file, for tasks that begin with such a file.
        remarks: what was given and changes nothing in this model.
        finished: why training ended, or an empty string.
        stopped: whether a signal ended it, with a checkpoint to resume from.
    """

    model_config = ConfigDict(allow_inf_nan=True)  # runs of older versions may have diverged and yet be finished

    run: str
    epochs: int
    metric: str
    best_valid: float | None
    best_epoch: int
    tokens_per_second: float
    parameters: int
    vectors: VectorCoverage | None = None
    remarks: tuple[str, ...] = ()
    finished: str
    stopped: bool


def train(
    table: Mapping[str, Any],
    out: Path,
    *,
    resume: bool = False,
    on_report: Callable[[Report], None] = lambda report: None,
    on_remark: Callable[[str], None] = lambda text: None,
    should_stop: Callable[[], bool] | None = None,
) -> TrainReport:
    """Train a model.

    Args:
        table: slot -> keys, as recipes and overrides give it. With ``resume``, what it says must agree with the run.
        out: the run folder: absent or empty, or a run to go on with.
        resume: continue the run in ``out`` from its last checkpoint.
        on_report: called with each report of the trainer.
        on_remark: called with each sentence that somebody should read before training begins: what changes nothing in this
            model, and what the task has to say about the data (``Task.remarks``).
        should_stop: read after each step: whether to stop with a checkpoint; signals tell it unless given.

    Raises:
        ConfigError: a bad table, or parts that do not fit.
        CheckpointError: ``out`` is taken, or there is nothing to resume.
        TrainingError: the run is going nowhere.
    """
    with ExitStack() as held:
        asked_to_stop = should_stop if should_stop is not None else held.enter_context(stop_signals())
        return _train(table, Path(out), resume, on_report, on_remark, asked_to_stop, held)


def _train(
    table: Mapping[str, Any],
    out: Path,
    resume: bool,
    on_report: Callable[[Report], None],
    on_remark: Callable[[str], None],
    asked_to_stop: Callable[[], bool],
    held: ExitStack,
) -> TrainReport:
    folder = _open_to_resume(out, held) if resume else None
    plan = _resumed_plan(folder, table) if folder else read_plan(table, "the plan")
    device = prepare_torch(plan.run)
    if folder is None:
        graph, data = graph_of(plan), data_of(plan)
        check_counts(plan, data)
        vocabulary = data.vocabulary
        clusters = clusters_of(plan, vocabulary)
    else:
        data = data_of(plan)
        vocabulary = vocabulary_of_run(folder)
        graph = _resumed_graph(folder, table)
        clusters = _resumed_clusters(folder, table, vocabulary)
        _check_data(folder, data, vocabulary)
    extra = Path(plan.data.augment) if folder is None else folder.file(AUGMENT_FILE)
    if plan.data.augment:
        data = augmented(data, extra, plan.data.augment_share, plan.run.seed)
    chunks = data.chunks() if folder is None else stored_chunks(folder, vocabulary)
    task = build_task(plan, vocabulary, graph, clusters, labels_of(data.signature), chunks)
    begun = folder is not None and bool(folder.pointer())
    if plan.run.start_from and not begun:
        _start_from(Path(plan.run.start_from), task, vocabulary)
    elif not begun:
        task.initialise()
        task.begin(data)
    remarks = remarks_on(plan) if folder is None else ()
    for text in remarks:
        on_remark(text)
    vectors = task.vector_coverage(data, "train") if is_label_predictor(task) and not begun else None
    if vectors is not None:
        on_remark(f"vectors: {vectors.sentence()}")
    parameters = sum(parameter.numel() for parameter in task.parameters() if parameter.requires_grad)
    if folder is None:
        task.num_batches(data, 0)  # data that do not fit this task leave no run behind
        with tempfile.TemporaryDirectory() as scratch:
            files = run_files(vocabulary, graph, data, Path(scratch), clusters)
        if plan.data.augment:
            files[AUGMENT_FILE] = extra.read_bytes()
        folder = RunFolder.create(out, plan.table(), versions(), files)
        held.enter_context(folder.locked())
    for text in task.remarks(data):
        on_remark(text)
    trainer = Trainer(task.to(device), data, folder, plan.optimizer, plan.schedule, plan.run)
    done = 0
    if begun:
        snapshot = folder.load("last", with_trainer=True)
        load_weights(task, snapshot.weights, out)
        _restore(trainer, snapshot, out)
        done = trainer.progress.epoch - (not trainer.progress.finished)
        folder.tidy()  # a run that is finished saves no more, and what a kill left would stay
        trainer.reopen()
    elif plan.run.start_from:
        trainer.keep_start()
    if resume:
        folder.replace_plan(plan.table())
        if not (out / MANIFEST).exists():
            write_run_manifest(folder)  # of a run that was begun without one, and whose files were found to fit
    warn_of_lost_epochs(out / "metrics.jsonl", folder.forget_metrics_after(trainer.progress.step), done)
    if vectors is not None and not any(record["kind"] == "VectorCoverage" for record in folder.metrics()):
        folder.append_metrics({"kind": "VectorCoverage", "epoch": 1, "step": 0, **vectors.model_dump()})
    reported = any(record["kind"] == "EpochReport" for record in folder.metrics())
    if trainer.progress.finished and reported:  # no epoch follows that would write the page
        write_report(out)
    with TensorBoardLog(out / "tensorboard") as board:
        seconds, tokens, stopped = 0.0, 0.0, False
        for report in trainer.run(asked_to_stop):
            folder.append_metrics({"kind": type(report).__name__, **vars(report)})
            board.add(report)
            if isinstance(report, EpochReport):
                seconds += report.seconds
                tokens += report.seconds * report.tokens_per_second
                write_report(out)
            stopped = isinstance(report, StopReport)
            on_report(report)
    progress = trainer.progress
    return TrainReport(
        run=str(out),
        epochs=progress.epoch if progress.finished else progress.epoch - 1,
        metric=task.headline.name,
        best_valid=progress.best,
        best_epoch=progress.best_epoch,
        tokens_per_second=tokens / seconds if seconds else 0.0,
        parameters=parameters,
        vectors=vectors,
        remarks=remarks,
        finished=ending_text(progress, plan.schedule),
        stopped=stopped,
    )


def table_of_run(path: Path) -> dict[str, Any]:
    """The table of a run that another one begins with (``--from``): its plan without its claim, its graph and its clusters.

    Raises:
        CheckpointError: ``path`` is no run.
        ConfigError: it names code, which is not trusted.
    """
    folder = RunFolder.open(path)
    check_plan_code(folder.plan, f"{path}/plan.json")
    table = {slot: dict(keys) for slot, keys in completed(folder.plan).items() if slot != "claim"}
    for slot, name in (("graph", "graph.json"), ("clusters", CLUSTERS)):
        if folder.file(name).exists():
            table[slot] = {**table.get(slot, {}), "path": str(folder.file(name))}
    table["run"] = {**table.get("run", {}), "start_from": str(path)}
    return table


def _start_from(path: Path, task: Task, vocabulary: Vocabulary) -> None:
    """Put the best weights of another run into a model.

    Raises:
        CheckpointError: there are none, or they are of other words or sizes.
    """
    folder = RunFolder.open(path)
    words = vocabulary_of_run(folder)
    if words.fingerprint != vocabulary.fingerprint:
        raise CheckpointError(
            f"--from {path}: it was trained on vocabulary {words.fingerprint} ({len(words):,} words) and these data have "
            f"{vocabulary.fingerprint} ({len(vocabulary):,} words); give data of the same vocabulary with --data DIR"
        )
    weights = folder.load("best", with_trainer=False).weights
    load_weights(task, weights, path, "keep task, encoder and decoder as that run has them, and change how it is trained only")


def _resumed_graph(folder: RunFolder, table: Mapping[str, Any]) -> SememeGraph | None:
    """The graph that the run keeps; another one that is given is refused."""
    file, given = folder.file("graph.json"), table.get("graph", {}).get("path")
    graph = SememeGraph.load(file) if file.exists() else None
    if given and (graph is None or SememeGraph.load(Path(given)) != graph):
        raise ConfigError(
            f"--resume: the run in {folder.path} was begun with another sememe graph than {given}; leave --graph out"
        )
    return graph


def _resumed_clusters(folder: RunFolder, table: Mapping[str, Any], vocabulary: Vocabulary) -> NDArray[np.int64] | None:
    """The word clusters that the run keeps; others that are given are refused."""
    kept, given = stored_clusters(folder, vocabulary), table.get("clusters", {}).get("path")
    if given and (kept is None or not np.array_equal(read_clusters(given, vocabulary), kept)):
        raise ConfigError(
            f"--resume: the run in {folder.path} was begun with other word clusters than {given}; leave --clusters out"
        )
    return kept


def _check_data(folder: RunFolder, data: PreparedData, vocabulary: Vocabulary) -> None:
    """Make sure that a run goes on with the words and the text that it began with."""
    if vocabulary.fingerprint != data.vocabulary.fingerprint:
        raise CheckpointError(
            f"{folder.path} was trained on vocabulary {vocabulary.fingerprint}, {data.folder} has "
            f"{data.vocabulary.fingerprint}; give the data it began with (--data DIR)"
        )
    begun = folder.data_signature()
    for split in ("train", "valid"):
        here = data.signature.examples
        if begun.examples is not None and (here is None or begun.examples.splits[split] != here.splits[split]):
            raise CheckpointError(
                f"{folder.path} was begun with other examples in {split} than {data.folder} has; "
                f"give the data it began with (--data DIR)"
            )
        if begun.splits[split].sha256 != data.signature.splits[split].sha256:
            raise CheckpointError(
                f"{folder.path} was begun with another {split} text than {data.folder} has; "
                f"give the data it began with (--data DIR)"
            )


def _resumed_plan(folder: RunFolder, table: Mapping[str, Any]) -> Plan:
    """The plan of the run, with the few changes that a resumed run may take from ``table``.

    Raises:
        ConfigError: when the table asks for another model, data or rule of training.
    """
    where = f"{folder.path}/plan.json"
    if not all(isinstance(keys, dict) for keys in folder.plan.values()):
        raise CheckpointError(f"{where} is no plan; it was changed by hand or written by another version of sememekit")
    typed = [keys.get("name") for keys in table.values() if isinstance(keys, Mapping)]
    with trusting_code([name for name in typed if isinstance(name, str)]):
        check_plan_code(folder.plan, where)
    stored: dict[str, Any] = completed(folder.plan)
    for slot, keys in table.items():
        for key, value in keys.items():
            path = f"{slot}.{key}"
            if path in MAY_CHANGE:
                stored.setdefault(slot, {})[key] = value
            elif (
                path not in _CHECKED_BY_CONTENT
                and slot != "claim"
                and key != "prepare"
                and stored.get(slot, {}).get(key) != value
            ):
                raise ConfigError(
                    f"--resume: the run in {folder.path} has {path}={stored.get(slot, {}).get(key)!r}, given {value!r}; only "
                    f"{', '.join(MAY_CHANGE)} may change; leave it out, or start a new run with another --out"
                )
    return plan_of_run(folder, stored)


def _open_to_resume(out: Path, held: ExitStack) -> RunFolder:
    """Open a run and hold its lock. It is opened again under the lock: what the writer before did is seen whole."""
    held.enter_context(RunFolder.open(out).locked())
    return RunFolder.open(out)


def _restore(trainer: Trainer, snapshot: Snapshot, out: Path) -> None:
    """Put a trainer where a snapshot was taken.

    Raises:
        CheckpointError: its state of training is not one of this version.
    """
    try:
        trainer.restore(snapshot)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise CheckpointError(
            f"{out}/checkpoints/{snapshot.name} has no state of training that can be gone on from ({type(error).__name__}: "
            f"{error}); begin a new run with its weights: sememekit train --from {out} --out OTHER"
        ) from None
