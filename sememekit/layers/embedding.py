"""New tables of vectors."""

from __future__ import annotations

from typing import final

from torch import Tensor, nn

from sememekit.layers.shards import WordShard


@final
class WordVectors(nn.Embedding):
    """``nn.Embedding`` of words, whose rows several processes may divide among themselves.

    Attributes:
        shard: of which words this process has the rows; None: of all.
    """

    shard: WordShard | None = None

    def shard_words(self, shard: WordShard) -> None:
        """Keep the rows of some words alone; once for a table that several modules share."""
        if self.shard is None:
            shard.cut_(self.weight)
            self.num_embeddings, self.shard = len(self.weight), shard

    def forward(self, input: Tensor) -> Tensor:
        """Vectors (..., E) of word ids (...). In shards these are (T, B): in training of this rank's columns, in evaluation the
        same on all ranks."""
        if self.shard is None:
            return super().forward(input)
        return self.shard.look_up(self.weight, input, self.training, self.sparse)


def uniform_embedding(num_rows: int, size: int, spread: float = 0.1) -> WordVectors:
    """(V, E) vectors, uniform in +-``spread``."""
    embedding = WordVectors(num_rows, size)
    nn.init.uniform_(embedding.weight, -spread, spread)
    return embedding
