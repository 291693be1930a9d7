"""The project's own lexicon: ``word TAB POS TAB gloss TAB sememes`` in any number of ``.tsv`` files of one folder.

Sememes are written ``english|中文`` between blanks and come from ``inventory.tsv`` of the same folder, which has
``english|中文 TAB definition`` lines. Lines that are blank or begin with ``# `` are comments.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sememekit.config import resources_folder
from sememekit.errors import DataError
from sememekit.sememes.lexicon import Lexicon, LexiconBuilder, LexiconReader, Sense
from sememekit.sememes.reading import read_lexicon_text

INVENTORY = "inventory.tsv"
PARTS_OF_SPEECH = tuple("nvadrmqpcuftwkeio")
"""Noun, verb, adjective, adverb, pronoun, numeral, measure word, preposition, conjunction, particle, localiser, time word,
punctuation, affix, exclamation, idiom or fixed phrase, other: a subset of the codes of the People's Daily corpus."""
MAX_SEMEMES = 500


@dataclass(frozen=True)
class Fault:
    """A fault of the lexicon, and where: ``file:line``. One that is not fatal leaves the lexicon usable."""

    place: str
    message: str
    is_fatal: bool = True


@dataclass(frozen=True)
class OpenEntry:
    """One readable line of the lexicon."""

    place: str
    sense: Sense


@dataclass(frozen=True)
class OpenScan:
    """Everything in the folder, good and bad; ``inventory`` is ``english|中文`` -> definition."""

    files: tuple[Path, ...]
    inventory: dict[str, str]
    entries: tuple[OpenEntry, ...]
    faults: tuple[Fault, ...]
    sha256: str

    def unused_sememes(self) -> tuple[str, ...]:
        """Sememes of the inventory that no entry uses, in its order."""
        used = {sememe for entry in self.entries for sememe in entry.sense.sememes}
        return tuple(sememe for sememe in self.inventory if sememe not in used)


class OpenLexiconReader(LexiconReader):
    """Reads a folder of the open lexicon; ``sememekit lookup --check`` shows all faults of one."""

    format_name = "open"

    @classmethod
    def default_path(cls) -> str:
        return str(resources_folder() / "lexicon")

    def read(self) -> Lexicon:
        # any fatal fault is an error that names the first and the number of the others
        scan = scan_open_lexicon(self.path)
        fatal = [fault for fault in scan.faults if fault.is_fatal]
        if fatal:
            more = f" (and {len(fatal) - 1} more faults)" if len(fatal) > 1 else ""
            raise DataError(f"{fatal[0].place}: {fatal[0].message}{more}; see them all with: sememekit lookup --check")
        builder = LexiconBuilder(self.path)
        for entry in scan.entries:
            builder.add(entry.sense)
        notes = (f"{len(scan.inventory)} sememes in the inventory", f"{len(scan.files)} files of entries")
        return builder.finish(f"{self.format_name}:{self.path.resolve().name}", scan.sha256, notes, tuple(scan.inventory))


class FunctionWordsReader(OpenLexiconReader):
    """Our list of English function words and of the markers of corpora for numbers, unknown words and ends of sentences."""

    format_name = "function-words"

    @classmethod
    def default_path(cls) -> str:
        return str(resources_folder() / "lexicon" / "english")


def scan_open_lexicon(folder: Path) -> OpenScan:
    """Read the folder and collect every fault. Raises DataError: no such folder, no inventory, no file of entries, or a file is
    not UTF-8."""
    if not folder.is_dir():
        raise DataError(f"open lexicon {folder}: there is no such folder; 'open' alone names the one that ships with sememekit")
    files = tuple(sorted(path for path in folder.glob("*.tsv") if path.name != INVENTORY))
    if not (folder / INVENTORY).is_file() or not files:
        raise DataError(f"open lexicon {folder}: needs {INVENTORY} and at least one other .tsv file with entries")
    faults: list[Fault] = []
    hashes: list[str] = []
    inventory = _read_inventory(folder / INVENTORY, faults, hashes)
    entries: list[OpenEntry] = []
    for path in files:
        entries.extend(_read_entries(path, inventory, faults, hashes))
    faults.extend(_repeated(entries))
    digest = hashlib.sha256("".join(hashes).encode()).hexdigest()
    return OpenScan(files, inventory, tuple(entries), tuple(faults), digest)


def _rows(path: Path, hashes: list[str]) -> Iterator[tuple[str, list[str]]]:
    source = read_lexicon_text(path)
    hashes.append(f"{path.name} {source.sha256}\n")
    for number, line in source.entries(comment="# "):
        yield source.place(number), line.split("\t")


def _read_inventory(path: Path, faults: list[Fault], hashes: list[str]) -> dict[str, str]:
    inventory: dict[str, str] = {}
    sides: dict[str, str] = {}
    for place, columns in _rows(path, hashes):
        if len(columns) != 2 or not all(column.strip() for column in columns):
            faults.append(Fault(place, f"expected 2 columns, english|中文 and a definition, found {len(columns)}"))
            continue
        sememe, definition = columns
        parts = sememe.split("|")
        if len(parts) != 2 or not all(parts) or sememe != "".join(sememe.split()):
            faults.append(Fault(place, f"sememe {sememe!r} is not written english|中文 without blanks"))
            continue
        for side in parts:
            if side in sides:
                faults.append(Fault(place, f"name {side!r} of sememe {sememe!r} stands in {sides[side]} already"))
            sides.setdefault(side, place)
        inventory[sememe] = definition
    if len(inventory) > MAX_SEMEMES:
        faults.append(Fault(f"{path}:1", f"{len(inventory)} sememes, and at most {MAX_SEMEMES} are allowed", is_fatal=False))
    return inventory


def _read_entries(path: Path, inventory: dict[str, str], faults: list[Fault], hashes: list[str]) -> Iterator[OpenEntry]:
    previous = ""
    for place, columns in _rows(path, hashes):
        if len(columns) != 4:
            faults.append(Fault(place, f"expected 4 columns, word, POS, gloss and sememes, found {len(columns)}"))
            continue
        word, part_of_speech, gloss, bag = columns
        names = ("word", "POS", "gloss", "sememes")
        for name, value in zip(names, columns, strict=True):
            if not value.strip():
                faults.append(Fault(place, f"the {name} of this entry is empty"))
            elif value != value.strip():
                faults.append(Fault(place, f"blanks around the {name} {value!r}", is_fatal=False))
        if part_of_speech.strip() and part_of_speech.strip() not in PARTS_OF_SPEECH:
            faults.append(Fault(place, f"POS {part_of_speech!r} of {word!r} is none of {' '.join(PARTS_OF_SPEECH)}"))
        sememes = bag.split()
        for sememe in sememes:
            if sememe not in inventory:
                faults.append(Fault(place, f"sememe {sememe!r} of {word!r} is not in {INVENTORY}"))
        if len(set(sememes)) < len(sememes):
            faults.append(Fault(place, f"a sememe of {word!r} stands twice: {bag!r}", is_fatal=False))
        if word < previous:
            message = f"word {word!r} comes after {previous!r}; entries of a file are sorted by the code points of the word"
            faults.append(Fault(place, message, is_fatal=False))
        previous = word
        if word.strip() and sememes:
            yield OpenEntry(place, Sense(word.strip(), tuple(sememes), part_of_speech.strip(), gloss.strip()))


def _repeated(entries: list[OpenEntry]) -> Iterator[Fault]:
    first: dict[tuple[str, str, tuple[str, ...]], str] = {}
    for entry in entries:
        sense = entry.sense
        key = (sense.word, sense.part_of_speech, sense.sememes)
        if key in first:
            message = f"{sense.word!r} has this part of speech with the same sememes in {first[key]} already"
            yield Fault(entry.place, message, is_fatal=False)
        first.setdefault(key, entry.place)
