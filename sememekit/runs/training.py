"""Begin and resume a training run: its data, and the files of its folder."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sememekit.config import check_table, trusting_code
from sememekit.data.prepared import VOCABULARY, PreparedData
from sememekit.data.segmenters import LEXICON, MODELS
from sememekit.decoders.contract import check_own_decoders
from sememekit.encoders.base import FromFiles
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.files import sync_to_disk, typed
from sememekit.ranks import ALONE, Ranks
from sememekit.runs import augment, build
from sememekit.runs.build import ModelParts
from sememekit.runs.plan import Plan, plan_of_run, read_plan, remarks_on
from sememekit.runs.run import CLUSTERS, GRAPH, SIGNATURE, TRAIN_COUNTS, Run, counts_text, load_weights, vocabulary_of_run
from sememekit.runs.start_from import start_from, with_earlier_epochs
from sememekit.sememes import SememeGraph
from sememekit.tasks.base import LabelPredictor, Task, declares, take_part
from sememekit.tasks.vectors import VectorCoverage
from sememekit.text.chunks import CHUNKS
from sememekit.text.vocabulary import Vocabulary
from sememekit.training import RunFolder, Trainer
from sememekit.training.schedule import reopen
from sememekit.word_classes.file import read_clusters, write_clusters

MAY_CHANGE = (
    *("schedule.epochs", "schedule.stop_after", "run.device", "run.threads", "run.report_every"),
    *("run.checkpoint_every", "run.stall_epochs", "run.track", "data.path"),
)
"""Settings that may change when a run is resumed."""

_CHECKED_BY_CONTENT = ("graph.path", "clusters.path")  # copied by the run: at a resume the path may change, but not the content


class Training(NamedTuple):
    """A run that is open for training; the lock of its folder is held."""

    folder: RunFolder
    plan: Plan
    task: Task
    trainer: Trainer  # in the state in which the run begins or continues
    remarks: tuple[str, ...]  # settings that change nothing in this model
    vectors: VectorCoverage | None  # coverage of the training text by the pretrained vectors of a fresh run, if any


def _clusters_that_stay(plan: Plan, steps_an_epoch: int) -> tuple[str, ...]:
    every = getattr(plan.decoder.settings, "update_every", 0) if plan.decoder is not None else 0
    if every <= (steps := steps_an_epoch * plan.schedule.epochs):
        return ()
    return (f"decoder.update_every={every}: training has {steps:,} steps, so the clusters stay as they began; set it lower",)


@contextmanager
def open_training(
    table: Mapping[str, Any], out: Path, *, resume: bool, on_remark: Callable[[str], None], ranks: Ranks = ALONE
) -> Iterator[Training]:
    """Begin or continue a run, with its lock held inside the block. The first process writes and locks; all read ``out``, which
    is absent or empty, or a run to continue. ``table``: slot -> keys, as recipes and overrides give it; with ``resume`` it must
    agree with the run. ``on_remark`` is called with each remark to show before training begins; see ``jobs.train.train``.
    Raises ConfigError: a bad table, or parts that do not fit. Raises CheckpointError: ``out`` is taken, or no run to resume."""
    with ExitStack() as held:
        folder = _open_folder(out, ranks, held) if resume else None
        plan = _resumed_plan(folder, table) if folder else read_plan(with_earlier_epochs(table), "the plan")
        device = build.prepare_torch(plan.run, ranks)
        if folder is not None:
            data, parts = resumed_sources(folder, plan, table)
        else:
            data, parts = build.sources_of(plan)
        extra = folder.file(augment.FILE) if folder else Path(plan.data.augment)
        if plan.data.augment:
            data = augment.augmented(data, extra, plan.data.augment_share, plan.run.seed, on_remark)
        task = build.build_task(plan, *parts)
        begun = folder is not None and bool(folder.pointer())
        if not begun:
            _start(task, plan, parts.vocabulary, data)
        check_own_decoders(task)
        remarks = remarks_on(plan) if folder is None else ()
        for text in (*remarks, *build.slow_products(plan.run.dtype, device)):
            on_remark(text)
        vectors = task.vector_coverage(data, "train") if declares(task, LabelPredictor) and not begun else None
        if vectors is not None:
            on_remark(f"vectors: {vectors.sentence()}")
        ranks.wait()  # what all find wrong below they find at one time, so that one process says it
        take_part(task, ranks)  # what cannot be divided leaves no run behind
        if folder is None:
            task.num_batches(data, 0)  # data that do not fit this task leave no run behind
            files = kept_files(parts, data)
            if plan.data.augment:
                files[augment.FILE] = augment.kept(data, extra)
            folder = _make_folder(out, plan, files, ranks, held)
        ranks.note(f"begun {out}")
        for text in (*task.remarks(data), *_clusters_that_stay(plan, task.num_batches(data, 0))):
            on_remark(text)
        trainer = Trainer(task.to(device), data, folder, plan.optimizer, plan.schedule, plan.run, ranks)
        if begun:
            _restore(trainer, out)
            ranks.wait()
            if ranks.leads:
                folder.tidy()  # a run that is finished saves no more, and what a kill left would stay
            reopen(trainer.progress, plan.schedule, plan.run)
        elif plan.run.start_from:
            trainer.keep_initial_weights()
        if ranks.leads:
            if resume:
                folder.replace_plan(plan.table())
            folder.forget_repeated_metrics()
            if vectors is not None:
                folder.append_metrics({"kind": "VectorCoverage", "epoch": 1, "step": 0, **vectors.model_dump()})
        yield Training(folder, plan, task, trainer, remarks, vectors)


def _open_folder(out: Path, ranks: Ranks, held: ExitStack) -> RunFolder:
    """Return the folder of a resumed run, opened under its lock, which ``held`` keeps, to see all earlier changes."""
    if ranks.leads:
        held.enter_context(RunFolder.open(out).locked())
    ranks.wait()
    return RunFolder.open(out)


def _make_folder(out: Path, plan: Plan, files: Mapping[str, bytes], ranks: Ranks, held: ExitStack) -> RunFolder:
    """Return the folder of a fresh run, made by the first rank; ``held`` keeps its lock."""
    folder = None
    if ranks.leads:
        folder = RunFolder.create(out, plan.table(), build.versions(), files)
        sync_to_disk(out.parent)
        held.enter_context(folder.locked())
    ranks.wait()
    return folder or RunFolder.open(out)


def _start(task: Task, plan: Plan, vocabulary: Vocabulary, data: PreparedData) -> None:
    if plan.run.start_from:
        start_from(Path(plan.run.start_from), plan, task, vocabulary, data)
        return
    for part in task.modules():
        if isinstance(part, FromFiles):
            part.read_weights()
    task.begin_training(data)


def saved_parts(vocabulary: Vocabulary, graph: SememeGraph | None, clusters: NDArray[np.int64] | None) -> dict[str, bytes]:
    """Return the files of a run's vocabulary, and of its graph and clusters, if any."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        vocabulary.save(folder / VOCABULARY)
        if graph is not None:
            graph.save(folder / GRAPH)
        if clusters is not None:
            write_clusters(folder / CLUSTERS, vocabulary, clusters)
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def kept_files(parts: ModelParts, data: PreparedData) -> dict[str, bytes]:
    """The constant files of a run folder, by their names in ``training.manifest.KEPT``."""
    files = saved_parts(parts.vocabulary, parts.graph, parts.clusters)
    if parts.kept is not None:
        files[build.ENCODER] = parts.kept
    for name in (CHUNKS, *MODELS.values(), LEXICON):
        if (data.folder / name).exists():
            files[name] = (data.folder / name).read_bytes()
    counts = data.train_counts()
    if not np.array_equal(counts, parts.vocabulary.counts):
        files[TRAIN_COUNTS] = counts_text(counts)
    files[SIGNATURE] = (data.signature.model_dump_json(indent=1) + "\n").encode()
    return files


def _resumed_plan(folder: RunFolder, table: Mapping[str, Any]) -> Plan:
    """Return the plan of the run with the changes of ``table``; ConfigError for a change that resuming does not allow."""
    where = f"{folder.path}/plan.json"
    names = [keys.get("name") for keys in table.values() if isinstance(keys, Mapping)]
    with trusting_code([name for name in names if isinstance(name, str)]):
        check_table(folder.plan, where)
    stored: dict[str, Any] = {slot: dict(keys) for slot, keys in folder.plan.items()}
    for slot, keys in table.items():
        for key, value in keys.items():
            path, before = f"{slot}.{key}", stored.get(slot, {}).get(key)
            if path in MAY_CHANGE:
                stored.setdefault(slot, {})[key] = value
            elif path not in (*_CHECKED_BY_CONTENT, f"{slot}.prepare") and slot != "claim" and not _holds(before, value):
                raise ConfigError(
                    f"--resume: the run in {folder.path} has {path}={before!r}, given {value!r}; only "
                    f"{', '.join(MAY_CHANGE)} may change; leave it out, or go on in a new run from its weights: "
                    f"{typed('sememekit', 'train', '--from', folder.path, '--out', 'OTHER')}"
                )
    return plan_of_run(folder, stored)


def _holds(stored: Any, given: Any) -> bool:
    """Return whether a stored setting is the given one; a table within a slot may be given in part, as in a recipe."""
    if isinstance(stored, Mapping) and isinstance(given, Mapping):
        return all(key in stored and _holds(stored[key], value) for key, value in given.items())
    return bool(stored == given)


def _restore(trainer: Trainer, out: Path) -> None:
    """Restore the last snapshot. CheckpointError: its state is of another version, or the best snapshot is torn."""
    snapshot = trainer.folder.load("last", with_trainer=True)
    load_weights(trainer.task, snapshot.weights, out)
    trainer.folder.metrics()  # lines that were changed are found before anything is written
    trainer.folder.check_best()  # the end of the training, or a better one, may be days away
    try:
        trainer.restore(snapshot)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        why = "has only weights, as shared runs have, so it cannot be resumed"
        if "progress" in snapshot.trainer:
            why = f"has no state of training that can be resumed ({type(error).__name__}: {error})"
        again = f"begin a new run with its weights: {typed('sememekit', 'train', '--from', out, '--out', 'OTHER')}"
        raise CheckpointError(f"{out}/checkpoints/{snapshot.name} {why}; {again}") from None


def resumed_sources(folder: RunFolder, plan: Plan, table: Mapping[str, Any]) -> tuple[PreparedData, ModelParts]:
    """Open the data of a run, and the rest from ``folder``; ``table`` is for resuming. Raises DataError: the data are not
    there. Raises CheckpointError and ConfigError: other data, graph or clusters."""
    where = Path(plan.data.path)
    if "path" not in table.get("data", {}) and not where.is_dir():
        here = "" if where.is_absolute() else f" (looked for in {Path.cwd()})"
        again = typed("sememekit", "train", "--out", folder.path, "--resume", "--data", "DIR")
        raise DataError(
            f"{folder.path} was begun with the data in {where}, which are not there{here}; say where they are: {again}"
        )
    data, run = build.data_of(plan), Run(folder, plan, vocabulary_of_run(folder), "last", plan.run, trust_code=False)
    graph, clusters = (table.get(slot, {}).get("path") for slot in ("graph", "clusters"))
    if graph and (run.graph is None or SememeGraph.load(Path(graph)) != run.graph):
        raise ConfigError(
            f"--resume: the run in {folder.path} was begun with another sememe graph than {graph}; leave --graph out"
        )
    if clusters and (run.clusters is None or not np.array_equal(read_clusters(clusters, run.vocabulary), run.clusters)):
        raise ConfigError(
            f"--resume: the run in {folder.path} was begun with other word clusters than {clusters}; leave --clusters out"
        )
    _check_data(folder, data, run.vocabulary)
    return data, run.parts


def _check_data(folder: RunFolder, data: PreparedData, vocabulary: Vocabulary) -> None:
    if vocabulary.fingerprint != data.vocabulary.fingerprint:
        raise CheckpointError(
            f"{folder.path} was trained on vocabulary {vocabulary.fingerprint}, {data.folder} has "
            f"{data.vocabulary.fingerprint}; give the data it began with (--data DIR)"
        )
    begun, here = folder.data_signature(), data.signature
    for split in ("train", "valid"):
        other = ""
        if begun.splits[split].sha256 != here.splits[split].sha256:
            other = f"another {split} text"
        if begun.examples and (here.examples is None or begun.examples.splits[split] != here.examples.splits[split]):
            other = f"other examples in {split}"
        if other:
            raise CheckpointError(
                f"{folder.path} was begun with {other} than {data.folder} has; give the data it began with (--data DIR)"
            )
