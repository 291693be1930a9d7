"""HowNet's own record file: ``NO.=``, ``W_C=``, ``G_C=``, ``W_E=``, ``G_E=``, ``DEF=`` lines, one record after another."""

from __future__ import annotations

from collections.abc import Iterator

from sememekit.errors import DataError
from sememekit.sememes.formats.records import RecordReader
from sememekit.sememes.lexicon import CHINESE_RUN, PAIR, LexiconReader, Sense, Side
from sememekit.sememes.reading import LexiconText


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


class HowNetReader(RecordReader):
    """Records open with ``NO.``; the first DEF of a record counts (papers-and-codes 1.4: LM/hownet.py of SDLM).

    UTF-8 or GB18030. Records without a word or a DEF are skipped and counted, but a file that ends inside a record is refused.
    """

    format_name = "hownet"
    encodings = ("utf-8-sig", "gb18030")

    class Settings(LexiconReader.Settings):
        """``side``: whose words are read, Chinese (W_C, G_C) or English (W_E, G_E); the other side's word is the gloss."""

        side: Side = "chinese"

    settings: Settings

    def records(self, source: LexiconText) -> Iterator[tuple[int, Sense | str]]:
        side = self.settings.side
        own, other = ("C", "E") if side == "chinese" else ("E", "C")
        records = _fields(source)
        for number, fields in records:
            word, definition = fields.get(f"W_{own}", ""), fields.get("DEF", "")
            if not definition and fields is records[-1][1]:
                raise DataError(f"{source.place(number)}: the last record has no DEF= line; the file is cut off; copy it again")
            if not word:
                yield number, f"record without a word on the {side} side"
            elif not definition:
                yield number, "record without a DEF"
            else:
                part_of_speech = (fields.get(f"G_{own}", "").split() or [""])[0]
                gloss = fields.get(f"W_{other}", "")
                yield number, Sense(word, bag_of_definition(definition, side), part_of_speech, gloss, definition)


def _fields(source: LexiconText) -> list[tuple[int, dict[str, str]]]:
    """(line where it opens, first value of each key) of every record."""
    records: list[tuple[int, dict[str, str]]] = []
    for number, line in source.entries():
        key, equals, value = line.strip().partition("=")
        if key.startswith("NO."):
            records.append((number, {}))
        elif equals and records:
            records[-1][1].setdefault(key.strip(), value.strip())
        elif not records:
            raise DataError(
                f"{source.place(number)}: found {line.strip()[:40]!r} where the first record should open with 'NO.='; "
                "for word TAB part of speech TAB DEF use hownet2000:PATH"
            )
    return records
