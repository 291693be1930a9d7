"""WordNet's antonyms: the pointers ``!`` between words of its data files, as wndb(5) describes them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from sememekit.errors import DataError
from sememekit.sememes.wordnet import FILES, wordnet_folder

_MARKER: Final = re.compile(r"\((?:a|p|ip)\)$")
_POINTER_FILE: Final = {"n": "n", "v": "v", "a": "a", "s": "a", "r": "r"}


def read_antonyms(path: str = "") -> tuple[frozenset[frozenset[str]], str]:
    """All pairs of single words that are antonyms, in lower case, and the SHA-256 over the four files.

    Args:
        path: folder of WordNet's data files; empty for Debian's.

    Raises:
        DataError: a file is absent, is not text, or has a line that is no synset; names the line.
    """
    folder = wordnet_folder(path)
    words: dict[tuple[str, str], list[str]] = {}
    pointers: list[tuple[str, tuple[str, str], int, str]] = []
    digest = hashlib.sha256()
    for part, name in FILES.items():
        file = folder / name
        for number, line in enumerate(_text(file, digest).split("\n"), start=1):
            if not line.strip() or line.startswith("  "):
                continue
            fields = line.partition("|")[0].split()
            try:
                count = int(fields[3], 16)
                own = [_MARKER.sub("", word).lower() for word in fields[4 : 4 + 2 * count : 2]]
                words[part, fields[0]] = own
                begin = 4 + 2 * count
                for place in range(begin + 1, begin + 1 + 4 * int(fields[begin]), 4):
                    symbol, offset, kind, ends = fields[place : place + 4]
                    if symbol == "!" and ends != "0000":
                        target = (_POINTER_FILE[kind], offset)
                        pointers.append((own[int(ends[:2], 16) - 1], target, int(ends[2:], 16) - 1, f"{file}:{number}"))
            except (ValueError, IndexError, KeyError) as error:
                raise DataError(f"WordNet {file}:{number}: no synset ({error}): {line[:60]!r}") from None
    found = set()
    for word, target, index, where in pointers:
        others = words.get(target, [])
        if not 0 <= index < len(others):
            raise DataError(f"WordNet {where}: the antonym of {word!r} points to synset {target[1]} of data that has it not")
        if word != others[index]:
            found.add(frozenset((word, others[index])))
    return frozenset(found), digest.hexdigest()


def _text(file: Path, digest: hashlib._Hash) -> str:
    try:
        data = file.read_bytes()
        text = data.decode("utf-8")
    except OSError as error:
        raise DataError(f"WordNet {file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"WordNet {file}: byte {error.start} is not UTF-8") from None
    digest.update(data)
    return text
