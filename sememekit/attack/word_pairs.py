"""Lists of word pairs: opposites that must not stand for each other, or paraphrases that alone may."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sememekit.errors import DataError
from sememekit.files import decode, read_bytes

Pairs = frozenset[frozenset[str]]
"""Unordered pairs of two different words in lower case."""

_PREFIX = "en_"


def read_pairs(path: Path, what: str) -> tuple[Pairs, str]:
    """Two words a line with white space between, as the public constraint lists of counter-fitting (Mrksic et al. 2016).

    A prefix ``en_`` of both words is taken off; blank lines and lines that begin with ``#`` are passed over.

    Args:
        path: the list.
        what: it holds, for messages.

    Returns:
        the pairs, and the SHA-256 of the file.

    Raises:
        DataError: absent, not UTF-8, without a pair, or a line that has not two words; names the line.
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
