"""Paraphrases: only listed pairs replace each other."""

from __future__ import annotations

from pathlib import Path
from typing import final

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.resources import AttackResources
from sememekit.attack.space import Space
from sememekit.attack.word_pairs import read_pairs
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
        self._sources: dict[str, str] = {}
        pairs: set[frozenset[str]] = set()
        for file in settings.files:
            path = Path(file).expanduser()
            found, digest = read_pairs(path, "paraphrases")
            pairs |= found
            self._sources[path.name] = digest
        self._pairs = frozenset(pairs)

    def narrow(self, space: Space) -> Space:
        pairs = zip(space.document.words, space.substitutes, strict=True)
        return space.narrowed(substitutes=tuple(self._allowed(word.text.lower(), found) for word, found in pairs))

    def _allowed(self, word: str, found: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(other for other in found if frozenset((word, other.lower())) in self._pairs)

    def sources(self) -> dict[str, str]:
        return dict(self._sources)
