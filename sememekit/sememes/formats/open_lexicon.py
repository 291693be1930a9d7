"""The project's own lexicon: ``word TAB POS TAB gloss TAB sememes`` in any number of ``.tsv`` files of one folder.

Sememes are written ``english|中文`` between blanks and come from ``inventory.tsv`` of the same folder, which has
``english|中文 TAB definition`` lines. Lines that are blank or begin with ``# `` are comments."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sememekit.config import Record, resources_folder
from sememekit.errors import DataError
from sememekit.sememes.lexicon import Lexicon, LexiconReader, Sense, lexicon_of
from sememekit.sememes.reading import read_lexicon_text

INVENTORY = "inventory.tsv"
PARTS_OF_SPEECH = tuple("nvadrmqpcuftwkeio")
"""Noun, verb, adjective, adverb, pronoun, numeral, measure word, preposition, conjunction, particle, localiser, time word,
punctuation, affix, exclamation, idiom or fixed phrase, other: a subset of the codes of the People's Daily corpus."""
MAX_SEMEMES = 500


class Fault(Record):
    """Something to fix in the open lexicon."""

    place: str
    """``file:line``."""
    message: str
    fatal: bool
    """True where the lexicon cannot be used until it is fixed."""


@dataclass(frozen=True)
class OpenScan:
    """Everything in the folder, good and bad; ``inventory`` is ``english|中文`` -> definition."""

    files: tuple[Path, ...]
    inventory: dict[str, str]
    senses: tuple[Sense, ...]
    faults: tuple[Fault, ...]
    sha256: str


class OpenLexiconReader(LexiconReader):
    """Reads a folder of the open lexicon; ``sememekit lookup --check`` shows all faults of one."""

    format_name = "open"
    default_path = str(resources_folder() / "lexicon")

    def read(self) -> Lexicon:
        # any fatal fault is an error that names the first and the number of the others
        scan = scan_open_lexicon(self.path)
        fatal = [fault for fault in scan.faults if fault.fatal]
        if fatal:
            more = f" (and {len(fatal) - 1} more faults)" if len(fatal) > 1 else ""
            raise DataError(f"{fatal[0].place}: {fatal[0].message}{more}; see them all with: sememekit lookup --check")
        notes = (f"{len(scan.inventory)} sememes in the inventory", f"{len(scan.files)} files of entries")
        name = f"{self.format_name}:{self.path.resolve().name}"
        return lexicon_of(enumerate(scan.senses), self.path, name, scan.sha256, notes, tuple(scan.inventory))


class FunctionWordsReader(OpenLexiconReader):
    """Our list of English function words and of corpus marks for numbers, unknown words and sentence ends."""

    format_name = "function-words"
    default_path = str(resources_folder() / "lexicon" / "english")


def scan_open_lexicon(folder: Path) -> OpenScan:
    """Read the folder and collect every fault. Raises DataError: no folder, inventory or entries, or not UTF-8."""
    if not folder.is_dir():
        raise DataError(f"open lexicon {folder}: there is no such folder; 'open' alone names the one that ships with sememekit")
    files = tuple(sorted(path for path in folder.glob("*.tsv") if path.name != INVENTORY))
    if not (folder / INVENTORY).is_file() or not files:
        raise DataError(f"open lexicon {folder}: needs {INVENTORY} and at least one other .tsv file with entries")
    faults: list[Fault] = []
    hashes: list[str] = []
    inventory = _read_inventory(folder / INVENTORY, faults, hashes)
    entries = [entry for path in files for entry in _read_entries(path, inventory, faults, hashes)]
    first: dict[tuple[str, str, tuple[str, ...]], str] = {}
    for place, sense in entries:
        known = first.setdefault((sense.word, sense.part_of_speech, sense.sememes), place)
        if known != place:
            message = f"{sense.word!r} has this part of speech with the same sememes in {known} already"
            faults.append(_fault(place, message, fatal=False))
    digest = hashlib.sha256("".join(hashes).encode()).hexdigest()
    return OpenScan(files, inventory, tuple(sense for _, sense in entries), tuple(faults), digest)


def _fault(place: str, message: str, fatal: bool = True) -> Fault:
    return Fault(place=place, message=message, fatal=fatal)


def _rows(path: Path, hashes: list[str]) -> Iterator[tuple[str, list[str]]]:
    source = read_lexicon_text(path)
    hashes.append(f"{path.name} {source.sha256}\n")
    for row in source.rows(comment="# "):
        yield source.place(row.line), row.cells


def _read_inventory(path: Path, faults: list[Fault], hashes: list[str]) -> dict[str, str]:
    inventory: dict[str, str] = {}
    sides: dict[str, str] = {}
    for place, columns in _rows(path, hashes):
        if len(columns) != 2 or not all(column.strip() for column in columns):
            faults.append(_fault(place, f"expected 2 columns, english|中文 and a definition, found {len(columns)}"))
            continue
        sememe, definition = columns
        parts = sememe.split("|")
        if len(parts) != 2 or not all(parts) or sememe != "".join(sememe.split()):
            faults.append(_fault(place, f"sememe {sememe!r} is not written english|中文 without blanks"))
            continue
        for side in parts:
            if side in sides:
                faults.append(_fault(place, f"name {side!r} of sememe {sememe!r} stands in {sides[side]} already"))
            sides.setdefault(side, place)
        inventory[sememe] = definition
    if len(inventory) > MAX_SEMEMES:
        faults.append(_fault(f"{path}:1", f"{len(inventory)} sememes, and at most {MAX_SEMEMES} are allowed", fatal=False))
    return inventory


def _read_entries(path: Path, inventory: dict[str, str], faults: list[Fault], hashes: list[str]) -> Iterator[tuple[str, Sense]]:
    previous = ""
    for place, columns in _rows(path, hashes):
        if len(columns) != 4:
            faults.append(_fault(place, f"expected 4 columns, word, POS, gloss and sememes, found {len(columns)}"))
            continue
        word, part_of_speech, gloss, bag = columns
        names = ("word", "POS", "gloss", "sememes")
        for name, value in zip(names, columns, strict=True):
            if not value.strip():
                faults.append(_fault(place, f"the {name} of this entry is empty"))
            elif value != value.strip():
                faults.append(_fault(place, f"blanks around the {name} {value!r}", fatal=False))
        if part_of_speech.strip() and part_of_speech.strip() not in PARTS_OF_SPEECH:
            faults.append(_fault(place, f"POS {part_of_speech!r} of {word!r} is none of {' '.join(PARTS_OF_SPEECH)}"))
        sememes = bag.split()
        for sememe in sememes:
            if sememe not in inventory:
                faults.append(_fault(place, f"sememe {sememe!r} of {word!r} is not in {INVENTORY}"))
        if len(set(sememes)) < len(sememes):
            faults.append(_fault(place, f"a sememe of {word!r} stands twice: {bag!r}", fatal=False))
        if word < previous:
            message = f"word {word!r} comes after {previous!r}; entries of a file are sorted by the code points of the word"
            faults.append(_fault(place, message, fatal=False))
        previous = word
        if word.strip() and sememes:
            yield place, Sense(word.strip(), tuple(sememes), part_of_speech.strip(), gloss.strip())
