"""Paraphrases: only listed pairs replace each other."""

from __future__ import annotations

from typing import final

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.resources import AttackResources
from sememekit.attack.space import Space
from sememekit.attack.word_pairs import read_lists
from sememekit.errors import ConfigError


@final
class Paraphrases(Constraint):
    """Substitutes that do not stand in a list of paraphrases with the word are out, wherever they come from."""

    class Settings(Constraint.Settings):
        """Settings of paraphrases."""

        files: tuple[str, ...] = ()
        """Lists of two words a line, such as counter-fitting's synonyms out of PPDB; the command line's --paraphrases."""

    settings: Paraphrases.Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        if not settings.files:
            raise ConfigError("[constraints.paraphrases] needs a list of two words a line: name it with --paraphrases FILE")
        self._pairs, self.hashes = read_lists(settings.files, "paraphrases")

    def narrow(self, space: Space) -> Space:
        return space.filtered(lambda word, other: frozenset((word.lower(), other.lower())) in self._pairs)
