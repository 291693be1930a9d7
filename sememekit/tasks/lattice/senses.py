"""Sense lattices: as many embeddings of a word as a sememe graph gives it senses, each started from its sememes."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sememekit.errors import ConfigError
from sememekit.sememes import SememeGraph
from sememekit.tasks.lattice.entries import Entries

NOISE: Final = 0.1
"""What is added to each start is uniform in +- this share of the spread, so that words of the same sememes can part."""


def sense_copies(graph: SememeGraph | None, most: int) -> npt.NDArray[np.int64]:
    """(V,) copies of each word: its senses in the graph, which differ in their sememes, and ``most`` at most.

    Of more senses the first are taken, in the order of the lexicon. A word that no lexicon knows has one copy.

    Raises:
        ConfigError: no graph, or a bound that leaves one copy for each word.
    """
    if graph is None:
        raise ConfigError(
            "task.senses takes the embeddings of a word from its senses; give them with --graph FILE (see 'sememekit "
            "build-sememe-graph'), or set task.senses=false"
        )
    if most < 2:
        raise ConfigError(f"task.senses with task.copies={most}: a word has that many embeddings at most; set 2 or more")
    return np.minimum(np.diff(graph.sense_offsets), most)


@torch.no_grad()
def start_from_sememes(vectors: Tensor, entries: Entries, graph: SememeGraph, spread: float) -> None:
    """Give the copies of annotated words vectors made of sememes, in place.

    A sense begins as the sum of the vectors of its k sememes over the root of k, which is spread as each of them is, and some
    noise. The vectors of sememes are drawn here and kept nowhere. Rows of n-grams, of the sentinel and of words without
    annotation stay as they are.

    Args:
        vectors: (rows, size).
        entries: which row a copy of a word has.
        graph: of the same vocabulary.
        spread: vectors of sememes are uniform in +- this.
    """
    sememes = torch.empty(graph.num_sememes, vectors.shape[1], dtype=vectors.dtype).uniform_(-spread, spread)
    for word in np.flatnonzero(graph.annotated).tolist():
        first = int(graph.sense_offsets[word])
        for copy in range(int(entries.num_copies[word])):
            begin, end = graph.set_offsets[graph.sense_set[first + copy] :][:2]
            own = sememes[graph.set_sememes[begin:end].tolist()]
            noise = torch.empty_like(vectors[0]).uniform_(-NOISE * spread, NOISE * spread)
            vectors[entries.rows[word, copy]] = own.sum(0) / len(own) ** 0.5 + noise
