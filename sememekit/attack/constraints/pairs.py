"""Constraints on pairs of words: opposites never replace each other; with a list of paraphrases, only listed pairs do."""

import hashlib
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import ClassVar, final

from sememekit.attack.constraints import Constraint
from sememekit.attack.resources import AttackResources, built_in_lines, named_apart
from sememekit.attack.space import Space
from sememekit.errors import DataError
from sememekit.files import at_home, decode, read_bytes
from sememekit.files.tables import table_rows
from sememekit.sememes.wordnet import read_wordnet

Pairs = frozenset[frozenset[str]]  # unordered pairs of two different words in lower case

_PREFIX = "en_"


def read_pairs(path: Path, what: str) -> tuple[Pairs, str]:
    """Read two words a line with white space between, as in the public lists of counter-fitting (Mrksic et al. 2016).

    A prefix ``en_`` of both words is removed; blank lines and lines with ``#`` are skipped. Returns the pairs and the SHA-256
    of the file. Raises DataError: naming ``what`` the list is, and the line."""
    data = read_bytes(path, refuse := lambda why: DataError(f"{what} {why}"))
    text = decode(data, path, refuse)
    found = set()
    for number, _, cells in table_rows(text, path):
        words = [cell.strip() for cell in cells] if len(cells) > 1 else cells[0].split()
        if words[0].startswith("#"):
            continue
        words = [word.lower() for word in words]
        if len(words) != 2 or not all(words):
            raise DataError(f"{what} {path}:{number}: {len(words)} words; a line holds two with a blank or TAB between")
        if all(word.startswith(_PREFIX) and word != _PREFIX for word in words):
            words = [word.removeprefix(_PREFIX) for word in words]
        if words[0] != words[1]:
            found.add(frozenset(words))
    if not found:
        raise DataError(f"{what} {path}: holds no pair of words")
    return frozenset(found), hashlib.sha256(data).hexdigest()


def read_lists(files: Iterable[str], what: str) -> tuple[set[frozenset[str]], dict[str, str]]:
    """The pairs of several lists, and name -> SHA-256 of each, as ``named_apart`` has them."""
    paths = [at_home(file) for file in files]
    read = [read_pairs(path, what) for path in paths]
    hashes = named_apart((path.name, digest) for path, (_, digest) in zip(paths, read, strict=True))
    return {pair for pairs, _ in read for pair in pairs}, hashes


def built_in_opposites() -> Pairs:
    """All pairs of our own short list, ``resources/attack/opposites.txt``."""
    sides = [[side.split() for side in line.split("|")] for line in built_in_lines("opposites")]
    return frozenset(frozenset(pair) for left, right in sides for pair in product(left, right) if pair[0] != pair[1])


@final
class Opposites(Constraint):
    """Forbid opposites of the word, which change the meaning of a text, and so its label.

    They are frequent among neighbours in word vectors (man and woman, up and down). Pairs come from given lists, from WordNet's
    antonyms, and from a short list of our own."""

    class Settings(Constraint.Settings):
        files: tuple[str, ...] = ()
        """Lists of two words a line, such as counter-fitting's antonym constraints; the command line's --opposites."""
        wordnet: str = ""
        """Folder of WordNet's data files, whose antonyms count, too; empty for none."""
        built_in: bool = True
        """Also use the short list that ships with sememekit."""

    settings: Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        self._pairs, self.hashes = read_lists(settings.files, "opposites")
        if settings.built_in:
            self._pairs |= built_in_opposites()
        if settings.wordnet:
            wordnet = read_wordnet(settings.wordnet)
            self._pairs |= wordnet.antonyms()
            self.hashes["wordnet antonyms"] = wordnet.sha256

    @property
    def told(self) -> str:
        given = self.settings.files or self.settings.wordnet
        lists = "with the lists given" if given else "our short list alone, no antonym list was given"
        return f"opposites left out: {len(self._pairs):,} pairs, {lists}"

    def narrow(self, space: Space) -> Space:
        return space.filtered(lambda word, other: frozenset((word.lower(), other.lower())) not in self._pairs)


@final
class Paraphrases(Constraint):
    """Forbid all substitutes that are not listed as paraphrases of the word."""

    class Settings(Constraint.Settings):
        files: tuple[str, ...] = ()
        """Lists of two words a line, such as counter-fitting's synonyms out of PPDB; the command line's --paraphrases."""

    settings: Settings

    required: ClassVar[Mapping[str, str]] = {
        "files": "[constraints.paraphrases] needs a list of two words a line: name it with --paraphrases FILE"
    }

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        self._pairs, self.hashes = read_lists(settings.files, "paraphrases")

    def narrow(self, space: Space) -> Space:
        return space.filtered(lambda word, other: frozenset((word.lower(), other.lower())) in self._pairs)
