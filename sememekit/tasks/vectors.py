"""Initial word vectors: random, or pretrained for classifiers."""

from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from sememekit import config
from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.figures import percent
from sememekit.text.vectors import read_vectors
from sememekit.text.vocabulary import Vocabulary


class VectorCoverage(Record):
    """Coverage of a text by the pretrained vectors of a classifier; marks around texts are not counted."""

    split: str
    file: str
    words: int
    words_with_vector: int
    """words, words_with_vector: different words of the split."""
    tokens: int
    tokens_with_vector: int
    """tokens, tokens_with_vector: tokens of the split, those beyond ``max_length`` included."""
    outside: str
    """Treatment of other words: "random", "unknown" (read as ``<unk>``) or "drop" (left out of the text)."""

    def sentence(self) -> str:
        others = {
            "random": "the others have random ones",
            "unknown": "the others are read as <unk>",
            "drop": "the others are left out of the texts",
        }
        tokens, words = self.tokens_with_vector, self.words_with_vector
        return (
            f"{percent(tokens / max(1, self.tokens))} of the {self.tokens:,} tokens of {self.split} ({words:,} of "
            f"{self.words:,} different ones) have one in {self.file}; {others[self.outside]}"
        )


def vector_coverage(
    counts: NDArray[np.integer], has_vector: NDArray[np.bool_], *, split: str, file: str, outside: str
) -> VectorCoverage:
    """The coverage of a split with the word counts ``counts`` (V,)."""
    return VectorCoverage(
        split=split,
        file=file,
        words=int((counts > 0).sum()),
        words_with_vector=int((counts[has_vector] > 0).sum()),
        tokens=int(counts.sum()),
        tokens_with_vector=int(counts[has_vector].sum()),
        outside=outside,
    )


def load_vectors(file: str, vocabulary: Vocabulary, embedding: nn.Embedding, deviation: float = 0.1) -> Tensor:
    """Load the vectors of a file into an embedding of standard ``deviation``; return a mask (V,) of the words in the file.

    A word outside the file keeps its random vector, scaled to the standard deviation of the file. Raises DataError: the file is
    unusable, has vectors of another size, or has no word of the vocabulary."""
    if not Path(file).is_file():
        raise DataError(f"{file}: no such file; say where the word vectors are with --vectors FILE")
    found, size = read_vectors(Path(file), words=vocabulary), embedding.embedding_dim
    if found.size != size:
        raise DataError(
            f"{file}: vectors of {found.size} numbers, where task.embedding_size is {size}; "
            f"add --set task.embedding_size={found.size}, or give other vectors"
        )
    if not found.words:
        raise DataError(
            f"{file}: has none of the {len(vocabulary):,} words of the vocabulary; "
            "is it of another language, or cased where the text is not?"
        )
    ids = torch.from_numpy(vocabulary.encode(found.words))
    known = torch.zeros(len(vocabulary), dtype=torch.bool)
    known[ids] = True
    with torch.no_grad():
        embedding.weight *= float(found.matrix.std()) / deviation
        embedding.weight[ids] = torch.from_numpy(found.matrix)
    return known


SHORT = 0.1  # initial word vectors of the papers' language models are uniform in +- this


def spread_of(length: float, size: int) -> float:
    """Return a so that vectors uniform in +-a have root mean square length ``length``: size a^2 / 3 = length^2."""
    return length * (3 / size) ** 0.5


class StartSettings(config.Settings):
    """Settings of a task with word vectors that are learned from a random start."""

    embedding_size: int
    """E, the size of the word vectors."""
    spread: float | None = Field(default=None, gt=0.0)
    """Initial word vectors are uniform in +- this. Unset: 0.1, or for optimisers of ``start_lengths`` the value that gives
    vectors of every size the same length, and so the first logits the same variance. The plan of a run has the value."""

    start_lengths: ClassVar[dict[str, float]] = {"adam": 1.7}
    """Optimiser -> root mean square length of a vector at the start, as measured in docs/training.md."""

    unit_lengths: ClassVar[dict[str, float]] = {}
    """Lengths for encoders that normalise their output; an absent optimiser has the length in ``start_lengths``."""

    def settled(self, optimizer: str, unit_contexts: bool) -> Self:
        if self.spread is not None:
            return self
        length = (self.start_lengths | self.unit_lengths if unit_contexts else self.start_lengths).get(optimizer)
        return self.model_copy(update={"spread": SHORT if length is None else spread_of(length, self.embedding_size)})

    @property
    def start_spread(self) -> float:
        """``spread``, or 0.1 if no plan has resolved it."""
        return SHORT if self.spread is None else self.spread
