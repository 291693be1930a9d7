"""``sememekit clusters``: the word clusters of a model, as in Table 3 of Shen et al. 2017."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sememekit.config import Record
from sememekit.decoders.base import Clustered
from sememekit.errors import ConfigError, DataError
from sememekit.runs.run import OfRun, Run, Which
from sememekit.tasks.writing import predictor
from sememekit.word_classes.file import write_clusters


class WordCluster(Record):
    """A cluster."""

    number: int
    asked_for: tuple[str, ...]
    """The requested words that are in the cluster."""
    words: tuple[str, ...]
    """Its most frequent words; ``size`` is the number of all its words."""
    size: int
    frequency: float
    """Share of its words among the tokens of the text, 0 to 1."""


class ClustersReport(OfRun):
    """The clusters of a run: the requested ones, or those with the largest share of the text."""

    num_words: int
    num_clusters: int
    """Number of clusters of the model; ``empty_clusters`` of them have no word."""
    empty_clusters: int
    smallest: int
    largest: int
    clusters: tuple[WordCluster, ...]
    saved: str
    """The file with all clusters, or an empty string."""


def clusters(
    run: Path, *, words: Sequence[str] = (), top: int = 10, members: int = 15, save: Path | None = None, which: Which = "best"
) -> ClustersReport:
    """Show word clusters, and save them for ``train --clusters FILE``; arguments as ``sememekit clusters --help``. Raises
    ConfigError: the output layer has no clusters, or ``save`` is a file of another kind. Raises DataError: an unknown word."""
    loaded = Run.open(run, which=which, device="cpu")
    decoder = predictor(loaded.task, "clusters").decoder
    if not isinstance(decoder, Clustered):
        raise ConfigError(
            f"clusters: the decoder {loaded.plan.table()['decoder']['name']!r} of {run} does not divide words into clusters; "
            f"'self_organized' and 'class_hsm' do"
        )
    vocabulary, cluster_of = loaded.vocabulary, decoder.clusters().numpy()
    unknown = [word for word in words if word not in vocabulary]
    if unknown:
        raise DataError(
            f"clusters: not among the {len(vocabulary):,} words of {run}: {', '.join(map(repr, unknown))}; words are looked "
            f"up as they are spelled in {loaded.folder.file('vocabulary.tsv')}"
        )
    counts = vocabulary.counts.astype(np.float64)
    sizes, loads = np.bincount(cluster_of), np.bincount(cluster_of, counts / counts.sum())
    asked = list(dict.fromkeys(int(cluster_of[vocabulary.id(word)]) for word in words))
    shown = asked if words else np.argsort(-loads, kind="stable")[:top].tolist()
    if save is not None:
        write_clusters(save, vocabulary, cluster_of)

    def describe(number: int) -> WordCluster:
        ids = np.flatnonzero(cluster_of == number)  # ids rise with falling frequency
        own = tuple(dict.fromkeys(word for word in words if cluster_of[vocabulary.id(word)] == number))
        most = tuple(vocabulary.token(word) for word in ids[:members].tolist())
        return WordCluster(number=number, asked_for=own, words=most, size=len(ids), frequency=float(loads[number]))

    filled = sizes[sizes > 0]
    return ClustersReport(
        **loaded.of_run,
        num_words=len(vocabulary),
        num_clusters=decoder.num_clusters,
        empty_clusters=decoder.num_clusters - len(filled),
        smallest=int(filled.min()),
        largest=int(filled.max()),
        clusters=tuple(describe(number) for number in shown),
        saved=str(save) if save is not None else "",
    )
