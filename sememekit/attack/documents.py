"""The text of an example: its replaceable words, and the unchanged text between them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sememekit.errors import DataError
from sememekit.text.scripts import UNSPACED_RANGES

Fields = tuple[str, ...]  # one text, or several that are classified together: (premise, hypothesis)

ABBREVIATION: Final = re.compile(r"(?:[^\W\d_]\.){2,}")
_PIECE: Final = re.compile(rf"<[^<>\s]+>|(?<!\S)['’]\w+|{ABBREVIATION.pattern}|\w+(?:['’-]\w+)*|[^\w\s]")
"""A token between angle brackets, a clitic that stands alone, letters with full stops (u.s.), a word, or one mark."""

Cutter = Callable[[str], Sequence[str]]  # a function that segments a text into replaceable words

LONGEST_RUN: Final = 6  # longest stretch of Chinese or Japanese that counts as one word; longer words are rare names

_RUN: Final = re.compile(rf"[{UNSPACED_RANGES}]{{{LONGEST_RUN + 1},}}")


class Word(NamedTuple):
    """One word of a text, with its field and span."""

    field: int
    begin: int
    end: int
    text: str


@dataclass(frozen=True)
class Document:
    """The fields of an example as words; punctuation marks count as words, as in tokenized corpora.

    >>> document = Document.read(("a good film.",))
    >>> [word.text for word in document.words]
    ['a', 'good', 'film', '.']
    >>> document.replace({1: "bad"})
    ('a bad film.',)"""

    fields: Fields
    words: tuple[Word, ...]

    @classmethod
    def read(cls, fields: Fields, cut: Cutter | None = None) -> "Document":
        """Segment the fields into words, with their text unchanged.

        ``cut`` segments text without blanks (Chinese); None cuts at white space and marks. Raises DataError if the segmented
        words do not add up to the text, so that they cannot be replaced."""
        words = (
            Word(number, begin, end, field[begin:end])
            for number, field in enumerate(fields)
            for begin, end in (_spans(field, cut(field)) if cut is not None else (m.span() for m in _PIECE.finditer(field)))
        )
        return cls(fields, tuple(words))

    def replace(self, changes: Mapping[int, str]) -> Fields:
        """Return the fields with the words of ``changes`` (word number -> substitute) replaced; all other text stays."""
        fields = list(self.fields)
        for number in sorted(changes, reverse=True):
            word = self.words[number]
            field = fields[word.field]
            fields[word.field] = field[: word.begin] + changes[number] + field[word.end :]
        return tuple(fields)


def long_run(fields: Fields) -> str:
    """The first stretch of Chinese or Japanese that is too long for one word, or an empty string."""
    return next((match.group() for match in map(_RUN.search, fields) if match is not None), "")


def _spans(field: str, words: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Return the span of each word; joined, the words must equal the field except for white space."""
    end = 0
    for word in words:
        begin = end
        while begin < len(field) and field[begin].isspace():
            begin += 1
        end = begin + len(word)
        if field[begin:end] != word:
            raise DataError(
                f"the segmenter gave {word!r} where the text has {field[begin : begin + 20]!r}: it changes the text, and an "
                "attack must know where each word stands; use characters, fmm, jieba or none"
            )
        yield begin, end
    if field[end:].strip():
        raise DataError(f"the segmenter left {field[end:].strip()[:20]!r} out; use characters, fmm, jieba or none")


def match_case(substitute: str, word: str) -> str:
    """Return the substitute in the case of the word: lower, capitalised or upper."""
    if len(word) > 1 and word.isupper():
        return substitute.upper()
    return substitute[:1].upper() + substitute[1:] if word[:1].isupper() else substitute
