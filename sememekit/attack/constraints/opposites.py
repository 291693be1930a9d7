"""Opposites: a word is not replaced by its opposite."""

from __future__ import annotations

from pathlib import Path
from typing import final

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.opposite_words import built_in_opposites
from sememekit.attack.resources import AttackResources
from sememekit.attack.space import Space
from sememekit.attack.word_pairs import read_pairs
from sememekit.sememes.wordnet import read_wordnet


@final
class Opposites(Constraint):
    """Substitutes that are opposites of the word are out: they change what the text says, and with it its label.

    Neighbours in a space of word vectors are full of them (man and woman, up and down). Pairs come from lists that are given,
    from WordNet's antonyms, and from a short list of our own.
    """

    class Settings(Constraint.Settings):
        """Settings of opposites."""

        files: tuple[str, ...] = ()
        """Lists of two words a line, such as counter-fitting's antonym constraints; the command line's --opposites."""
        wordnet: str = ""
        """Folder of WordNet's data files, whose antonyms count, too; empty for none."""
        built_in: bool = True
        """Also take the short list that comes with sememekit."""

    settings: Opposites.Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        self._sources: dict[str, str] = {}
        pairs: set[frozenset[str]] = set(built_in_opposites()) if settings.built_in else set()
        for file in settings.files:
            path = Path(file).expanduser()
            found, digest = read_pairs(path, "opposites")
            pairs |= found
            self._sources[path.name] = digest
        if settings.wordnet:
            wordnet = read_wordnet(settings.wordnet)
            pairs |= wordnet.antonyms()
            self._sources["wordnet antonyms"] = wordnet.sha256
        self._pairs = frozenset(pairs)

    @property
    def num_pairs(self) -> int:
        """Pairs of all lists together."""
        return len(self._pairs)

    def narrow(self, space: Space) -> Space:
        pairs = zip(space.document.words, space.substitutes, strict=True)
        return space.narrowed(substitutes=tuple(self._allowed(word.text.lower(), found) for word, found in pairs))

    def _allowed(self, word: str, found: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(other for other in found if frozenset((word, other.lower())) not in self._pairs)

    def sources(self) -> dict[str, str]:
        return dict(self._sources)
