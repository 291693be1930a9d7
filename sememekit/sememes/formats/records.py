"""Formats that are one text file of records: tables, lists, words, sense files of SE-WRL, HowNet 2000 and HowNet."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from sememekit.errors import DataError
from sememekit.files import warn
from sememekit.files.tables import list_items, names_of, unguarded
from sememekit.sememes.format_guess import WORD_LINE, likely_format, only_words, other_form, seems, sense_file_row
from sememekit.sememes.lexicon import CHINESE_RUN, PAIR, Entry, Lexicon, LexiconReader, Sense, Side, lexicon_of
from sememekit.sememes.reading import LexiconText, read_lexicon_text
from sememekit.text.vocabulary import parse_number


class RecordReader(LexiconReader):
    """Reads a text file record by record; a subclass defines the record."""

    encodings: ClassVar[tuple[str, ...]] = ("utf-8-sig",)
    """Encodings, tried in this order."""
    names_by_hand: ClassVar[bool] = False
    """True if records list the sememes of a sense, so that doubtful ones are reported; otherwise a definition has them."""

    def read(self) -> Lexicon:
        source = read_lexicon_text(self.path, self.encodings)
        is_table = self.format_name == "table"
        form = seems(["\t".join(row.cells) for row in source.rows(names=COLUMNS)] if is_table else source.lines())
        if form not in ("", self.format_name):
            raise DataError(other_form(self.path, form))
        if self.format_name == "list" and only_words(source.lines()):
            warn(other_form(self.path, "words"))
        records = list(self.records(source))
        named = [(line, record) for line, record in records if self.names_by_hand and isinstance(record, Sense)]
        if doubts := [f"{source.place(line)}: {doubt}" for line, sense in named if (doubt := _doubt(sense))]:
            warn(doubts[0] + (f"; {len(doubts) - 1:,} more in this file" if len(doubts) > 1 else ""))
        elif doubt := _doubtful_sememes([sense for _, sense in named]):
            warn(f"{self.path}: {doubt}; is this a list of counts or of parts of speech? a table has word TAB sememes")
        notes = (f"read as {source.encoding}",) if len(self.encodings) > 1 else ()
        lexicon = lexicon_of(records, self.path, f"{self.format_name}:{self.path.name}", source.sha256, notes)
        if not lexicon.words:
            raise DataError(f"lexicon {self.path}: no record with a word in it")
        return lexicon

    @abstractmethod
    def records(self, source: LexiconText) -> Iterator[tuple[int, Entry]]:
        """(line, sense) for each sense, or (line, reason) for a record without one. DataError: another form."""


_DIVIDING = re.compile("[，、；,;]+")  # separators of a list; no sememe of HowNet contains one


def _doubt(sense: Sense) -> str:
    """Return a warning if the sememes of a sense look like a mistake; else ""."""
    if not sense.sememes:
        return f"{sense.word[:40]!r} has no sememes here, so graphs and attacks leave this sense out"
    for name in sense.sememes:
        if _DIVIDING.search(name):
            parts = " ".join(_DIVIDING.sub(" ", name).split())
            return f"{sense.word[:40]!r} has {name[:40]!r}, which is read as one sememe; blanks stand between sememes" + (
                f": write {parts[:80]!r}" if parts else ", and no marks"
            )
        if not all(name.split("|")):
            return f"{sense.word[:40]!r} has the sememe {name[:40]!r} with an empty side; write a name, or two as in human|人"
    return ""


_FEWEST_WORDS = 10  # a shorter lexicon need not have repeats


def _doubtful_sememes(senses: Sequence[Sense]) -> str:
    """Return a warning if the sememes of a file, as a whole, are hardly sememes; else ""."""
    words_of: dict[str, set[str]] = {}
    for sense in senses:
        for name in sense.sememes:
            words_of.setdefault(name, set()).add(sense.word)
    words = {sense.word for sense in senses}
    numbers = [name for name in words_of if parse_number(name) is not None]
    if 2 * len(numbers) > len(words_of):
        return f"{len(numbers):,} of its {len(words_of):,} sememes are numbers, such as {numbers[0]!r}"
    if len(words) < _FEWEST_WORDS or not words_of:
        return ""
    if len(words_of) == 1:
        return f"all its {len(words):,} words have the one sememe {next(iter(words_of))!r}"
    alone = max(map(len, words_of.values())) == 1
    return f"no two of its {len(words):,} words share a sememe" if alone else ""


class TableReader(RecordReader):
    """``word TAB ...``: sememes of one sense stand between blanks, as the file writes them (``human|人`` stays ``human|人``).

    With a header (first line, with ``word`` and ``sememes`` in any case) each line is one sense; ``pos``, ``gloss`` and ``def``
    are read too, and other columns ignored. Without a header each line is a word with all its senses."""

    format_name = "table"
    names_by_hand = True

    def records(self, source: LexiconText) -> Iterator[tuple[int, Entry]]:
        rows = list(source.rows(names=COLUMNS))
        header = names_of(rows[0].cells if rows else ())
        named = {"word", "sememes"} <= set(header)
        if not named and len(known := [column for column in header if column in COLUMNS]) > 1:
            raise DataError(
                f"{source.place(rows[0].line)}: seems to be a header ({', '.join(known)}), and a header needs the columns word "
                "and sememes; rename them, or delete the line if each line is a word with all its senses"
            )
        for row in rows[named:]:
            cells, where = list(map(unguarded, row.cells)), source.place(row.line)
            found = [_sense(cells, header, where)] if named else _senses(cells, row.text, source, where)
            yield from ((row.line, sense) for sense in found)


COLUMNS = frozenset({"word", "words", "sememe", "sememes", "pos", "gloss", "def", "definition"})
"""Names of columns of a table."""


def _sense(columns: list[str], header: list[str], where: str) -> Sense | str:
    if len(columns) != len(header):
        raise DataError(f"{where}: has {len(columns)} columns, but the header names {len(header)}: {', '.join(header)}")
    row = dict(zip(header, columns, strict=True))
    word = row["word"].strip()
    if not word:
        return "line without a word"
    return Sense(word, tuple(row["sememes"].split()), row.get("pos", ""), row.get("gloss", ""), row.get("def", ""))


def _senses(cells: list[str], line: str, source: LexiconText, where: str) -> list[Sense | str]:
    word, *bags = cells
    if not bags:
        form = likely_format(source.path)
        other = f"; {other_form(source.path, form)}" if form != "table" else ""
        raise DataError(
            f"{where}: no tab in {(line or word)[:40]!r}; a table has word TAB sememes of a sense TAB sememes of the next "
            f"sense{other}"
        )
    if not word.strip():
        return ["line without a word"]
    while bags[1:] and not bags[-1].strip():
        bags.pop()
    return [Sense(word.strip(), tuple(bag.split())) for bag in bags]


class WordListReader(RecordReader):
    """A line with a word, then one with the pooled sememes of its senses, between blanks or tabs (Sec. 4, Qin et al. 2019).

    An odd number of lines (unless the last is blank) and sememes without a word are errors: words and sememes may be swapped
    from there on. Blank records, and a first record without a word as in released files, are skipped and counted."""

    format_name = "list"
    names_by_hand = True

    def records(self, source: LexiconText) -> Iterator[tuple[int, Entry]]:
        lines = source.lines()
        odd = (
            f"{source.place(len(lines))}: word {lines[-1].strip()!r} has no sememe line after it; a list alternates one line "
            "with a word and one with its sememes, so one is missing or too many, or it is another format (try table:PATH)"
        )
        if len(lines) % 2 and all(word.strip() for word in lines[0::2]):  # one with a blank word is told where it stands
            raise DataError(odd)
        for number in range(0, len(lines), 2):
            word = lines[number].strip()
            if "\t" in word:
                raise DataError(
                    f"{source.place(number + 1)}: a tab in the line of a word, {word[:40]!r}; a list alternates one line "
                    "with a word and one with its sememes; for word TAB sememes on one line use table:PATH"
                )
            if word and number + 1 == len(lines):
                raise DataError(odd)
            bag = "".join(lines[number + 1 : number + 2]).split()
            if not word and bag and (number or not lines[-1].strip()):
                raise DataError(
                    f"{source.place(number + 1)}: a blank line where a word must be, before {' '.join(bag)[:40]!r}; "
                    "a list alternates one line with a word and one with its sememes; delete the blank line, or give the word"
                )
            yield number + 1, Sense(word, tuple(bag)) if word else "record without a word"


class WordsReader(RecordReader):
    """Words without sememes, for segmenters: a word a line, possibly with its count and part of speech behind blanks."""

    format_name = "words"
    encodings = ("utf-8-sig", "gb18030")
    has_sememes = False

    def records(self, source: LexiconText) -> Iterator[tuple[int, Entry]]:
        for number, line in list_items(source.text, source.path):
            if (match := WORD_LINE.fullmatch(line)) is None:
                raise DataError(
                    f"{source.place(number)}: expected a word, perhaps with count and part of speech, found {line[:40]!r}; "
                    "write one word a line"
                )
            yield number, Sense(match[1], ())


class SenseFileReader(RecordReader):
    """A sense file of SE-WRL: ``word n``, then for each of the n senses ``k`` and its k sememes, all between blanks."""

    format_name = "se-wrl"

    def records(self, source: LexiconText) -> Iterator[tuple[int, Entry]]:
        for number, line in source.entries():
            if (row := sense_file_row(line)) is None:
                raise DataError(
                    f"{source.place(number)}: expected a word, its number of senses, and for each sense its number of sememes "
                    f"and the sememes, found {line.strip()[:40]!r}; the file may be cut off here"
                )
            yield from ((number, Sense(row[0], sememes)) for sememes in row[1])


_ROLE_NAME = re.compile(r"[A-Za-z][A-Za-z-]*")


class HowNet2000Reader(RecordReader):
    """``word TAB part of speech TAB DEF``: ``glossary.dat`` and its cleaned form. Sememes: the Chinese runs in a DEF.

    Function words of this release are defined by an English role name alone, such as ``{purpose}``; the role names are taken as
    sememes, so that the word has a sense. An entry without a word is skipped and counted."""

    format_name = "hownet2000"
    encodings = ("utf-8-sig", "gb18030")

    def records(self, source: LexiconText) -> Iterator[tuple[int, Entry]]:
        for number, _, cells in source.rows():
            if len(columns := [cell.strip() for cell in cells]) != 3:
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


def bag_of_definition(definition: str, side: Side) -> tuple[str, ...]:
    """The sememes of a DEF as released code builds them: for ``chinese`` every maximal run of U+4E00..U+9FA5 (also names of
    places, as in that code), for ``english`` every pair ``english|中文``."""
    if side == "chinese":
        return tuple(CHINESE_RUN.findall(definition))
    return tuple(f"{english}|{chinese}" for english, chinese in PAIR.findall(definition))


class HowNetReader(RecordReader):
    """HowNet's own records, ``NO.=``, ``W_C=``, ``G_C=``, ``W_E=``, ``G_E=``, ``DEF=`` lines; the first DEF counts
    (LM/hownet.py of SDLM).

    UTF-8 or GB18030. Records without a word or a DEF are skipped and counted; a file that ends inside a record is refused."""

    format_name = "hownet"
    encodings = ("utf-8-sig", "gb18030")

    class Settings(LexiconReader.Settings):
        """``side``: whose words are read, Chinese (W_C, G_C) or English (W_E, G_E); the other side's word is the gloss."""

        side: Side = "chinese"

    settings: Settings

    def records(self, source: LexiconText) -> Iterator[tuple[int, Entry]]:
        side = self.settings.side
        own, other = ("C", "E") if side == "chinese" else ("E", "C")
        records = _fields(source)
        for number, fields in records:
            word, definition = fields.get(f"W_{own}", ""), fields.get("DEF", "")
            if not definition and fields is records[-1][1]:
                raise DataError(f"{source.place(number)}: the last record has no DEF= line; the file is cut off; copy it again")
            is_open = definition.count("{") != definition.count("}")
            if is_open and fields is records[-1][1]:
                raise DataError(f"{source.place(number)}: the brackets of the last DEF do not close; the file is cut off")
            if "second DEF" in fields:
                yield number, "further DEF of a record"
            if not word:
                yield number, f"record without a word on the {side} side"
            elif is_open:
                yield number, "record with a DEF whose brackets do not close"
            elif not definition:
                yield number, "record without a DEF"
            else:
                part_of_speech = (fields.get(f"G_{own}", "").split() or [""])[0]
                gloss = fields.get(f"W_{other}", "")
                yield number, Sense(word, bag_of_definition(definition, side), part_of_speech, gloss, definition)


_FIELD = re.compile(r"(NO\.|[A-Z]+(?:_[A-Z]+)?)\s*=\s*(.*)")


def _fields(source: LexiconText) -> list[tuple[int, dict[str, str]]]:
    """Yield (first line, first value of each key) of every record; a line without a key continues the previous line."""
    records, key = list[tuple[int, dict[str, str]]](), ""
    for number, line in source.entries():
        match = _FIELD.fullmatch(line.strip())
        if line.strip().startswith("NO."):
            records.append((number, {}))
            key = ""
        elif not records:
            raise DataError(
                f"{source.place(number)}: found {line.strip()[:40]!r} where the first record should open with 'NO.='; "
                f"the format may be another: {likely_format(source.path)}:{source.path}"
            )
        elif match is not None:
            key = match[1] if match[1] not in records[-1][1] else f"second {match[1]}"
            records[-1][1].setdefault(key, match[2])
        elif key:
            records[-1][1][key] += line.strip()
    return records
