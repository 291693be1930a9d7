"""Pairs of words: opposites do not replace each other; with a list of paraphrases, only listed pairs do."""

from __future__ import annotations

from typing import Any, final

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.resources import AttackResources
from sememekit.attack.space import Space
from sememekit.attack.word_pairs import built_in_opposites, read_lists
from sememekit.errors import ConfigError
from sememekit.sememes.wordnet import read_wordnet


@final
class Opposites(Constraint):
    """Substitutes that are opposites of the word are out: they change what the text says, and with it its label.

    Neighbours in a space of word vectors are full of them (man and woman, up and down). Pairs come from lists that are given,
    from WordNet's antonyms, and from a short list of our own.
    """

    class Settings(Constraint.Settings):
        files: tuple[str, ...] = ()
        """Lists of two words a line, such as counter-fitting's antonym constraints; the command line's --opposites."""
        wordnet: str = ""
        """Folder of WordNet's data files, whose antonyms count, too; empty for none."""
        built_in: bool = True
        """Also take the short list that comes with sememekit."""

    settings: Opposites.Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        self._pairs, self.hashes = read_lists(settings.files, "opposites")
        if settings.built_in:
            self._pairs |= built_in_opposites()
        if settings.wordnet:
            wordnet = read_wordnet(settings.wordnet)
            self._pairs |= wordnet.antonyms()
            self.hashes["wordnet antonyms"] = wordnet.sha256

    @property
    def told(self) -> str:
        given = self.settings.files or self.settings.wordnet
        lists = "with the lists given" if given else "our short list alone, no antonym list was given"
        return f"opposites left out: {len(self._pairs):,} pairs, {lists}"

    def narrow(self, space: Space) -> Space:
        return space.filtered(lambda word, other: frozenset((word.lower(), other.lower())) not in self._pairs)


@final
class Paraphrases(Constraint):
    """Substitutes that do not stand in a list of paraphrases with the word are out, wherever they come from."""

    class Settings(Constraint.Settings):
        files: tuple[str, ...] = ()
        """Lists of two words a line, such as counter-fitting's synonyms out of PPDB; the command line's --paraphrases."""

    settings: Paraphrases.Settings

    @classmethod
    def check_settings(cls, settings: Any, *, language_model: bool) -> None:
        if not settings.files:
            raise ConfigError("[constraints.paraphrases] needs a list of two words a line: name it with --paraphrases FILE")

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        self._pairs, self.hashes = read_lists(settings.files, "paraphrases")

    def narrow(self, space: Space) -> Space:
        return space.filtered(lambda word, other: frozenset((word.lower(), other.lower())) in self._pairs)
