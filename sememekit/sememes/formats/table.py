"""Tables separated by tabs: with a header that names its columns, or plain ``word TAB sense TAB sense ...``."""

from __future__ import annotations

from collections.abc import Iterator

from sememekit.errors import DataError
from sememekit.sememes.formats.records import RecordReader
from sememekit.sememes.lexicon import Sense
from sememekit.sememes.reading import LexiconText


class TableReader(RecordReader):
    """Sememes of one sense stand between blanks, as the file writes them (``human|人`` stays ``human|人``).

    With a header, which has at least ``word`` and ``sememes``, a line is one sense; ``pos``, ``gloss``
    and ``def`` are taken too and other columns are left alone. Without one, a line is a word with all its senses.
    """

    format_name = "table"

    def records(self, source: LexiconText) -> Iterator[tuple[int, Sense | str]]:
        header = source.lines()[0].split("\t")
        named = {"word", "sememes"} <= set(header)
        for number, line in source.entries():
            if named and number > 1:
                yield number, _sense(line.split("\t"), header, source.place(number))
            elif not named:
                yield from ((number, sense) for sense in _senses(line, source.place(number)))


def _sense(columns: list[str], header: list[str], where: str) -> Sense | str:
    if len(columns) != len(header):
        raise DataError(f"{where}: has {len(columns)} columns, but the header names {len(header)}: {', '.join(header)}")
    row = dict(zip(header, columns, strict=True))
    word = row["word"].strip()
    if not word:
        return "line without a word"
    return Sense(word, tuple(row["sememes"].split()), row.get("pos", ""), row.get("gloss", ""), row.get("def", ""))


def _senses(line: str, where: str) -> list[Sense | str]:
    word, tab, rest = line.partition("\t")
    if not tab:
        raise DataError(
            f"{where}: no tab in {line[:40]!r}; a table has word TAB sememes of a sense TAB sememes of the next sense; for a "
            "word line followed by a sememe line use list:PATH"
        )
    if not word.strip():
        return ["line without a word"]
    return [Sense(word.strip(), tuple(bag.split())) for bag in rest.rstrip("\t").split("\t")]
