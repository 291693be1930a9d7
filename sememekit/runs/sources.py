"""What a run is trained from: its data and words, and the graph, clusters and chunks that come with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sememekit.data.prepared import PreparedData
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.files import typed
from sememekit.runs.build import ENCODER, check_counts, clusters_of, data_of, graph_of, kept_of
from sememekit.runs.plan import Plan
from sememekit.runs.run import GRAPH, stored_chunks, stored_clusters, vocabulary_of_run
from sememekit.sememes import SememeGraph
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary
from sememekit.training import RunFolder
from sememekit.word_classes.file import read_clusters


class Sources(NamedTuple):
    """What a run is trained from; ``kept`` is what ``Encoder.keep`` gave."""

    data: PreparedData
    vocabulary: Vocabulary
    graph: SememeGraph | None
    clusters: NDArray[np.int64] | None
    chunks: ChunkVocabulary | None
    kept: bytes | None


def fresh_sources(plan: Plan) -> Sources:
    """What a plan names."""
    graph, data = graph_of(plan), data_of(plan)
    check_counts(plan, data)
    return Sources(data, data.vocabulary, graph, clusters_of(plan, data.vocabulary), data.chunks(), kept_of(plan, data))


def resumed_sources(folder: RunFolder, plan: Plan, table: Mapping[str, Any]) -> Sources:
    """What the run in ``folder`` was begun with, out of its folder but for the data; ``table`` is what was given to resume it.
    Raises DataError: the data are not there. Raises CheckpointError and ConfigError: other data, graph or clusters."""
    where = Path(plan.data.path)
    if "path" not in table.get("data", {}) and not where.is_dir():
        here = "" if where.is_absolute() else f" (looked for in {Path.cwd()})"
        again = typed("sememekit", "train", "--out", folder.path, "--resume", "--data", "DIR")
        raise DataError(
            f"{folder.path} was begun with the data in {where}, which are not there{here}; say where they are: {again}"
        )
    data, vocabulary = data_of(plan), vocabulary_of_run(folder)
    graph, clusters = _resumed_graph(folder, table), _resumed_clusters(folder, table, vocabulary)
    _check_data(folder, data, vocabulary)
    kept = folder.file(ENCODER).read_bytes() if folder.file(ENCODER).exists() else None
    return Sources(data, vocabulary, graph, clusters, stored_chunks(folder, vocabulary), kept)


def _resumed_graph(folder: RunFolder, table: Mapping[str, Any]) -> SememeGraph | None:
    file, given = folder.file(GRAPH), table.get("graph", {}).get("path")
    graph = SememeGraph.load(file) if file.exists() else None
    if given and (graph is None or SememeGraph.load(Path(given)) != graph):
        raise ConfigError(
            f"--resume: the run in {folder.path} was begun with another sememe graph than {given}; leave --graph out"
        )
    return graph


def _resumed_clusters(folder: RunFolder, table: Mapping[str, Any], vocabulary: Vocabulary) -> NDArray[np.int64] | None:
    kept, given = stored_clusters(folder, vocabulary), table.get("clusters", {}).get("path")
    if given and (kept is None or not np.array_equal(read_clusters(given, vocabulary), kept)):
        raise ConfigError(
            f"--resume: the run in {folder.path} was begun with other word clusters than {given}; leave --clusters out"
        )
    return kept


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
