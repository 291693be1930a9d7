"""Limits on places and number of changes, and on the texts that are attacked."""

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
    """Allow changes in some fields only; length and share of changes count the words of these fields alone."""

    class Settings(Constraint.Settings):
        fields: tuple[str, ...]
        """Names of fields: text, or premise and hypothesis."""

    settings: Settings

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
    """Skip short examples, and long ones if ``at_most`` is set."""

    class Settings(Constraint.Settings):
        words: int = Field(default=10, ge=1)
        """Fewest words, marks included, in the fields that may change."""
        at_most: int = Field(default=0, ge=0)
        """Most words; 0 for no limit."""

    settings: Settings

    def narrow(self, space: Space) -> Space:
        if space.num_words < self.settings.words:
            return space.narrowed(refusal=f"fewer than {self.settings.words} words")
        if self.settings.at_most and space.num_words > self.settings.at_most:
            return space.narrowed(refusal=f"more than {self.settings.at_most} words")
        return space


@final
class CommonWords(Constraint):
    """Require substitutes among the most frequent words of the victim's training, or of the attacked file if the victim names
    no words. Not checked, as the report says, if the file has too few words or ``attack.known_words`` is off."""

    class Settings(Constraint.Settings):
        most: int = Field(default=10_000, ge=1)
        """Number of most frequent words."""

    settings: Settings

    @property
    def told(self) -> str:
        if self.resources.known_words is not None:
            return ""
        if self.resources.common_words:
            return "common words: of the attacked file, since the victim names no words (attribute words)"
        return "common words not checked: attack.known_words is off, or the victim names no words and the file has too few"

    def narrow(self, space: Space) -> Space:
        known = self.resources.known_words is not None
        listed = self.resources.frequent_words if known else self.resources.common_words
        if not listed:
            return space
        self._words = self._words or frozenset(listed[: self.settings.most])
        return space.filtered(lambda word, other: other.lower() in self._words)

    _words: frozenset[str] = frozenset()


@final
class Length(Constraint):
    """Require that a substitute of a Chinese word has about as many characters as the word."""

    class Settings(Constraint.Settings):
        difference: int = Field(default=1, ge=0)
        """Largest difference in characters."""

    settings: Settings

    def narrow(self, space: Space) -> Space:
        most = self.settings.difference
        return space.filtered(lambda word, other: not EAST_ASIAN.search(word) or abs(len(other) - len(word)) <= most)


@final
class FrequentWords(Constraint):
    """Never replace the most frequent words (26 in the public code of Alzantot et al. 2018)."""

    class Settings(Constraint.Settings):
        count: int = Field(default=26, ge=0)
        """Number of most frequent words that are never replaced."""

    settings: Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        self._words = frozenset(resources.frequent_words[: settings.count])

    def narrow(self, space: Space) -> Space:
        return space.filtered(lambda word, other: word.lower() not in self._words)


@final
class Share(Constraint):
    """Limit the share of changed words (rounded down).

    The public codes search without limit and discard successes with more changes; here such texts are never tried."""

    class Settings(Constraint.Settings):
        most: float = Field(default=0.25, gt=0.0, le=1.0)
        """Share of the words in the fields that may change, marks included."""
        at_least: int = Field(default=0, ge=0)
        """Number of words that may always change, however short the text."""

    settings: Settings

    def narrow(self, space: Space) -> Space:
        allowed = max(math.floor(self.settings.most * space.num_words + 1e-9), self.settings.at_least)
        return space.narrowed(max_changes=min(space.max_changes, allowed))
