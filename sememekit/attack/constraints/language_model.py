"""Language model: only the substitutes that are most probable in place."""

from __future__ import annotations

from typing import final

import numpy as np
from pydantic import Field

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.resources import AttackResources
from sememekit.attack.space import Space
from sememekit.errors import ConfigError


@final
class LanguageModelConstraint(Constraint):
    """For each word, the ``keep`` substitutes that make the sentence most probable under a language model are kept.

    Alzantot et al. 2018 rank by a language model of a billion words; their code shows it one word before the place and carries
    a state that is never reset, so that its scores depend on the history of calls. Here one of our own models reads the whole
    field, with the one substitute in it and all else as given: the ranks are known before the search begins. Equal ranks keep
    the order of the candidates.
    """

    class Settings(Constraint.Settings):
        run: str = ""
        """The run folder of the model; the command line's --lm fills it."""
        keep: int = Field(default=4, ge=1)
        """Substitutes that stay for each word."""

    settings: LanguageModelConstraint.Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        if resources.sentence_nats is None:
            raise ConfigError("[constraints.language_model] needs a language model: name its run folder with --lm RUN")
        self._nats = resources.sentence_nats

    def narrow(self, space: Space) -> Space:
        document, keep = space.document, self.settings.keep
        crowded = [number for number in space.positions if len(space.substitutes[number]) > keep]
        sentences = []
        for number in crowded:
            field = document.words[number].field
            inside = [(index, word.text) for index, word in enumerate(document.words) if word.field == field]
            for other in space.substitutes[number]:
                sentences.append([other if index == number else text for index, text in inside])
        if not sentences:
            return space
        nats, found, begin = self._nats(sentences), list(space.substitutes), 0
        for number in crowded:
            here = nats[begin : begin + len(found[number])]
            begin += len(here)
            best = np.sort(np.argsort(here, kind="stable")[:keep])
            found[number] = tuple(found[number][index] for index in best)
        return space.narrowed(substitutes=tuple(found))
