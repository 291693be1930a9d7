"""Synonyms from WordNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from pydantic import Field

from sememekit.attack.candidates.base import Candidates
from sememekit.sememes.wordnet import read_wordnet


@final
class WordNetCandidates(Candidates):
    """Words that share a synset, and with it a part of speech, with the word; those of its first synset first."""

    class Settings(Candidates.Settings):
        path: str = ""
        """Folder of WordNet's data files; empty for Debian's."""
        most: int = Field(default=0, ge=0)
        """Substitutes a word; 0 for all."""

    settings: WordNetCandidates.Settings

    def table(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        wordnet = read_wordnet(self.settings.path)
        self.hashes = {"wordnet": wordnet.sha256}
        return {word: self.usable(word, wordnet.synonyms(word), self.settings.most) for word in dict.fromkeys(words)}
