"""Neighbours in a space of word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sememekit.attack.candidates.base import Candidates
from sememekit.errors import ConfigError
from sememekit.files import at_home
from sememekit.text.vectors import read_vectors

_WORDS_AT_ONCE: Final = 256


@final
class EmbeddingCandidates(Candidates):
    """The nearest words, nearest first, whose SQUARED Euclidean distance is below ``delta``.

    As the public code of Alzantot et al. 2018, but for words without a vector: there they sit at the origin and are neighbours
    of each other; here they have no neighbours and are none.
    """

    class Settings(Candidates.Settings):
        path: str = ""
        """Word vectors as text, ``.xz`` too. The paper takes counter-fitted ones."""
        delta: float = Field(default=0.5, gt=0.0)
        """Squared distance that a neighbour must stay below."""
        most: int = Field(default=8, ge=1)
        """Neighbours a word, before the words that the victim does not know are left out of the search: only known words are
        looked at."""
        normalise: bool = False
        """Make all vectors one long first; the squared distance is then 2 - 2 cos."""

    settings: EmbeddingCandidates.Settings

    @classmethod
    def check_settings(cls, settings: Any, *, language_model: bool) -> None:
        if not settings.path:
            raise ConfigError("[candidates] embedding: name a file of word vectors with --vectors FILE")

    def table(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        known = self.resources.known_words
        vectors = read_vectors(at_home(self.settings.path), words=None if known is None else known | set(words))
        self.hashes = {Path(self.settings.path).name: vectors.sha256}
        matrix = vectors.matrix.astype(np.float64)
        lengths = np.linalg.norm(matrix, axis=1)
        if self.settings.normalise:
            matrix = matrix / np.where(lengths > 0, lengths, 1.0)[:, None]
        allowed = [row for row, word in enumerate(vectors.words) if lengths[row] > 0 and (known is None or word in known)]
        asked = [word for word in dict.fromkeys(words) if word in vectors.row_of and lengths[vectors.row_of[word]] > 0]
        names, targets = [vectors.words[row] for row in allowed], matrix[allowed]
        found: dict[str, tuple[str, ...]] = {}
        for begin in range(0, len(asked), _WORDS_AT_ONCE):
            block = asked[begin : begin + _WORDS_AT_ONCE]
            distances = squared_distances(matrix[[vectors.row_of[word] for word in block]], targets)
            for word, row in zip(block, distances, strict=True):
                found[word] = self._nearest(word, row, names)
        return found

    def _nearest(self, word: str, distances: NDArray[np.float64], names: list[str]) -> tuple[str, ...]:
        near = np.flatnonzero(distances < self.settings.delta)
        order = near[np.argsort(distances[near], kind="stable")]
        return self.usable(word, (names[index] for index in order[: self.settings.most + 1]), self.settings.most)


def squared_distances(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, m) squared Euclidean distances between rows (n, E) and (m, E), never below zero."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None] - 2.0 * (first @ second.T)
    return np.maximum(squares, 0.0)
