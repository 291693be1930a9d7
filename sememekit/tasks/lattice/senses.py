"""Embeddings of entries, and in sense lattices those of senses, each started from its sememes."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from sememekit.sememes import SememeGraph
from sememekit.tasks.lattice.entries import Entries
from sememekit.tasks.lattice.settings import LatticeSettings

NOISE: Final = 0.1
"""What is added to each start is uniform in +- this share of the spread, so that words of the same sememes can part."""


def make_embedding(settings: LatticeSettings, entries: Entries, graph: SememeGraph | None) -> nn.Embedding:
    """(rows, E) vectors of the entries, uniform in +-``spread``; with ``senses`` those of annotated words from sememes."""
    embedding = nn.Embedding(len(entries.names), settings.embedding_size)
    nn.init.uniform_(embedding.weight, -settings.start_spread, settings.start_spread)
    if settings.senses and graph is not None:
        start_from_sememes(embedding.weight, entries, graph, settings.start_spread)
    return embedding


@torch.no_grad()
def start_from_sememes(vectors: Tensor, entries: Entries, graph: SememeGraph, spread: float) -> None:
    """Give the copies of annotated words vectors (rows, E) made of sememes, in place.

    A sense begins as the sum of the vectors of its k sememes over the root of k, which is spread as each of them is, and some
    noise. The vectors of sememes are uniform in +- ``spread`` and kept nowhere. Other rows stay as they are.
    """
    sememes = torch.empty(graph.num_sememes, vectors.shape[1], dtype=vectors.dtype).uniform_(-spread, spread)
    for word in np.flatnonzero(graph.annotated).tolist():
        first = int(graph.sense_offsets[word])
        for copy in range(int(entries.num_copies[word])):
            begin, end = graph.set_offsets[graph.sense_set[first + copy] :][:2]
            own = sememes[graph.set_sememes[begin:end].tolist()]
            noise = torch.empty_like(vectors[0]).uniform_(-NOISE * spread, NOISE * spread)
            vectors[entries.rows[word, copy]] = own.sum(0) / len(own) ** 0.5 + noise
