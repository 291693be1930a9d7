"""Tables separated by tabs: with a header that names its columns, or plain ``word TAB sense TAB sense ...``."""

from __future__ import annotations

from pathlib import Path

from sememekit.errors import DataError
from sememekit.sememes.lexicon import Lexicon, LexiconBuilder, LexiconReader, Sense
from sememekit.sememes.reading import LexiconText, read_lexicon_text


class TableReader(LexiconReader):
    """Sememes of one sense stand between blanks, as the file writes them (``human|人`` stays ``human|人``).

    With a header, which has at least ``word`` and ``sememes``, a line is one sense; ``pos``, ``gloss``
    and ``def`` are taken too and other columns are left alone. Without one, a line is a word with all its senses.
    """

    format_name = "table"

    def __init__(self, path: Path, settings: LexiconReader.Settings) -> None:
        self._path = path

    def read(self) -> Lexicon:
        """See the base class. ``.xz`` is unpacked. A line with too few or too many columns is an error."""
        source = read_lexicon_text(self._path)
        builder = LexiconBuilder(self._path)
        lines = source.lines()
        header = lines[0].split("\t")
        if {"word", "sememes"} <= set(header):
            self._read_named(source, lines, header, builder)
        else:
            self._read_plain(source, lines, builder)
        if builder.is_empty:
            raise DataError(f"lexicon {self._path}: no line with a word and its sememes")
        return builder.finish(f"{self.format_name}:{self._path.name}", source.sha256)

    def _read_named(self, source: LexiconText, lines: list[str], header: list[str], builder: LexiconBuilder) -> None:
        for number, line in enumerate(lines[1:], start=2):
            if not line.strip():
                continue
            columns = line.split("\t")
            if len(columns) != len(header):
                raise DataError(
                    f"{source.place(number)}: has {len(columns)} columns, but the header names {len(header)}: "
                    f"{', '.join(header)}"
                )
            row = dict(zip(header, columns, strict=True))
            word = row["word"].strip()
            if not word:
                builder.skip(number, "line without a word")
                continue
            builder.add(
                Sense(
                    word,
                    tuple(row["sememes"].split()),
                    part_of_speech=row.get("pos", ""),
                    gloss=row.get("gloss", ""),
                    definition=row.get("def", ""),
                )
            )

    def _read_plain(self, source: LexiconText, lines: list[str], builder: LexiconBuilder) -> None:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            word, tab, rest = line.partition("\t")
            if not tab:
                raise DataError(
                    f"{source.place(number)}: no tab in {line[:40]!r}; a table has word TAB sememes of a sense TAB sememes of "
                    "the next sense; for a word line followed by a sememe line use list:PATH"
                )
            if not word.strip():
                builder.skip(number, "line without a word")
                continue
            for bag in rest.rstrip("\t").split("\t"):
                builder.add(Sense(word.strip(), tuple(bag.split())))
