"""New tables of vectors."""

from __future__ import annotations

from torch import nn


def uniform_embedding(num_rows: int, size: int) -> nn.Embedding:
    """(V, E) vectors, uniform in +-0.1."""
    embedding = nn.Embedding(num_rows, size)
    nn.init.uniform_(embedding.weight, -0.1, 0.1)
    return embedding
