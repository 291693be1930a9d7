"""HowNet 2000, the glossary: ``word TAB part of speech TAB DEF``, padded with blanks or not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sememekit.errors import DataError
from sememekit.sememes.formats.records import RecordReader
from sememekit.sememes.lexicon import CHINESE_RUN, Sense
from sememekit.sememes.reading import LexiconText

_ROLE_NAME = re.compile(r"[A-Za-z][A-Za-z-]*")


class HowNet2000Reader(RecordReader):
    """``glossary.dat`` and its cleaned form. The bag of a sense is every run of Chinese characters in its DEF.

    Function words of this release are defined by an English role name alone, such as ``{purpose}``; their bag is the role
    names, since an empty bag would leave the word without a sense. An entry without a word is skipped and counted.
    """

    format_name = "hownet2000"
    encodings = ("utf-8-sig", "gb18030")

    def records(self, source: LexiconText) -> Iterator[tuple[int, Sense | str]]:
        for number, line in source.entries():
            columns = [column.strip() for column in line.split("\t")]
            if len(columns) != 3:
                raise DataError(
                    f"{source.place(number)}: has {len(columns)} columns, but hownet2000 has 3: word, part of speech, DEF "
                    "(separated by tabs); for other layouts use list:PATH, table:PATH or hownet:PATH"
                )
            word, part_of_speech, definition = columns
            if not word:
                yield number, "entry without a word"
            elif not definition:
                raise DataError(f"{source.place(number)}: word {word!r} has no DEF; the file may be cut off here")
            else:
                bag = CHINESE_RUN.findall(definition) or _ROLE_NAME.findall(definition)
                yield number, Sense(word, tuple(bag), part_of_speech=part_of_speech, definition=definition)
