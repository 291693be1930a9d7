"""The form of a text before segmentation, in data of a benchmark: lower case, half width, one word for all numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sememekit.errors import DataError
from sememekit.text.normalise import CLASSES_RULE, HALF_WIDTH_RULE, around_numbers, classify, to_half_width
from sememekit.text.segmenters import Segmenter, WhiteSpace

_NUMBER: Final = re.compile(r"(?<!\S)[+-]?(?:\d+(?:[.,:/-]\d+)*|[.,]\d+)%?(?!\S)")

_WORD: Final = re.compile(r"\S+")

OPENING: Final = ("<s>", "<bos>", "<sos>")
CLOSING: Final = ("</s>", "<eos>")
"""Marks of the ends of a sentence, which other programs write into text."""


def has_ends(text: str) -> bool:
    """Return whether marks of the ends of a sentence stand at the ends of a line."""
    return "<" in text and (text.lstrip().startswith(OPENING) or text.rstrip().endswith(CLOSING))


def without_ends(text: str) -> str:
    """A line without marks of its ends, where some stand there: the end is read anyway, and would be predicted twice.

    >>> without_ends("<s> a b </s>")
    'a b'
    """
    if not has_ends(text):
        return text
    bare = text.strip()
    while bare.startswith(OPENING):
        bare = bare[bare.index(">") + 1 :].lstrip()
    while bare.endswith(CLOSING):
        bare = bare[: bare.rindex("<")].rstrip()
    return bare


def cut_apart(parts: Iterable[str], segmenter: Segmenter) -> list[str]:
    """The words of a text in parts, of which every second one is a word."""
    return [word for number, part in enumerate(parts) for word in ([part] if number % 2 else segmenter.segment(part))]


@dataclass(frozen=True)
class TextForm:
    """Lower case, half width, and one word in place of every number, year, day or hour; by default the text as it is.

    Both ``preprocess`` and the commands that read typed text use it. A number is a word of digits, with an optional sign, with
    ``. , : / -`` between digits, and an optional ``%``. Where white space does not part the words, numbers are known only after
    segmentation: so ``text`` goes before the segmenter, and ``words`` after it; ``cut`` does all three. Applying the form twice
    changes nothing.

    Attributes:
        lower: bring the text into lower case.
        numbers_to: the word for every number, such as ``N``; None keeps the numbers.
        half_width: bring full-width letters and digits into half width.
        classes: a word for numbers, years, days and hours each, as in People's Daily (``normalise.classify``).
    """

    lower: bool = False
    numbers_to: str | None = None
    half_width: bool = False
    classes: bool = False

    @classmethod
    def recorded(cls, options: Mapping[str, object], normalisation: str, where: str) -> TextForm:
        """The form that the ``options`` and the ``normalisation`` of a signature describe; ``where`` is its file. Raises
        DataError for options that no version writes."""
        lower, numbers_to = options.get("lower", False), options.get("numbers_to")
        if not isinstance(lower, bool) or not (numbers_to is None or isinstance(numbers_to, str)):
            raise DataError(
                f"{where}: options.lower = {lower!r:.40} and options.numbers_to = {numbers_to!r:.40}; true or false and a word "
                "are needed, so it was changed after writing"
            )
        return cls(lower, numbers_to, HALF_WIDTH_RULE in normalisation, CLASSES_RULE in normalisation)

    @property
    def changes(self) -> bool:
        return self != TextForm()

    @property
    def rules(self) -> list[str]:
        """What it does, in words, for the ``normalisation`` of a signature."""
        rules = [HALF_WIDTH_RULE] * self.half_width + ["lower case"] * self.lower
        rules += [f"numbers to {self.numbers_to}"] * (self.numbers_to is not None)
        return rules + [CLASSES_RULE] * self.classes

    def text(self, text: str) -> str:
        text = self._letters(text)
        return text if self.numbers_to is None else _NUMBER.sub(self.numbers_to.replace("\\", r"\\"), text)

    def _letters(self, text: str) -> str:
        text = to_half_width(text) if self.half_width else text
        return self._lowered(text) if self.lower else text

    def _lowered(self, text: str) -> str:
        mark = self.numbers_to
        if mark is None or mark not in text or mark.lower() == mark:
            return text.lower()
        return _WORD.sub(lambda word: word[0] if word[0] == mark else word[0].lower(), text)

    def words(self, words: Iterable[str]) -> list[str]:
        """The words that the segmenter gave for ``text``."""
        words = map(classify, words) if self.classes else words
        if self.numbers_to is None:
            return list(words)
        return [self.numbers_to if _NUMBER.fullmatch(word) else word for word in words]

    def word(self, word: str) -> str:
        return self.words([self.text(word)])[0]

    def cut(self, text: str, segmenter: Segmenter) -> list[str]:
        """The words of a text that ``segmenter`` cuts, in this form."""
        read = self.text(text)
        if not self.classes or isinstance(segmenter, WhiteSpace):
            return self.words(segmenter.segment(read))
        return self.words(cut_apart(around_numbers(read), segmenter))

    def as_written(self, text: str) -> tuple[str, list[str]]:
        """``text`` of a text, and for each of its characters what was written there.

        Where something changes its length, such as a number or a letter that has two in lower case, its first character has all
        of it and the others have nothing. The parts joined are the original text.
        """
        read, written = "", []
        for stretch in re.findall(r"\s+|\S+", text):
            form, letters = self.text(stretch), self._letters(stretch)
            read += form
            number = self.numbers_to is not None and _NUMBER.fullmatch(letters) is not None
            if not number and len(letters) == len(stretch):
                written += stretch
                continue
            parts = [] if number else [(character, self._letters(character)) for character in stretch]
            if sum(len(part) for _, part in parts) != len(form):
                parts = [(stretch, form)]
            for own, part in parts:
                written += [own, *[""] * (len(part) - 1)]
        return read, written
