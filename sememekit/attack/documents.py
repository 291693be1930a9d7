"""A text as an attack sees it: words that may be exchanged, and everything between them left as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

Fields = tuple[str, ...]
"""One text, or several that are classified together: (premise, hypothesis)."""

_PIECE: Final = re.compile(r"<[^<>\s]+>|(?<!\S)['’]\w+|\w+(?:['’-]\w+)*|[^\w\s]")
"""A token between angle brackets, a clitic that stands alone, a word, or one mark."""


@dataclass(frozen=True)
class Word:
    """One word of a text: which field it is in, and from where to where."""

    field: int
    begin: int
    end: int
    text: str


@dataclass(frozen=True)
class Document:
    """The fields of an example cut into words; marks of punctuation count as words, as in tokenised corpora.

    Attributes:
        fields: as given.
        words: in order, field by field.
    """

    fields: Fields
    words: tuple[Word, ...]

    @classmethod
    def read(cls, fields: Fields) -> Document:
        """Cut the fields into words. Text without blanks between its words (Chinese) must be segmented first."""
        words = (
            Word(number, match.start(), match.end(), match.group())
            for number, field in enumerate(fields)
            for match in _PIECE.finditer(field)
        )
        return cls(fields, tuple(words))

    def replace(self, changes: Mapping[int, str]) -> Fields:
        """The fields with other words in some places; blanks and all else stay.

        Args:
            changes: number of a word -> what stands there instead.
        """
        fields = list(self.fields)
        for number in sorted(changes, reverse=True):
            word = self.words[number]
            field = fields[word.field]
            fields[word.field] = field[: word.begin] + changes[number] + field[word.end :]
        return tuple(fields)


def match_case(substitute: str, word: str) -> str:
    """The substitute, written in capitals as the word is: none, the first, or all."""
    if len(word) > 1 and word.isupper():
        return substitute.upper()
    return substitute[:1].upper() + substitute[1:] if word[:1].isupper() else substitute
