"""The project's own lexicon: ``word TAB POS TAB gloss TAB sememes TAB Chinese gloss TAB example``, in ``.tsv`` files.

A folder has ``inventory.tsv`` (``english|中文 TAB parent TAB definition``; the parent may be absent), files of Chinese words,
and maybe more of them in ``zh`` and English words in ``en``. Chinese gloss and example are optional outside
``zh`` and ``en`` and in files whose first line is ``# short``. Lines that are blank or begin with ``# `` are comments."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sememekit.config import Record, resources_folder
from sememekit.errors import DataError
from sememekit.sememes.examples import place_of
from sememekit.sememes.lexicon import Lexicon, LexiconReader, Sense, lexicon_of
from sememekit.sememes.reading import read_lexicon_text

INVENTORY = "inventory.tsv"
FUNCTION_WORDS = "function-words.tsv"
LANGUAGES: Final = ("zh", "en")
PARTS_OF_SPEECH = tuple("nvadrmqpcuftwkeio")
"""Noun, verb, adjective, adverb, pronoun, numeral, measure word, preposition, conjunction, particle, localiser, time word,
punctuation, affix, exclamation, idiom or fixed phrase, other: a subset of the codes of the People's Daily corpus."""
MAX_SEMEMES = 900
MAX_DEPTH = 5
"""Levels of the taxonomy, the root included."""
SEMEMES_OF_A_SENSE = 5

_COLUMNS = ("word", "POS", "gloss", "sememes", "Chinese gloss", "example")
_HAN = "\u3400-\u9fff"
_NAME = re.compile(rf"[a-z0-9][a-z0-9-]*\|[{_HAN}][{_HAN}0-9]*")
_ODD = re.compile("[\u0000-\u001f\u007f-\u00a0\u00ad\u200b-\u200f\u2028-\u202f\u2060\u3000\ufeff\ufffd\ue000-\uf8ff]")
_WORD = {"zh": re.compile(rf"[{_HAN}A-Za-z0-9·]*[{_HAN}][{_HAN}A-Za-z0-9·]*"), "en": re.compile("[a-z0-9][a-z0-9'.&/-]*")}
_FORM = {"zh": "Chinese characters, and maybe letters and digits", "en": "lower case without blanks"}


class Fault(Record):
    """Something to fix in the open lexicon."""

    place: str
    """``file:line``."""
    message: str
    fatal: bool
    """True where the lexicon cannot be used until it is fixed."""


@dataclass(frozen=True)
class OpenScan:
    """Everything in the files of a lexicon, good and bad."""

    files: tuple[Path, ...]
    inventory: dict[str, str]
    """``english|中文`` -> definition."""
    parents: dict[str, str]
    """``english|中文`` -> ``english|中文`` of its parent; roots are absent."""
    senses: tuple[Sense, ...]
    faults: tuple[Fault, ...]
    sha256: str


class OpenLexiconReader(LexiconReader):
    """Reads ``zh`` (default) or ``en`` of sememekit's own lexicon, or a folder; ``lookup --check`` shows all faults."""

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
        folder = _home(self.path).resolve()
        name = f"{self.format_name}:{folder.parent.name if folder.is_file() else folder.name}"
        return lexicon_of(enumerate(scan.senses), self.path, name, scan.sha256, notes, self.inventory(scan))

    def inventory(self, scan: OpenScan) -> tuple[str, ...]:
        """The sememes that the lexicon declares."""
        return tuple(scan.inventory)


class FunctionWordsReader(OpenLexiconReader):
    """Our list of English function words and of corpus marks for numbers, unknown words and sentence ends."""

    format_name = "function-words"
    default_path = str(resources_folder() / "lexicon" / "en" / FUNCTION_WORDS)

    def inventory(self, scan: OpenScan) -> tuple[str, ...]:
        """Return the sememes in use: with all of the inventory, special tokens would take sememes of other words."""
        used = {name for sense in scan.senses for name in sense.sememes}
        return tuple(name for name in scan.inventory if name in used)


def _home(path: Path) -> Path:
    """The folder of a lexicon of sememekit's own by the name of its language, or ``path``."""
    own = resources_folder() / "lexicon"
    return {"zh": own, "en": own / "en"}.get(str(path), path)


def files_of(path: Path) -> tuple[Path, tuple[Path, ...]]:
    """Return the inventory and the files of entries of a lexicon, or of one file. Raises DataError: one of them is absent.

    A folder ``zh`` or ``en``, and a file, have the inventory of the nearest folder above. Function words come first. Plain
    ``open`` is the lexicon by which results were measured; ``zh`` has the Chinese words that were added since, too."""
    of_results, path = path == resources_folder() / "lexicon", _home(path)
    if not path.exists():
        raise DataError(f"open lexicon {path}: there is no such folder; 'open' alone names the one that ships with sememekit")
    above = [*([path] if path.is_dir() else []), *list(path.absolute().parents)[:2]]
    inventory = next((folder / INVENTORY for folder in above if (folder / INVENTORY).is_file()), path / INVENTORY)
    found = [path] if path.is_file() else sorted([*path.glob("*.tsv"), *([] if of_results else path.glob("zh/*.tsv"))])
    files = sorted((file for file in found if file.name != INVENTORY), key=lambda file: file.name != FUNCTION_WORDS)
    if not inventory.is_file() or not files:
        raise DataError(f"open lexicon {path}: needs {INVENTORY} and at least one other .tsv file with entries")
    return inventory, tuple(files)


def scan_open_lexicon(path: Path) -> OpenScan:
    """Read a lexicon, or one file, and collect every fault. Raises DataError: as ``files_of``, or a file is not UTF-8."""
    source, files = files_of(path)
    faults: list[Fault] = []
    hashes: list[str] = []
    inventory, parents = _read_inventory(source, faults, hashes)
    entries = [entry for file in files for entry in _read_entries(file, inventory, faults, hashes)]
    _find_doubles(entries, faults)
    digest = hashlib.sha256("".join(hashes).encode()).hexdigest()
    return OpenScan(files, inventory, parents, tuple(sense for _, _, sense in entries), tuple(faults), digest)


def _fault(place: str, message: str, fatal: bool = True) -> Fault:
    return Fault(place=place, message=message, fatal=fatal)


def _rows(path: Path, hashes: list[str]) -> Iterator[tuple[str, list[str]]]:
    source = read_lexicon_text(path)
    hashes.append(f"{path.name} {source.sha256}\n")
    for row in source.rows(comment="# "):
        yield source.place(row.line), row.cells


def _find_doubles(entries: list[tuple[str, Path, Sense]], faults: list[Fault]) -> None:
    """Report senses that equal another of their word, and words of ``zh`` and ``en`` that stand in two files."""
    first: dict[tuple[str, str, tuple[str, ...]], str] = {}
    file_of: dict[str, Path] = {}
    for place, file, sense in entries:
        by_field = file.parent.name in LANGUAGES
        part_of_speech = "" if by_field else sense.part_of_speech
        known = first.setdefault((sense.word, part_of_speech, sense.sememes), place)
        if known != place:
            what = "a sense" if by_field else "this part of speech"
            faults.append(_fault(place, f"{sense.word!r} has {what} with the same sememes in {known} already", fatal=False))
        at = file_of.setdefault(sense.word, file)
        if at != file and by_field and at.name != FUNCTION_WORDS:
            faults.append(
                _fault(place, f"{sense.word!r} stands in {at.name}; all senses of a word stand in one file", fatal=False)
            )


def _read_inventory(path: Path, faults: list[Fault], hashes: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    inventory: dict[str, str] = {}
    sides: dict[str, str] = {}
    above: dict[str, str] = {}
    places: dict[str, str] = {}
    for place, columns in _rows(path, hashes):
        if len(columns) not in (2, 3) or not columns[0].strip() or not columns[-1].strip():
            wanted = "english|中文, parent (may be empty) and definition"
            faults.append(_fault(place, f"expected 2 or 3 columns, {wanted}, found {len(columns)}"))
            continue
        sememe, definition = columns[0], columns[-1]
        parts = sememe.split("|")
        if len(parts) != 2 or not all(parts) or sememe != "".join(sememe.split()):
            faults.append(_fault(place, f"sememe {sememe!r} is not written english|中文 without blanks"))
            continue
        if not _NAME.fullmatch(sememe) or _ODD.search(definition):
            faults.append(
                _fault(place, f"sememe {sememe!r} or its definition has characters that are not allowed", fatal=False)
            )
        for side in parts:
            if side in sides:
                faults.append(_fault(place, f"name {side!r} of sememe {sememe!r} stands in {sides[side]} already"))
            sides.setdefault(side, place)
        inventory[sememe], places[sememe] = definition, place
        if len(columns) == 3 and columns[1].strip():
            above[sememe] = columns[1].strip()
    if len(inventory) > MAX_SEMEMES:
        faults.append(_fault(f"{path}:1", f"{len(inventory)} sememes, and at most {MAX_SEMEMES} are allowed", fatal=False))
    named = {sememe.partition("|")[0]: sememe for sememe in inventory}
    for sememe, parent in above.items():
        if parent not in named:
            faults.append(_fault(places[sememe], f"parent {parent!r} of {sememe!r} is not in the inventory", fatal=False))
    parents = {sememe: named[parent] for sememe, parent in above.items() if parent in named}
    for sememe in parents:
        way = [sememe]
        while way[-1] in parents and parents[way[-1]] not in way:
            way.append(parents[way[-1]])
        if way[-1] in parents:
            faults.append(_fault(places[sememe], f"the parents of {sememe!r} form a circle: {' > '.join(way)}", fatal=False))
        elif len(way) > MAX_DEPTH:
            faults.append(
                _fault(places[sememe], f"{sememe!r} is on level {len(way)}, and {MAX_DEPTH} are allowed", fatal=False)
            )
    return inventory, parents


def _read_entries(
    path: Path, inventory: dict[str, str], faults: list[Fault], hashes: list[str]
) -> Iterator[tuple[str, Path, Sense]]:
    previous = ""
    language = path.parent.name if path.parent.name in LANGUAGES else ""
    complete = bool(language) and read_lexicon_text(path).lines()[:1] != ["# short"]
    for place, columns in _rows(path, hashes):
        if len(columns) not in (4, 6) or (complete and len(columns) == 4):
            wanted = "6 columns" if complete else "4 columns"
            names = "word, POS, gloss and sememes" + (
                ", Chinese gloss and example" if complete else ", or 6 with Chinese gloss and example"
            )
            faults.append(_fault(place, f"expected {wanted}, {names}, found {len(columns)}", fatal=len(columns) < 4))
            if len(columns) < 4:
                continue
        word, part_of_speech, gloss, bag, chinese, example = (*columns, "", "")[:6]
        for name, value in zip(_COLUMNS, columns, strict=False):
            if not value.strip():
                faults.append(_fault(place, f"the {name} of this entry is empty", fatal=name in _COLUMNS[:4]))
            elif value != value.strip():
                faults.append(_fault(place, f"blanks around the {name} {value!r}", fatal=False))
            elif _ODD.search(value):
                faults.append(_fault(place, f"the {name} {value!r} has a character that is not allowed", fatal=False))
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
        sense = Sense(word.strip(), tuple(sememes), part_of_speech.strip(), gloss.strip(), "", chinese.strip(), example.strip())
        if complete:
            faults += [_fault(place, doubt, fatal=False) for doubt in _doubts(sense, language)]
        if sense.example and place_of(sense.word, sense.example) is None:
            message = f"the example {sense.example!r} of {sense.word!r} does not have the word, between blanks, or a form of it"
            faults.append(_fault(place, message, fatal=False))
        if sense.word and sememes:
            yield place, path, sense


def _doubts(sense: Sense, language: str) -> Iterator[str]:
    """Yield what is wrong with an entry of a file by field, beyond its columns."""
    if not _WORD[language].fullmatch(sense.word):
        yield f"word {sense.word!r} must be written in {_FORM[language]}"
    if len(sense.sememes) > SEMEMES_OF_A_SENSE:
        yield f"{sense.word!r} has {len(sense.sememes)} sememes, and {SEMEMES_OF_A_SENSE} are allowed"
    if re.search(f"[{_HAN}]", sense.gloss):
        yield f"the English gloss {sense.gloss!r} has Chinese characters"
    if sense.gloss_zh and not re.search(f"[{_HAN}]", sense.gloss_zh):
        yield f"the Chinese gloss {sense.gloss_zh!r} has no Chinese characters"
    tokens = sense.example.split()
    if tokens and not 2 <= len(tokens) <= 6:
        yield f"the example {sense.example!r} has {len(tokens)} words, and 2 to 6 are allowed; blanks stand between words"
    if re.search('[,.;:!?，。；：！？、“”"]( |$)', sense.example) or (
        language == "en" and sense.example != sense.example.lower()
    ):
        yield f"the example {sense.example!r} must have no punctuation marks, and English ones no capitals"
