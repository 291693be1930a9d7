"""Two-line records: a line with the word, then a line with the sememes of all its senses pooled."""

from __future__ import annotations

from collections.abc import Iterator

from sememekit.errors import DataError
from sememekit.sememes.formats.records import RecordReader
from sememekit.sememes.lexicon import Sense
from sememekit.sememes.reading import LexiconText


class WordListReader(RecordReader):
    """The form that several released codes share; sememes stand between blanks or tabs (Sec. 4, Qin et al. 2019).

    An odd number of lines is an error; a record without a word is skipped and counted.
    """

    format_name = "list"

    def records(self, source: LexiconText) -> Iterator[tuple[int, Sense | str]]:
        lines = source.lines()
        if len(lines) % 2:
            raise DataError(
                f"{source.place(len(lines))}: word {lines[-1].strip()!r} has no sememe line after it; a list alternates one "
                "line with a word and one with its sememes, so the file is cut off or has another format (try table:PATH)"
            )
        for number in range(0, len(lines), 2):
            word = lines[number].strip()
            if "\t" in word:
                raise DataError(
                    f"{source.place(number + 1)}: a tab in the line of a word, {word[:40]!r}; a list alternates one line "
                    "with a word and one with its sememes; for word TAB sememes on one line use table:PATH"
                )
            yield number + 1, Sense(word, tuple(lines[number + 1].split())) if word else "record without a word"
