"""Lists of word pairs: opposites that must not stand for each other, or paraphrases that alone may."""

import hashlib
from collections.abc import Iterable
from itertools import product
from pathlib import Path

from sememekit.attack.resources import named_apart
from sememekit.config import resources_folder
from sememekit.errors import DataError
from sememekit.files import at_home, decode, read_bytes, read_text

Pairs = frozenset[frozenset[str]]
"""Unordered pairs of two different words in lower case."""

_PREFIX = "en_"


def read_pairs(path: Path, what: str) -> tuple[Pairs, str]:
    """Two words a line with white space between, as the public constraint lists of counter-fitting (Mrksic et al. 2016).

    A prefix ``en_`` of both words is taken off; blank lines and lines that begin with ``#`` are passed over. Gives the pairs
    and the SHA-256 of the file; a DataError says ``what`` the list is of, and names the line.
    """
    data = read_bytes(path, refuse := lambda why: DataError(f"{what} {why}"))
    text = decode(data, path, refuse)
    found = set()
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.lower().split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2:
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
    lines = read_text(resources_folder() / "attack" / "opposites.txt", DataError).splitlines()
    sides = [[side.split() for side in line.split("|")] for line in lines if not line.startswith("#")]
    return frozenset(frozenset(pair) for left, right in sides for pair in product(left, right) if pair[0] != pair[1])
