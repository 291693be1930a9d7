"""HowNet's own record file: ``NO.=``, ``W_C=``, ``G_C=``, ``W_E=``, ``G_E=``, ``DEF=`` lines, one record after another."""

from __future__ import annotations

from pathlib import Path

from sememekit.errors import DataError
from sememekit.sememes.lexicon import CHINESE_RUN, PAIR, Lexicon, LexiconBuilder, LexiconReader, Sense, Side
from sememekit.sememes.reading import LexiconText, read_lexicon_text


def bag_of_definition(definition: str, side: Side) -> tuple[str, ...]:
    """The sememes of a DEF without its tree, as released code builds them.

    Args:
        definition: the DEF.
        side: chinese: every maximal run of U+4E00..U+9FA5 (so Chinese names of places count, as in the released code);
            english: every pair ``english|中文``, which people who read no Chinese can read too.
    """
    if side == "chinese":
        return tuple(CHINESE_RUN.findall(definition))
    return tuple(f"{english}|{chinese}" for english, chinese in PAIR.findall(definition))


class HowNetReader(LexiconReader):
    """Records open with ``NO.``; the first DEF of a record counts (papers-and-codes 1.4: LM/hownet.py of SDLM)."""

    format_name = "hownet"

    class Settings(LexiconReader.Settings):
        """``side``: whose words are read, Chinese (W_C, G_C) or English (W_E, G_E); the other side's word is the gloss."""

        side: Side = "chinese"

    def __init__(self, path: Path, settings: Settings) -> None:
        self._path = path
        self._side = settings.side

    def read(self) -> Lexicon:
        """See the base class. UTF-8 or GB18030. Records without a word or a DEF are skipped and counted, but a file that
        ends inside a record is refused, as is one without any record."""
        source = read_lexicon_text(self._path, ("utf-8-sig", "gb18030"))
        builder = LexiconBuilder(self._path)
        records = self._records(source)
        for index, (number, fields) in enumerate(records):
            word, other = fields.get("W_C", ""), fields.get("W_E", "")
            part_of_speech = fields.get("G_C", "")
            if self._side == "english":
                word, other, part_of_speech = other, word, fields.get("G_E", "")
            definition = fields.get("DEF", "")
            if index == len(records) - 1 and not definition:
                raise DataError(f"{source.place(number)}: the last record has no DEF= line; the file is cut off; copy it again")
            if not word:
                builder.skip(number, f"record without a word on the {self._side} side")
            elif not definition:
                builder.skip(number, "record without a DEF")
            else:
                bag = bag_of_definition(definition, self._side)
                code = part_of_speech.split()[0] if part_of_speech else ""
                builder.add(Sense(word, bag, part_of_speech=code, gloss=other, definition=definition))
        return builder.finish(f"{self.format_name}:{self._path.name}", source.sha256, (f"read as {source.encoding}",))

    def _records(self, source: LexiconText) -> list[tuple[int, dict[str, str]]]:
        """(line where it opens, first value of each key) of every record."""
        records: list[tuple[int, dict[str, str]]] = []
        for number, line in enumerate(source.lines(), start=1):
            key, equals, value = line.strip().partition("=")
            if key.startswith("NO."):
                records.append((number, {}))
            elif equals and records:
                records[-1][1].setdefault(key.strip(), value.strip())
            elif line.strip() and not records:
                raise DataError(
                    f"{source.place(number)}: found {line.strip()[:40]!r} where the first record should open with 'NO.='; "
                    "for word TAB part of speech TAB DEF use hownet2000:PATH"
                )
        return records
