"""What WordNet knows beside its synsets: the order of the senses of a word, and the base forms of inflected words.

``index.noun`` and so on name the synsets of a lemma, the most frequent sense first; ``noun.exc`` and so on list irregular
forms. Formats as in the manual pages wndb(5) and morphy(7).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sememekit.errors import DataError
from sememekit.sememes.wordnet import database_lines

NAMES: Final = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}

ENDINGS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "n": (
        *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z")),
        *(("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")),
    ),
    "v": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}
"""Part of speech -> (ending, what stands for it in the base form); a base form must be known with that part of speech."""


@dataclass(frozen=True)
class WordNetIndex:
    """The index and exception files.

    Attributes:
        name: for reports.
        sha256: over all of them.
        senses: (part of speech, lemma in lower case, blanks for underscores) -> offsets of its synsets, frequent first.
        irregular: (part of speech, form) -> base forms.
    """

    name: str
    sha256: str
    senses: Mapping[tuple[str, str], tuple[str, ...]]
    irregular: Mapping[tuple[str, str], tuple[str, ...]]

    def bases(self, word: str) -> tuple[str, ...]:
        """Base forms that WordNet has of an inflected word, by part of speech, irregular ones first; never the word itself."""
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
    """Read ``index.*`` and ``*.exc`` of a folder with WordNet's database. Raises DataError: a file is absent or has a line that
    is none of its format."""
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
