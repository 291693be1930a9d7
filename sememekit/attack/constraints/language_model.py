"""Constraints by a language model: only the substitutes most probable in context, or texts that stay about as probable."""

from collections.abc import Mapping
from typing import ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sememekit.attack.constraints import Check, Constraint, TextConstraint
from sememekit.attack.space import Rows, Space

_ROUNDING: Final = 1e-6
"""Losses (in nats) that differ by less count as equal, since rounding depends on the other rows of the batch."""


@final
class LanguageModelConstraint(Constraint):
    """Keep for each word the substitutes that make the sentence most probable under a language model.

    Alzantot et al. 2018 rank by a language model of a billion words; their code gives the model one word of left context and
    never resets its state, so that scores depend on earlier calls. Here a sememekit model reads the whole field with one word
    substituted, so that ranks are known before the search. Equal ranks keep the order of the candidates."""

    class Settings(Constraint.Settings):
        keep: int = Field(default=4, ge=1)
        """Substitutes to keep for each word."""

    settings: Settings

    asks_model_as: ClassVar[str] = "language_model"

    def narrow(self, space: Space) -> Space:
        keep = self.settings.keep
        crowded = [number for number in space.positions if len(space.substitutes[number]) > keep]
        sentences = [_sentence(space, number, {number: other}) for number in crowded for other in space.substitutes[number]]
        if not sentences:
            return space
        nats = np.array([sum(of_words) for of_words in _nats(self, sentences)])
        found, begin = list(space.substitutes), 0
        for number in crowded:
            here = nats[begin : begin + len(found[number])]
            begin += len(here)
            best = np.sort(np.argsort(here, kind="stable")[:keep])
            found[number] = tuple(found[number][index] for index in best)
        return space.narrowed(substitutes=tuple(found))


@final
class Perplexity(TextConstraint):
    """Refuse texts whose perplexity under a language model rises by more than a factor.

    The perplexity of a field is exp of its mean loss in nats; every changed field must pass."""

    class Settings(TextConstraint.Settings):
        most: float = Field(default=1.5, gt=0.0)
        """Largest perplexity of a changed field over the perplexity of the original field."""

    settings: Settings

    asks_model_as: ClassVar[str] = "perplexity"

    @property
    def told(self) -> str:
        return f"perplexity: at most {self.settings.most:g} times the original text's, under the language model"

    def check(self, space: Space) -> Check:
        words = space.document.words
        places = dict.fromkeys(words[number].field for number in space.positions)
        first = {field: next(number for number, word in enumerate(words) if word.field == field) for field in places}
        before = dict(zip(first, self._means([_sentence(space, number, {}) for number in first.values()]), strict=True))
        limit = float(np.log(self.settings.most)) + _ROUNDING

        def allowed(rows_NP: Rows) -> NDArray[np.bool_]:
            rows, fields, sentences = [], [], []
            for index, row in enumerate(rows_NP):
                changes = space.changes(row)
                for field in sorted({words[number].field for number in changes}):
                    rows.append(index)
                    fields.append(field)
                    sentences.append(_sentence(space, first[field], changes))
            passes = np.ones(len(rows_NP), dtype=bool)
            for index, field, mean in zip(rows, fields, self._means(sentences), strict=True):
                passes[index] &= mean - before[field] <= limit
            return passes

        return allowed

    def _means(self, sentences: list[list[str]]) -> list[float]:
        """Return the mean loss (nats) of each sentence; 0 for a sentence without predictions."""
        found = _nats(self, sentences)
        return [sum(nats) / len(nats) if nats else 0.0 for nats in found]


def _nats(part: Constraint, sentences: list[list[str]]) -> list[list[float]]:
    assert part.resources.sentence_nats is not None
    return part.resources.sentence_nats(sentences) if sentences else []


def _sentence(space: Space, number: int, changes: Mapping[int, str]) -> list[str]:
    """Return the changed words of the field that contains word ``number``."""
    words, field = space.document.words, space.document.words[number].field
    return [changes.get(index, word.text) for index, word in enumerate(words) if word.field == field]
