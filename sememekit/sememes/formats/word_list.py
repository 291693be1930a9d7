"""Two-line records: a line with the word, then a line with the sememes of all its senses pooled."""

from __future__ import annotations

from pathlib import Path

from sememekit.errors import DataError
from sememekit.sememes.lexicon import Lexicon, LexiconBuilder, LexiconReader, Sense
from sememekit.sememes.reading import read_lexicon_text


class WordListReader(LexiconReader):
    """The form that several released codes share; sememes stand between blanks or tabs (Sec. 4, Qin et al. 2019)."""

    format_name = "list"

    def __init__(self, path: Path, settings: LexiconReader.Settings) -> None:
        self._path = path

    def read(self) -> Lexicon:
        """See the base class. An odd number of lines is an error; a record without a word is skipped and counted."""
        source = read_lexicon_text(self._path)
        lines = source.lines()
        if len(lines) % 2:
            raise DataError(
                f"{source.place(len(lines))}: word {lines[-1].strip()!r} has no sememe line after it; a list alternates one "
                "line with a word and one with its sememes, so the file is cut off or has another format (try table:PATH)"
            )
        builder = LexiconBuilder(self._path)
        for number in range(0, len(lines), 2):
            word = lines[number].strip()
            if "\t" in word:
                raise DataError(
                    f"{source.place(number + 1)}: a tab in the line of a word, {word[:40]!r}; a list alternates one line "
                    "with a word and one with its sememes; for word TAB sememes on one line use table:PATH"
                )
            if word:
                builder.add(Sense(word, tuple(lines[number + 1].split())))
            else:
                builder.skip(number + 1, "record without a word")
        if builder.is_empty:
            raise DataError(f"lexicon {self._path}: no record with a word in it")
        return builder.finish(f"{self.format_name}:{self._path.name}", source.sha256)
