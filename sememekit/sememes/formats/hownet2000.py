"""HowNet 2000, the glossary: ``word TAB part of speech TAB DEF``, padded with blanks or not."""

from __future__ import annotations

import re
from pathlib import Path

from sememekit.errors import DataError
from sememekit.sememes.lexicon import CHINESE_RUN, Lexicon, LexiconBuilder, LexiconReader, Sense
from sememekit.sememes.reading import read_lexicon_text

_ROLE_NAME = re.compile(r"[A-Za-z][A-Za-z-]*")


class HowNet2000Reader(LexiconReader):
    """``glossary.dat`` and its cleaned form. The bag of a sense is every run of Chinese characters in its DEF.

    Function words of this release are defined by an English role name alone, such as ``{purpose}``; their bag is the role
    names, since an empty bag would leave the word without a sense.
    """

    format_name = "hownet2000"

    def __init__(self, path: Path, settings: LexiconReader.Settings) -> None:
        self._path = path

    def read(self) -> Lexicon:
        """See the base class. Three columns or an error; a blank line is left alone; an entry without a word is skipped."""
        source = read_lexicon_text(self._path, ("utf-8-sig", "gb18030"))
        builder = LexiconBuilder(self._path)
        for number, line in enumerate(source.lines(), start=1):
            if not line.strip():
                continue
            columns = [column.strip() for column in line.split("\t")]
            if len(columns) != 3:
                raise DataError(
                    f"{source.place(number)}: has {len(columns)} columns, but hownet2000 has 3: word, part of speech, DEF "
                    "(separated by tabs); for other layouts use list:PATH, table:PATH or hownet:PATH"
                )
            word, part_of_speech, definition = columns
            if not word:
                builder.skip(number, "entry without a word")
            elif not definition:
                raise DataError(f"{source.place(number)}: word {word!r} has no DEF; the file may be cut off here")
            else:
                bag = CHINESE_RUN.findall(definition) or _ROLE_NAME.findall(definition)
                builder.add(Sense(word, tuple(bag), part_of_speech=part_of_speech, definition=definition))
        return builder.finish(f"{self.format_name}:{self._path.name}", source.sha256, (f"read as {source.encoding}",))
