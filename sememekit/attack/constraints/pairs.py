"""Constraints on pairs of words: opposites never replace each other; with a list of paraphrases, only listed pairs do."""

import hashlib
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import ClassVar, Final, final

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


_NEGATING: Final = ("un", "in", "im", "il", "ir", "dis", "non", "non-", "mis", "不", "无", "非", "未")
"""Prefixes that make an opposite of a word: perfect and imperfect, 完美 and 不完美."""
_NO_OPPOSITES: Final = frozenset({"inflammable", "invaluable", "unravel", "unloose", "unloosen", "inhabit", "inhabitable"})
"""Words with such letters before a word of the same meaning."""
_CLOSED: Final = {word: line for line, words in enumerate(built_in_lines("closed")) for word in words.split()}
"""A word of a closed class -> the set of words that may replace it."""


def are_opposites_by_form(word: str, other: str) -> bool:
    """Return whether a prefix or suffix makes one lower-case word the opposite of the other: perfect and imperfect, hopeful and
    hopeless, use and useless, 有效 and 无效."""
    short, long = sorted((word, other), key=len)
    if long in _NO_OPPOSITES:
        return False
    if long.endswith(short) and long[: -len(short)] in _NEGATING and (len(short) > 2 or not short.isascii()):
        return True
    if {word[0], other[0]} == {"有", "无"} and word[1:] == other[1:]:
        return True
    return any(
        "less" in one[2:] and other in (one.replace("less", "ful"), one.replace("less", ""))
        for one, other in ((word, other), (other, word))
    )


@final
class Opposites(Constraint):
    """Forbid opposites of the word, which change the meaning of a text, and so its label.

    They are frequent among neighbours in word vectors (man and woman, up and down). Pairs come from given lists, from WordNet's
    antonyms, from prefixes and suffixes, and from a short list of our own. Words of kin, days and times of day replace each
    other only within a list of equal words: they share all sememes in HowNet, where "father" and "nephew" are both kin."""

    class Settings(Constraint.Settings):
        files: tuple[str, ...] = ()
        """Lists of two words a line, such as counter-fitting's antonym constraints; the command line's --opposites."""
        wordnet: str = ""
        """Folder of WordNet's data files, whose antonyms count, too; empty for none."""
        built_in: bool = True
        """Also use what ships with sememekit: a short list, prefixes and suffixes, kin and days."""

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
        lists += "; also opposites by prefix and suffix" if self.settings.built_in else ""
        return f"opposites left out: {len(self._pairs):,} pairs, {lists}"

    def narrow(self, space: Space) -> Space:
        return space.filtered(lambda word, other: self._may_stand(word.lower(), other.lower()))

    def _may_stand(self, word: str, other: str) -> bool:
        if frozenset((word, other)) in self._pairs:
            return False
        return not self.settings.built_in or (
            _CLOSED.get(word) == _CLOSED.get(other) and not are_opposites_by_form(word, other)
        )


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
