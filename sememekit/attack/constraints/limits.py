"""Limits: which places of a text may change, how many, and which texts are attacked at all."""

from __future__ import annotations

import math
from typing import final

from pydantic import Field

from sememekit.attack.constraints import Constraint
from sememekit.attack.resources import AttackResources
from sememekit.attack.space import Space
from sememekit.errors import ConfigError
from sememekit.text.scripts import EAST_ASIAN


@final
class Positions(Constraint):
    """Words of some fields alone may change, and they alone count for length and share of changes."""

    class Settings(Constraint.Settings):
        fields: tuple[str, ...]
        """Names of fields: text, or premise and hypothesis."""

    settings: Positions.Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        strangers = [name for name in settings.fields if name not in resources.field_names]
        if strangers or not settings.fields:
            given = f"no field is called {strangers[0]!r}" if strangers else "no field is named"
            raise ConfigError(f"[constraints.positions] fields: {given}; these data have {', '.join(resources.field_names)}")
        self._fields = {resources.field_names.index(name) for name in settings.fields}

    def narrow(self, space: Space) -> Space:
        return space.inside(lambda word: word.field in self._fields)


@final
class MinimumLength(Constraint):
    """Short examples are skipped, and long ones where ``at_most`` is set."""

    class Settings(Constraint.Settings):
        words: int = Field(default=10, ge=1)
        """Fewest words, marks included, in the fields that may change."""
        at_most: int = Field(default=0, ge=0)
        """Most words; 0 for no limit."""

    settings: MinimumLength.Settings

    def narrow(self, space: Space) -> Space:
        if space.num_words < self.settings.words:
            return space.narrowed(refusal=f"fewer than {self.settings.words} words")
        if self.settings.at_most and space.num_words > self.settings.at_most:
            return space.narrowed(refusal=f"more than {self.settings.at_most} words")
        return space


@final
class CommonWords(Constraint):
    """Substitutes are among the most frequent words of the victim's training; not checked where the victim names no words."""

    class Settings(Constraint.Settings):
        most: int = Field(default=10_000, ge=1)
        """So many of the most frequent words."""

    settings: CommonWords.Settings

    def narrow(self, space: Space) -> Space:
        if self.resources.known_words is None:
            return space
        self._words = self._words or frozenset(self.resources.frequent_words[: self.settings.most])
        return space.filtered(lambda word, other: other.lower() in self._words)

    _words: frozenset[str] = frozenset()


@final
class Length(Constraint):
    """A substitute of a Chinese word has about as many characters."""

    class Settings(Constraint.Settings):
        difference: int = Field(default=1, ge=0)
        """Characters that it may have more or fewer."""

    settings: Length.Settings

    def narrow(self, space: Space) -> Space:
        most = self.settings.difference
        return space.filtered(lambda word, other: not EAST_ASIAN.search(word) or abs(len(other) - len(word)) <= most)


@final
class FrequentWords(Constraint):
    """The most frequent words are never touched (26 of them in the public code of Alzantot et al. 2018)."""

    class Settings(Constraint.Settings):
        count: int = Field(default=26, ge=0)
        """Number of the most frequent words that are never touched."""

    settings: FrequentWords.Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        self._words = frozenset(resources.frequent_words[: settings.count])

    def narrow(self, space: Space) -> Space:
        return space.filtered(may_change=lambda word: word.lower() not in self._words)


@final
class Share(Constraint):
    """At most a share of the words may differ, rounded down.

    The public codes search without a limit and throw a success away that changed more; here no such text is ever tried.
    """

    class Settings(Constraint.Settings):
        most: float = Field(default=0.25, gt=0.0, le=1.0)
        """Share of the words in the fields that may change, marks included."""
        at_least: int = Field(default=0, ge=0)
        """So many words may always change, however short the text."""

    settings: Share.Settings

    def narrow(self, space: Space) -> Space:
        allowed = max(math.floor(self.settings.most * space.num_words + 1e-9), self.settings.at_least)
        return space.narrowed(max_changes=min(space.max_changes, allowed))
