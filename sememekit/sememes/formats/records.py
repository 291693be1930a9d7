"""The base of formats that are one text file of records."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from sememekit.errors import DataError
from sememekit.sememes.lexicon import Lexicon, LexiconBuilder, LexiconReader, Sense
from sememekit.sememes.reading import LexiconText, read_lexicon_text


class RecordReader(LexiconReader):
    """Reads a text file record by record; a subclass says what a record is."""

    encodings: ClassVar[tuple[str, ...]] = ("utf-8-sig",)
    """Tried in this order."""

    def read(self) -> Lexicon:
        source = read_lexicon_text(self.path, self.encodings)
        builder = LexiconBuilder(self.path)
        for line, record in self.records(source):
            if isinstance(record, Sense):
                builder.add(record)
            else:
                builder.skip(line, record)
        if builder.is_empty:
            raise DataError(f"lexicon {self.path}: no record with a word in it")
        notes = (f"read as {source.encoding}",) if len(self.encodings) > 1 else ()
        return builder.finish(f"{self.format_name}:{self.path.name}", source.sha256, notes)

    @abstractmethod
    def records(self, source: LexiconText) -> Iterator[tuple[int, Sense | str]]:
        """(line, sense) for each sense, or (line, reason) for a record that gives none and is counted. Raises DataError: a line
        of another form."""
