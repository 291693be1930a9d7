"""The form that a text is brought into before it is cut, for data that are prepared in the form of a benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sememekit.errors import DataError

_NUMBER: Final = re.compile(r"(?<!\S)[+-]?(?:\d+(?:[.,:/-]\d+)*|[.,]\d+)%?(?!\S)")

_WORD: Final = re.compile(r"\S+")


@dataclass(frozen=True)
class TextForm:
    """Lower case, and one word in the place of every number; as it stands, nothing at all.

    Whoever prepares a text and whoever reads one that is typed in, for a model of such data, ask here. A number is a word of
    digits, maybe with a sign, with ``. , : / -`` between digits, and with ``%`` behind. Where blanks part no words, only words
    that were cut can be known for numbers: so ``text`` goes before the segmenter, and ``words`` behind it. The word that stands
    for numbers stays as it is, so that a text in this form is not changed again.

    Attributes:
        lower: bring the text into lower case.
        numbers_to: the word in the place of every number, such as ``N``; None for the numbers themselves.
    """

    lower: bool = False
    numbers_to: str | None = None

    @classmethod
    def recorded(cls, options: Mapping[str, object], where: str) -> TextForm:
        """The form that prepared data have.

        Args:
            options: of their signature.
            where: the file that it was read from.

        Raises:
            DataError: no version writes such options.
        """
        lower, numbers_to = options.get("lower", False), options.get("numbers_to")
        if not isinstance(lower, bool) or not (numbers_to is None or isinstance(numbers_to, str)):
            raise DataError(
                f"{where}: options.lower = {lower!r:.40} and options.numbers_to = {numbers_to!r:.40}; true or false and a word "
                "are needed, so it was changed after writing"
            )
        return cls(lower, numbers_to)

    @property
    def changes(self) -> bool:
        """Whether it changes anything."""
        return self.lower or self.numbers_to is not None

    def text(self, text: str) -> str:
        """A text before it is cut."""
        text = self._lowered(text) if self.lower else text
        return text if self.numbers_to is None else _NUMBER.sub(self.numbers_to.replace("\\", r"\\"), text)

    def _lowered(self, text: str) -> str:
        mark = self.numbers_to
        if mark is None or mark not in text or mark.lower() == mark:
            return text.lower()
        return _WORD.sub(lambda word: word[0] if word[0] == mark else word[0].lower(), text)

    def words(self, words: Iterable[str]) -> list[str]:
        """Words as the segmenter gives them for ``text``."""
        if self.numbers_to is None:
            return list(words)
        return [self.numbers_to if _NUMBER.fullmatch(word) else word for word in words]

    def word(self, word: str) -> str:
        """One word that blanks part from others."""
        return self.text(word)

    def as_written(self, text: str) -> tuple[str, list[str]]:
        """``text`` of a text, and for each of its characters what was written there.

        Of a stretch that is of another length in this form, such as a number, the first character has all and the others have
        nothing. The parts side by side are the text as it was written.
        """
        read, written = "", []
        for stretch in re.findall(r"\s+|\S+", text):
            form = self.text(stretch)
            read += form
            same = len(form) == len(stretch) and (self.numbers_to is None or not _NUMBER.fullmatch(stretch))
            written += list(stretch) if same else [stretch, *[""] * (len(form) - 1)]
        return read, written
