"""Similarity: the changed text stays near the original in a space of word vectors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sememekit.attack.constraints import Check, TextConstraint
from sememekit.attack.resources import AttackResources
from sememekit.attack.space import Rows, Space
from sememekit.files import at_home
from sememekit.text.vectors import read_vectors

_ROUNDING: Final = 1e-9


@final
class Similarity(TextConstraint):
    """Keep texts with cos(s, s') >= ``least``, with s the sum of the word vectors of a field before and s' after the changes,
    and substitutes with cos(v, v') >= ``each``, with v the vector of the word and v' of its substitute.

    The mean of word vectors is the plainest sentence encoder; every field has to pass. One word moves the sum little, so
    ``least`` bounds the change of the text but hardly separates synonyms from other words; ``each`` does (docs/attacks.md).
    Substitutes without a vector are forbidden. With ``each`` above -1, words without a vector are not replaced. All other words
    without a vector add nothing. A word is looked up as written, then in lower case."""

    class Settings(TextConstraint.Settings):
        path: str = ""
        """Word vectors as text, ``.xz`` too (default: of embedding candidates). The command line's --vectors."""
        least: float = Field(default=0.98, ge=-1.0, le=1.0)
        """Least cosine of the text before and after; -1 for no bound. Without both bounds similarity is only measured."""
        each: float = Field(default=0.3, ge=-1.0, le=1.0)
        """Least cosine of each word and its substitute; -1 for no bound."""

    settings: Settings

    required: ClassVar[Mapping[str, str]] = {
        "path": "[constraints.similarity] needs word vectors: name their file with --vectors FILE"
    }

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        path, words = at_home(settings.path), resources.words
        wanted = None if words is None else words | {word.lower() for word in words}
        self._vectors = read_vectors(path, words=wanted)
        self.hashes = {path.name: self._vectors.sha256}

    @property
    def told(self) -> str:
        file = Path(self.settings.path).name
        return (
            f"similarity: cosine of the text before and after at least {self.settings.least:g}, of each word and its "
            f"substitute at least {self.settings.each:g}, vectors {file}"
        )

    def check(self, space: Space) -> Check:
        words = space.document.words
        fields = range(len(space.document.fields))
        sums_FE = self._sums([[word.text for word in words if word.field == field] for field in fields])
        places = [(words[number], space.substitutes[number]) for number in space.positions]
        steps = [(word.field, *self._steps(word.text, substitutes)) for word, substitutes in places]

        def allowed(rows_NP: Rows) -> NDArray[np.bool_]:
            changed_NFE = np.repeat(sums_FE[None], len(rows_NP), axis=0)
            known_N = np.ones(len(rows_NP), dtype=bool)
            for column, (field, step_CE, known_C) in enumerate(steps):
                changed_NFE[:, field] += step_CE[rows_NP[:, column]]
                known_N &= known_C[rows_NP[:, column]]
            return known_N & (_cosines(changed_NFE, sums_FE) >= self.settings.least - _ROUNDING).all(axis=1)

        return allowed

    def cosine(self, before: Sequence[str], after: Sequence[str]) -> float:
        """Return the cosine of a field before and after its changes, given as words."""
        return float(_cosines(*self._sums([before, after])))

    def _sums(self, fields: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """(F, E) sums of the vectors of the words of each field."""
        rows = [[row for word in words if (row := self._row(word)) is not None] for words in fields]
        return np.stack([self._vectors.matrix[found].sum(axis=0, dtype=np.float64) for found in rows])

    def _steps(self, word: str, substitutes: tuple[str, ...]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the difference that each choice at a place makes to the sum (none first), and whether its vector is near."""
        rows = [self._row(other) for other in substitutes]
        step_CE = np.zeros((1 + len(rows), self._vectors.size))
        before = self._row(word)
        for choice, row in enumerate(rows, start=1):
            if row is not None:
                step_CE[choice] += self._vectors.matrix[row]
            if before is not None:
                step_CE[choice] -= self._vectors.matrix[before]
        return step_CE, np.array([True, *(self._near(before, row) for row in rows)])

    def _near(self, before: int | None, row: int | None) -> bool:
        """True if both words have vectors with a cosine of at least ``each``."""
        if row is None or before is None or self.settings.each <= -1.0:
            return self.settings.each <= -1.0 and (row is not None or self.settings.least <= -1.0)
        one, two = self._vectors.matrix[[before, row]].astype(np.float64)
        return bool(_cosines(one, two) >= self.settings.each - _ROUNDING)

    def _row(self, word: str) -> int | None:
        found = self._vectors.row_of
        return found.get(word, found.get(word.lower()))


def _cosines(one: NDArray[np.float64], two: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cosines along the last axis; 1 for equal vectors, 0 for other pairs with a vector of zeros."""
    dots, lengths = (one * two).sum(axis=-1), np.linalg.norm(one, axis=-1) * np.linalg.norm(two, axis=-1)
    cosines = np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)
    return np.where((one == two).all(axis=-1), 1.0, cosines)
