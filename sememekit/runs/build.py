"""From tables to objects: the only file that sees concrete encoders, decoders and tasks."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from inspect import isabstract
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, SerializeAsAny

import sememekit
from sememekit.config import (
    USUAL_VARIANTS,
    Claim,
    Settings,
    check_code,
    collected,
    load_variant,
    nearest,
    read_settings,
    trusting_code,
    unread,
)
from sememekit.data.prepared import PreparedData, Signature
from sememekit.decoders import DECODERS
from sememekit.decoders.base import Decoder
from sememekit.encoders import ENCODERS
from sememekit.encoders.base import Encoder
from sememekit.errors import CheckpointError, ConfigError
from sememekit.sememes import SememeGraph
from sememekit.tasks import TASKS
from sememekit.tasks.base import Kind, Task
from sememekit.tasks.resources import Chosen, TaskResources
from sememekit.text.chunks import CHUNKS, ChunkVocabulary
from sememekit.text.vocabulary import STOP, Vocabulary
from sememekit.training import OptimizerSettings, RunFolder, RunSettings, ScheduleSettings
from sememekit.training.diagnosis import first_bad_weight
from sememekit.word_classes.file import read_clusters, write_clusters

CLUSTERS = "clusters.json"
"""The word clusters of a run, in its folder."""


class DataSettings(Settings):
    """Which prepared data a run reads."""

    path: str = ""
    """Folder that ``sememekit preprocess`` wrote."""
    prepare: str = ""
    """The command that makes it, for people who read the recipe."""
    augment: str = ""
    """Further training examples: what fooled another model, as ``sememekit attack`` writes it; empty for none."""
    augment_share: float = Field(default=0.1, gt=0.0)
    """How many of them at most, as a share of the training examples."""


class GraphSettings(Settings):
    """Which sememe graph a run reads."""

    path: str = ""
    """File that ``sememekit build-sememe-graph`` wrote; empty for runs without sememes."""
    prepare: str = ""
    """The command that makes it."""


class ClustersSettings(Settings):
    """Which word clusters a run reads, where its output layer takes any."""

    path: str = ""
    """A file of ``word_classes.file``; empty for runs without."""
    prepare: str = ""
    """The command that makes it."""


class Slot(Settings):
    """A chosen variant and its settings."""

    name: str
    settings: SerializeAsAny[Settings]


class Plan(Settings):
    """A run, every setting resolved. ``table`` gives it back as a recipe."""

    claim: Claim | None
    data: DataSettings
    graph: GraphSettings
    clusters: ClustersSettings
    task: Slot
    encoder: Slot
    decoder: Slot | None
    """None for tasks that predict no words."""
    optimizer: OptimizerSettings
    schedule: ScheduleSettings
    run: RunSettings

    def table(self) -> dict[str, Any]:
        """The plan as plain tables, as a recipe would write it with nothing left to default."""
        plain: dict[str, Any] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Slot):
                plain[name] = {"name": value.name, **value.settings.model_dump(mode="json", exclude_none=True)}
            elif value is not None:
                plain[name] = value.model_dump(mode="json", exclude_none=True)
        return plain


_VARIANTS: dict[str, tuple[dict[str, str], type[Any], str]] = {
    slot: (variants, base, USUAL_VARIANTS[slot])
    for slot, variants, base in (("task", TASKS, Task), ("encoder", ENCODERS, Encoder), ("decoder", DECODERS, Decoder))
}
_PLAIN: dict[str, type[Settings]] = {
    "claim": Claim,
    "data": DataSettings,
    "graph": GraphSettings,
    "clusters": ClustersSettings,
    "optimizer": OptimizerSettings,
    "schedule": ScheduleSettings,
    "run": RunSettings,
}


def variant(slot: str, name: str) -> Any:
    """The class of an encoder, a decoder or a task.

    Raises:
        ConfigError: no such one, or code of another kind.
    """
    table, base, _ = _VARIANTS[slot]

    def is_one(found: Any) -> bool:
        settings = getattr(found, "Settings", None)
        return (
            isinstance(found, type)
            and issubclass(found, base)
            and isinstance(settings, type)
            and issubclass(settings, Settings)
        )

    found = load_variant(slot, name, table, is_one)
    if isabstract(found):
        lacks = ", ".join(sorted(found.__abstractmethods__))
        raise ConfigError(f"{slot} {name!r}: the class lacks what every {slot} of its kind has: {lacks}; add it to the class")
    return found


def check_plan_code(table: Mapping[str, Any], where: str) -> None:
    """Refuse a plan out of a folder that names code, unless that is trusted; see ``config.variants.check_code``."""
    named = {f"{slot}.name": keys.get("name") for slot, keys in table.items() if isinstance(keys, Mapping)}
    check_code(named, where)


def read_plan(table: Mapping[str, Any], where: str) -> Plan:
    """Read the table of a recipe, overrides included, into a plan.

    Args:
        table: slot -> keys, as ``load_recipe`` and ``apply_overrides`` give it.
        where: the recipe's name, for messages.

    Raises:
        ConfigError: an unknown slot, variant or key, or a value of the wrong kind.
    """
    allowed = [*_PLAIN, *_VARIANTS]
    for slot in table:
        if slot not in allowed:
            raise ConfigError(f"{where}: unknown table [{slot}]{nearest(slot, allowed)}; allowed: {', '.join(sorted(allowed))}")
    parts: dict[str, Any] = {}
    for slot, kind in _PLAIN.items():
        given = table.get(slot)
        parts[slot] = None if slot == "claim" and given is None else read_settings(kind, given or {}, f"{where} [{slot}]")
    for slot, (_, _, usual) in _VARIANTS.items():
        if slot == "decoder" and not variant("task", parts["task"].name).takes_decoder:
            if table.get(slot):
                raise ConfigError(f"{where}: {_no_words(parts['task'].name)}; leave the decoder out")
            parts[slot] = None
            continue
        given = dict(table.get(slot) or {})
        name = given.pop("name", usual)
        settings = read_settings(variant(slot, name).Settings, given, f"{where} [{slot}] of {slot} {name!r}")
        parts[slot] = Slot(name=name, settings=settings)
    return Plan(**parts)


def completed(table: Mapping[str, Any]) -> dict[str, Any]:
    """The stored plan of a run with what its model did before there were settings for it (see ``Settings.earlier``)."""
    plan: dict[str, Any] = {slot: dict(keys) for slot, keys in table.items()}
    for slot in _VARIANTS:
        if "name" in plan.get(slot, {}):
            kind = variant(slot, plan[slot]["name"])
            plan[slot] = {**collected(kind.Settings, "earlier"), **plan[slot]}
    return plan


def remarks_on(plan: Plan) -> tuple[str, ...]:
    """A sentence for each thing that a plan was given and that nothing in its model reads: settings, and the graph.

    They are remarks and no errors, since arms of an experiment often share their flags, and since the run keeps its graph for
    the commands that group words by it.
    """
    sentences: list[str] = []
    for slot, chosen in _chosen(plan):
        sentences += unread(chosen.settings, slot)
    parts = [(variant(slot, chosen.name), chosen.settings) for slot, chosen in _chosen(plan)]
    if plan.graph.path and not any("graph" in kind.needs(settings) for kind, settings in parts):
        names = " and ".join(f"{slot} {chosen.name!r}" for slot, chosen in _chosen(plan))
        sentences.append(
            f"the graph {plan.graph.path} changes nothing: {names} with these settings read no sememes; the run keeps it, for "
            "instance for 'sememekit evaluate-ppl --by senses'"
        )
    return tuple(sentences)


def _chosen(plan: Plan) -> list[tuple[str, Slot]]:
    return [(slot, chosen) for slot in _VARIANTS if (chosen := getattr(plan, slot)) is not None]


def kinds_of(table: Mapping[str, Any]) -> frozenset[Kind]:
    """What commands can ask of the task that the table of a plan names: see ``Task.kinds``. No weights are read.

    Raises:
        ConfigError: a task that is not known here.
    """
    task = table.get("task")
    name = task.get("name") if isinstance(task, Mapping) else None
    found: type[Task] = variant("task", name if isinstance(name, str) else USUAL_VARIANTS["task"])
    return found.kinds


def _no_words(task: str) -> str:
    """Why a task takes no output layer."""
    return f"task {task!r} predicts {'labels, not' if 'labels' in variant('task', task).kinds else 'no'} words"


def labels_of(signature: Signature) -> tuple[str, ...]:
    """The labels of the data that were signed so; none for a stream of words."""
    return (signature.examples.labels if signature.examples is not None else None) or ()


def build_task(
    plan: Plan,
    vocabulary: Vocabulary,
    graph: SememeGraph | None,
    clusters: NDArray[np.int64] | None = None,
    labels: tuple[str, ...] = (),
    chunks: ChunkVocabulary | None = None,
) -> Task:
    """The model of a plan, freshly initialised under the plan's seed, on the CPU.

    Args:
        plan: what to build.
        vocabulary: the words.
        graph: their sememes, or None.
        clusters: (V,) the cluster of each word, or None.
        labels: for tasks that predict labels, as ``labels_of`` gives them.
        chunks: words and n-grams, for tasks that read lattices, or None.

    Raises:
        ConfigError: when the parts do not fit, or when one needs a graph and there is none.
        GraphError: when the graph is not of this vocabulary.
    """
    if graph is not None:
        graph.check_vocabulary(vocabulary)
    torch.manual_seed(plan.run.seed)
    task_class: type[Task] = variant("task", plan.task.name)
    encoder = Chosen[Encoder](plan.encoder.name, variant("encoder", plan.encoder.name), plan.encoder.settings)
    if encoder.kind.reads_ahead and task_class.left_to_right:
        raise ConfigError(
            f"task {plan.task.name!r} predicts the next word, which encoder {encoder.name!r} has read already; take an "
            f"encoder that reads from left to right{nearest(encoder.name.removeprefix('bi'), ENCODERS)}"
        )
    decoder = None
    if plan.decoder is not None:
        decoder = Chosen[Decoder](plan.decoder.name, variant("decoder", plan.decoder.name), plan.decoder.settings)
    resources = TaskResources(plan.task.name, vocabulary, encoder, decoder, graph, clusters, labels, chunks)
    return task_class.build(plan.task.settings, resources)


def pick_device(name: str) -> torch.device:
    """The device behind ``auto``, ``cpu`` or ``cuda``.

    Raises:
        ConfigError: CUDA is asked for and is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: this torch sees no CUDA device; use --device cpu, or see 'sememekit doctor'")
    return torch.device(name)


def prepare_torch(settings: RunSettings) -> torch.device:
    """Set threads and precision of matrix products as the run asks, and give back the device."""
    if settings.threads:
        torch.set_num_threads(settings.threads)
    torch.set_float32_matmul_precision("high" if settings.dtype == "tf32" else "highest")
    return pick_device(settings.device)


def versions() -> dict[str, Any]:
    """What made a run: versions, platform, threads."""
    return {
        "sememekit": sememekit.__version__,
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "numpy": version("numpy"),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def graph_of(plan: Plan) -> SememeGraph | None:
    """The graph that a plan names, or None where it names none.

    Raises:
        ConfigError: when it names none and its encoder or decoder needs one.
        GraphError: when the file cannot be used.
    """
    hint = f"; this recipe's graph comes from: {plan.graph.prepare}" if plan.graph.prepare else " (see build-sememe-graph)"
    decoder = plan.decoder
    if decoder and not plan.graph.path and "graph" in variant("decoder", decoder.name).needs(decoder.settings):
        raise ConfigError(f"decoder {decoder.name!r} with these settings needs a sememe graph; add --graph FILE{hint}")
    if not plan.graph.path and "graph" in variant("encoder", plan.encoder.name).needs(plan.encoder.settings):
        raise ConfigError(f"encoder {plan.encoder.name!r} with these settings needs a sememe graph; add --graph FILE{hint}")
    return SememeGraph.load(Path(plan.graph.path)) if plan.graph.path else None


def clusters_of(plan: Plan, vocabulary: Vocabulary) -> NDArray[np.int64] | None:
    """(V,) the word clusters that a plan names, or None where it names none.

    Raises:
        ConfigError: when it names some and its decoder takes none.
        DataError: when the file cannot be used for this vocabulary.
    """
    if not plan.clusters.path:
        return None
    if plan.decoder is None:
        raise ConfigError(f"{_no_words(plan.task.name)}; leave --clusters out")
    if "clusters" not in variant("decoder", plan.decoder.name).needs(plan.decoder.settings):
        raise ConfigError(
            f"decoder {plan.decoder.name!r} with these settings takes no word clusters; leave --clusters out, or choose a "
            "decoder that does: --decoder class_hsm --set decoder.classes=file, or --decoder self_organized --set "
            "decoder.start=file"
        )
    return read_clusters(plan.clusters.path, vocabulary)


def data_of(plan: Plan) -> PreparedData:
    """The prepared data that a plan names.

    Raises:
        ConfigError: when it names none.
    """
    if not plan.data.path:
        hint = f"; this recipe's data come from: {plan.data.prepare}" if plan.data.prepare else ""
        raise ConfigError(f"no data given; add --data DIR with a folder that 'sememekit preprocess' wrote{hint}")
    return PreparedData.open(Path(plan.data.path))


def check_counts(plan: Plan, data: PreparedData) -> None:
    """Refuse data whose ends of targets were never counted, for an output layer that goes by counts.

    Earlier versions counted ``</s>`` 0 times, though it is the commonest word that is predicted.

    Raises:
        ConfigError: with the command that prepares the data anew.
    """
    vocabulary, signature = data.vocabulary, data.signature
    of_pairs = signature.examples is not None and signature.examples.keeps_text
    predicted = of_pairs or signature.options.get("end_mark") == STOP
    if plan.decoder is None or not predicted or STOP not in vocabulary or vocabulary.counts[vocabulary.id(STOP)]:
        return
    if load_variant("decoder", plan.decoder.name, DECODERS).by_frequency(plan.decoder.settings):
        raise ConfigError(
            f"decoder {plan.decoder.name!r} goes by the counts of words, and {data.folder} has the count 0 for {STOP!r}, which "
            "ends every target: an earlier version prepared its vocabulary; prepare the pairs again: sememekit preprocess "
            f"{signature.dataset} SOURCE --out {data.folder} --force, and then what was prepared with --vocabulary of them"
        )


def run_files(
    vocabulary: Vocabulary,
    graph: SememeGraph | None,
    data: PreparedData,
    folder: Path,
    clusters: NDArray[np.int64] | None = None,
) -> dict[str, bytes]:
    """The files of a run folder that never change: vocabulary, graph, clusters, segmentation model, signature of the data."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary.save(folder / "vocabulary.tsv")
    files = {"vocabulary.tsv": (folder / "vocabulary.tsv").read_bytes()}
    if graph is not None:
        graph.save(folder / "graph.json")
        files["graph.json"] = (folder / "graph.json").read_bytes()
    if clusters is not None:
        write_clusters(folder / CLUSTERS, vocabulary, clusters)
        files[CLUSTERS] = (folder / CLUSTERS).read_bytes()
    if (data.folder / CHUNKS).exists():
        files[CHUNKS] = (data.folder / CHUNKS).read_bytes()
    model = data.folder / "sentencepiece.model"
    if model.exists():
        files[model.name] = model.read_bytes()
    files["data.json"] = (data.signature.model_dump_json(indent=1) + "\n").encode()
    return files


def stored_clusters(folder: RunFolder, vocabulary: Vocabulary) -> NDArray[np.int64] | None:
    """(V,) the word clusters that a run keeps, or None."""
    file = folder.file(CLUSTERS)
    return read_clusters(file, vocabulary) if file.exists() else None


def stored_chunks(folder: RunFolder, vocabulary: Vocabulary) -> ChunkVocabulary | None:
    """The chunk vocabulary that a run keeps, or None.

    Raises:
        CheckpointError: it is not that of the run's data.
    """
    file = folder.file(CHUNKS)
    if not file.exists():
        return None
    chunks, signed = ChunkVocabulary.load(file, vocabulary), folder.data_signature().chunks
    if signed is not None and chunks.fingerprint != signed.fingerprint:
        raise CheckpointError(
            f"{file} has the fingerprint {chunks.fingerprint}, and data.json beside it names {signed.fingerprint}; one of them "
            "was changed or taken from another run; copy the folder again from where it came from"
        )
    return chunks


def vocabulary_of_run(folder: RunFolder) -> Vocabulary:
    """The words of a run.

    Raises:
        CheckpointError: they are not those of its data.
    """
    vocabulary, signature = Vocabulary.load(folder.file("vocabulary.tsv")), folder.data_signature()
    if vocabulary.fingerprint != signature.vocabulary:
        raise CheckpointError(
            f"{folder.file('vocabulary.tsv')} has the fingerprint {vocabulary.fingerprint}, and data.json beside it names "
            f"{signature.vocabulary}; one of them was changed or taken from another run; copy the folder again from where it "
            "came from"
        )
    return vocabulary


def plan_of_run(folder: RunFolder, table: Mapping[str, Any] | None = None) -> Plan:
    """The plan of a run, or a ``table`` that was made of it.

    Raises:
        CheckpointError: it cannot be read.
        ConfigError: a class of somebody's own that it names cannot be imported here.
    """
    where, wanted = f"{folder.path}/plan.json", folder.plan if table is None else table
    for slot in _VARIANTS:
        keys = wanted.get(slot)
        if isinstance(keys, Mapping) and isinstance(name := keys.get("name"), str) and ":" in name:
            variant(slot, name)  # that it is not here is no fault of the plan
    try:
        return read_plan(completed(wanted), where)
    except (ConfigError, TypeError, ValueError, AttributeError, RecursionError) as error:
        why = str(error) if isinstance(error, ConfigError) else f"{where} is no plan ({type(error).__name__}: {error})"
        raise CheckpointError(f"{why}; the plan was changed by hand or written by another version of sememekit") from None


@dataclass(frozen=True)
class LoadedRun:
    """A trained model with all that it needs: nothing but the run folder was read.

    Attributes:
        folder: where it lies.
        plan: as it was trained.
        vocabulary: the words.
        graph: the sememe graph, or None.
        task: the model in evaluation mode on ``device``.
        snapshot: the name of the snapshot that was loaded.
    """

    folder: RunFolder
    plan: Plan
    vocabulary: Vocabulary
    graph: SememeGraph | None
    task: Task
    device: torch.device
    snapshot: str


def load_run(
    path: Path, *, which: Literal["best", "last"] = "best", device: str = "auto", trust_code: bool = False
) -> LoadedRun:
    """Load a trained model from its run folder.

    Args:
        path: the folder.
        which: the best weights by validation, or the last.
        device: ``auto``, ``cpu`` or ``cuda``.
        trust_code: load classes that are not ours and that the folder names, as ``config.trusting_code`` does for a block.

    Raises:
        CheckpointError: when the folder is no run, is torn or has no such snapshot, or when its files are not of one run.
        ConfigError: it names code, which is not trusted or cannot be imported.
    """
    path = Path(path)
    folder = RunFolder.open(path)
    with trusting_code(trust_code):
        check_plan_code(folder.plan, f"{path}/plan.json")
    plan = plan_of_run(folder)
    vocabulary = vocabulary_of_run(folder)
    graph_file = folder.file("graph.json")
    graph = SememeGraph.load(graph_file) if graph_file.exists() else None
    labels, chunks = labels_of(folder.data_signature()), stored_chunks(folder, vocabulary)
    task = build_task(plan, vocabulary, graph, stored_clusters(folder, vocabulary), labels, chunks)
    snapshot = folder.load(which, with_trainer=False)
    load_weights(task, snapshot.weights, path)
    if (name := first_bad_weight(task)) is not None:
        raise CheckpointError(
            f"{path}: its {which} checkpoint ({snapshot.name}) is of a training that diverged: {name} holds values that are "
            "not finite, so no figure of it means anything; train again with a lower rate (--set optimizer.learning_rate=R)"
        )
    where = pick_device(device)
    return LoadedRun(folder, plan, vocabulary, graph, task.to(where).eval(), where, snapshot.name)


def load_weights(task: Task, weights: Mapping[str, torch.Tensor], path: Path, remedy: str = "was plan.json changed?") -> None:
    """Put weights into a model.

    Raises:
        CheckpointError: they do not fit; it names the first that does not, and ends with ``remedy``.
    """
    try:
        task.load_state_dict(dict(weights))
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip() if len(str(error).splitlines()) > 1 else str(error)
        raise CheckpointError(f"{path}: the weights do not fit the plan ({first}); {remedy}") from None
