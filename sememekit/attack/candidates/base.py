"""The base class of candidates: one table for all words of an attack, made before it starts."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Final

from sememekit.attack.resources import AttackPart

_SEVERAL: Final = re.compile(r"[\s_]")
"""What stands between the words of an expression, in text or in WordNet's way."""


class Candidates(AttackPart, ABC):
    """Gives words their substitutes.

    >>> candidates = TableCandidates(TableCandidates.Settings(path=substitutes, most=1), resources)
    >>> candidates.table(["good", "film"])
    {'good': ('fine',)}
    """

    @abstractmethod
    def table(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Substitutes of each word, best first; a word without any may be left out. DataError where their file cannot be used.

        No word is its own substitute, none comes twice, and all are single words of ``resources.known_words``: an expression of
        several words, with blanks or underscores between, is none.
        """

    def usable(self, word: str, substitutes: Iterable[str], most: int = 0) -> tuple[str, ...]:
        """The substitutes that the contract allows, ``most`` of them at most; 0 for all."""
        known = self.resources.known_words
        fine = [
            other
            for other in dict.fromkeys(substitutes)
            if other != word and not _SEVERAL.search(other.strip("_")) and (known is None or other in known)
        ]
        return tuple(fine[:most] if most else fine)
