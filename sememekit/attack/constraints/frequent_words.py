"""Frequent words: the most frequent words are not replaced."""

from __future__ import annotations

from typing import final

from pydantic import Field

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.resources import AttackResources
from sememekit.attack.space import Space


@final
class FrequentWords(Constraint):
    """The ``count`` most frequent words are never touched (26 in the public code of Alzantot et al. 2018)."""

    class Settings(Constraint.Settings):
        """Settings of frequent words."""

        count: int = Field(default=26, ge=0)
        """How many words."""

    settings: FrequentWords.Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        self._words = frozenset(resources.frequent_words[: settings.count])

    def narrow(self, space: Space) -> Space:
        return space.filtered(may_change=lambda word: word.lower() not in self._words)
