"""New tables of vectors."""

from __future__ import annotations

from torch import nn


def uniform_embedding(num_rows: int, size: int, spread: float = 0.1) -> nn.Embedding:
    """(V, E) vectors, uniform in +-``spread``."""
    embedding = nn.Embedding(num_rows, size)
    nn.init.uniform_(embedding.weight, -spread, spread)
    return embedding
