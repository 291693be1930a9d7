"""The model of a plan, and the graph, clusters and data that it names."""

import contextlib
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import sememekit
from sememekit.config import nearest
from sememekit.data.prepared import PreparedData
from sememekit.data.signature import Signature
from sememekit.decoders.base import Decoder
from sememekit.encoders import ENCODERS
from sememekit.encoders.base import Encoder, FromFiles
from sememekit.errors import ConfigError
from sememekit.ranks import ALONE, Ranks
from sememekit.runs.plan import Plan, no_words, variant
from sememekit.sememes import SememeGraph
from sememekit.tasks.base import Task
from sememekit.tasks.resources import Chosen, TaskResources
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary
from sememekit.training import RunSettings
from sememekit.word_classes.file import read_clusters

ENCODER = "encoder.json"  # file in the folder of a run with the return value of ``Encoder.keep``


class ModelParts(NamedTuple):
    """The parts of a model beside its plan, in the order of ``build_task``."""

    vocabulary: Vocabulary
    graph: SememeGraph | None
    clusters: NDArray[np.int64] | None  # (V,) the cluster of each word, or None
    labels: tuple[str, ...]  # from ``labels_of``, for tasks that predict labels
    chunks: ChunkVocabulary | None  # words and n-grams, for tasks that read lattices, or None
    kept: bytes | None  # bytes that the encoder stores with the run (``Encoder.keep``), or None


def labels_of(signature: Signature) -> tuple[str, ...]:
    """The labels of the data with this signature; none for a stream of words."""
    return (signature.examples.labels if signature.examples is not None else None) or ()


def build_task(
    plan: Plan,
    vocabulary: Vocabulary,
    graph: SememeGraph | None,
    clusters: NDArray[np.int64] | None = None,
    labels: tuple[str, ...] = (),
    chunks: ChunkVocabulary | None = None,
    kept: bytes | None = None,
) -> Task:
    """Build the model of a plan from its ``ModelParts``, initialised under the plan's seed, on the CPU.

    Raises ConfigError: the parts do not fit, or the graph is missing. Raises GraphError: the graph is of another vocabulary."""
    if graph is not None:
        graph.check_vocabulary(vocabulary)
    torch.manual_seed(plan.run.seed)
    task_class: type[Task] = variant("task", plan.task.name)
    encoder = Chosen[Encoder](plan.encoder.name, variant("encoder", plan.encoder.name), plan.encoder.settings)
    if encoder.kind.reads_ahead and task_class.left_to_right:
        raise ConfigError(
            f"task {plan.task.name!r} predicts a word that encoder {encoder.name!r} has read already; take an "
            f"encoder that reads from left to right{nearest(encoder.name.removeprefix('bi'), ENCODERS)}"
        )
    decoder = None
    if plan.decoder is not None:
        decoder = Chosen[Decoder](plan.decoder.name, variant("decoder", plan.decoder.name), plan.decoder.settings)
    resources = TaskResources(plan.task.name, vocabulary, encoder, decoder, graph, clusters, labels, chunks, kept)
    return task_class.build(plan.task.settings, resources)


def prepare_torch(settings: RunSettings, ranks: Ranks = ALONE) -> torch.device:
    """Set threads and precision of matrix products by the run's settings, and return the device; see ``device_of``."""
    if settings.threads:
        torch.set_num_threads(settings.threads)
    torch.set_float32_matmul_precision("high" if settings.dtype == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = settings.dtype == "tf32"  # torch's recurrences take it unless they are told
    return device_of(settings.device, ranks)


def slow_products(dtype: str, device: torch.device) -> tuple[str, ...]:
    """Return a warning if bfloat16 products are slower than float32, as on x86 processors without AMX.

    A bfloat16 training step of a tied softmax of width 650 took 1.6 times as long as float32 with AVX512-BF16 only, 4.1 times
    without it, and 28 times with AVX2 (oneDNN limited by ``ONEDNN_MAX_CPU_ISA``)."""
    if dtype != "bfloat16" or device.type != "cpu" or not hasattr(torch.cpu, "get_capabilities"):  # torch 2.10 has no such
        return ()
    if torch.cpu.get_capabilities().get("amx_bf16", True):  # other kinds of processors, which were not measured, lack the key
        return ()
    return (
        "run.dtype=bfloat16: this processor has no AMX, and products in bfloat16 take longer than those in float32 here; leave "
        "--dtype out, or train on another machine",
    )


def device_of(kind: str, ranks: Ranks = ALONE) -> torch.device:
    """Return the device for "auto", "cpu", "cuda" or "mps"; each process has a separate GPU. ConfigError: no such device."""
    if kind == "auto":
        kind = "cuda" if torch.cuda.is_available() else "cpu"
    if kind == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: this torch sees no CUDA device; use --device cpu, or see 'sememekit doctor'")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ConfigError("--device mps: this torch sees no GPU of Apple's; use --device cpu, or see 'sememekit doctor'")
    if kind == "mps" and ranks.size > 1:
        raise ConfigError(f"--device mps: {ranks.size} processes cannot add gradients there; use --device cpu, or one process")
    if kind == "cuda" and ranks.size > 1:
        if ranks.local >= torch.cuda.device_count():
            raise ConfigError(
                f"local rank {ranks.local} has no GPU: this machine has {torch.cuda.device_count()}; start as many processes "
                f"(torchrun --nproc_per_node={torch.cuda.device_count()} ...), or use --device cpu"
            )
        torch.cuda.set_device(ranks.local)
        return torch.device("cuda", ranks.local)
    return torch.device(kind)


def versions() -> dict[str, Any]:
    """Return the software and machine of a run: versions, platform, processor, threads."""
    return {
        "sememekit": sememekit.__version__,
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "numpy": version("numpy"),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def processor(file: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor: on Linux from ``file``, otherwise from Python."""
    with contextlib.suppress(OSError):
        for line in file.read_text("utf-8", "replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()


def graph_of(plan: Plan) -> SememeGraph | None:
    """The graph that a plan names, or None; ConfigError if the plan names none and its encoder or decoder needs a graph."""
    if plan.graph.path:
        return SememeGraph.load(Path(plan.graph.path), plan.data.path)
    hint = f"; this recipe's graph comes from: {plan.graph.prepare}" if plan.graph.prepare else " (see build-sememe-graph)"
    for slot, part in (("decoder", plan.decoder), ("encoder", plan.encoder)):
        if part is not None and "graph" in variant(slot, part.name).needs(part.settings):
            raise ConfigError(f"{slot} {part.name!r} with these settings needs a sememe graph; add --graph FILE{hint}")
    return None


def clusters_of(plan: Plan, vocabulary: Vocabulary) -> NDArray[np.int64] | None:
    """(V,) the word clusters that a plan names, or None; ConfigError if its decoder takes no clusters."""
    if not plan.clusters.path:
        return None
    if plan.decoder is None:
        raise ConfigError(f"{no_words(plan.task.name)}; leave --clusters out")
    if "clusters" not in variant("decoder", plan.decoder.name).needs(plan.decoder.settings):
        raise ConfigError(
            f"decoder {plan.decoder.name!r} with these settings takes no word clusters; leave --clusters out, or choose a "
            "decoder that does: --decoder class_hsm --set decoder.classes=file, or --decoder self_organized --set "
            "decoder.start=file"
        )
    return read_clusters(plan.clusters.path, vocabulary)


def kept_of(plan: Plan, data: PreparedData) -> bytes | None:
    """Return the bytes that a fresh run stores for its encoder, copied from its starting run if the words are the same."""
    other = Path(plan.run.start_from) / ENCODER if plan.run.start_from else None
    if other is not None and other.is_file():
        return other.read_bytes()
    kind = variant("encoder", plan.encoder.name)
    return kind.keep(plan.encoder.settings, data) if issubclass(kind, FromFiles) else None


def parts_of(plan: Plan, data: PreparedData, graph: SememeGraph | None) -> ModelParts:
    """Read the parts of a fresh run: its data, and the graph and files that the plan names."""
    clusters = clusters_of(plan, data.vocabulary)
    return ModelParts(data.vocabulary, graph, clusters, labels_of(data.signature), data.chunks(), kept_of(plan, data))


def sources_of(plan: Plan) -> tuple[PreparedData, ModelParts]:
    """Read the data and the parts of a fresh run. Raises ConfigError, DataError: a needed part is absent."""
    graph, data = graph_of(plan), data_of(plan)
    return data, parts_of(plan, data, graph)


def data_of(plan: Plan) -> PreparedData:
    """The prepared data that a plan names; ConfigError if it names none."""
    if not plan.data.path:
        hint = f"; this recipe's data come from: {plan.data.prepare}" if plan.data.prepare else ""
        raise ConfigError(f"no data given; add --data DIR with a folder that 'sememekit preprocess' wrote{hint}")
    return PreparedData.open(Path(plan.data.path))
