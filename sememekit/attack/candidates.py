"""Sources of substitutes for a word: one table for all words of an attack, made before it starts."""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sememekit.attack.resources import AttackPart, hashes_of
from sememekit.errors import DataError
from sememekit.files import at_home, read_bytes
from sememekit.sememes.substitutes import Inflections, Substitutes
from sememekit.sememes.wordnet import read_wordnet
from sememekit.text.vectors import read_vectors

_SEVERAL: Final = re.compile(r"[\s_]")  # the separators between the words of an expression: a blank in text, ``_`` in WordNet


class Candidates(AttackPart, ABC):
    """A source of substitutes.

    >>> candidates = TableCandidates(TableCandidates.Settings(path=substitutes, most=1), resources)
    >>> candidates.table(["good", "film"])
    {'good': ('fine',)}"""

    class Settings(AttackPart.Settings):
        most: int = Field(default=0, ge=0)
        """Substitutes for each word; 0 for all."""

    settings: Settings

    @abstractmethod
    def table(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the substitutes of each word, best first; words without any may be left out. DataError: an unusable file.

        Substitutes differ from the word and from each other, and are single words of ``resources.known_words``: expressions
        with blanks or underscores are left out."""

    def usable(self, word: str, substitutes: Iterable[str]) -> tuple[str, ...]:
        """Return the first ``most`` allowed substitutes (see ``Candidates.table``)."""
        known, most = self.resources.known_words, self.settings.most
        fine = [
            other
            for other in dict.fromkeys(substitutes)
            if other != word and not _SEVERAL.search(other.strip("_")) and (known is None or other in known)
        ]
        return tuple(fine[:most] if most else fine)


@final
class SememeCandidates(Candidates):
    """Words with an equal set of sememes in some sense, of the same part of speech where it is known (Zang et al. 2020).

    They are sorted by the number of shared senses, then by frequency in the victim's training (if known) or in the attacked
    texts, then by spelling. ``most`` cuts this order."""

    class Settings(Candidates.Settings):
        sources: tuple[str, ...] = ()
        """Lexicons, each as ``FORMAT:PATH``, as ``build-sememe-graph`` takes them."""
        lemmas: str = ""
        """A file of ``lemma TAB form`` lines, or ``wordnet``: inflected words get inflected substitutes; empty for none."""

    settings: Settings

    required: ClassVar[Mapping[str, str]] = {
        "sources": "[candidates] sememe: name a lexicon: --source open (Chinese), or --source table:FILE with a word, TAB and "
        "its sememes a line; without a lexicon: --candidates wordnet, or --candidates table --set candidates.path=synonyms.json"
    }

    def table(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        lexicons = self.resources.lexicons(self.settings.sources)
        inflections = None
        if self.settings.lemmas:
            inflections = Inflections.open(self.settings.lemmas, (*words, *self.resources.frequent_words))
        self.hashes = hashes_of(lexicons, inflections)
        ranks = {word: rank for rank, word in reversed(list(enumerate(self.resources.frequent_words)))}
        substitutes = Substitutes(lexicons, inflections, ranks)
        return {word: self.usable(word, substitutes.of(word)) for word in dict.fromkeys(words)}


_WORDS_AT_ONCE: Final = 256


@final
class EmbeddingCandidates(Candidates):
    """The nearest words, nearest first, whose SQUARED Euclidean distance is below ``delta``.

    As in the public code of Alzantot et al. 2018, which puts words without a vector at the origin; here they are excluded."""

    class Settings(Candidates.Settings):
        path: str = ""
        """Word vectors as text, ``.xz`` too; counter-fitted in the paper."""
        delta: float = Field(default=0.5, gt=0.0)
        """Upper bound of the squared distance of neighbours."""
        most: int = Field(default=8, ge=1)
        """Neighbours for each word; only words that the victim knows are searched."""
        normalise: bool = False
        """Normalise all vectors to length 1 first; the squared distance is then 2 - 2 cos."""

    settings: Settings

    required: ClassVar[Mapping[str, str]] = {"path": "[candidates] embedding: name a file of word vectors with --vectors FILE"}

    def table(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        known = self.resources.known_words
        vectors = read_vectors(at_home(self.settings.path), words=None if known is None else known | set(words))
        self.hashes = {Path(self.settings.path).name: vectors.sha256}
        matrix = vectors.matrix.astype(np.float64)
        lengths = np.linalg.norm(matrix, axis=1)
        if self.settings.normalise:
            matrix = matrix / np.where(lengths > 0, lengths, 1.0)[:, None]
        allowed = [row for row, word in enumerate(vectors.words) if lengths[row] > 0 and (known is None or word in known)]
        asked = [word for word in dict.fromkeys(words) if word in vectors.row_of and lengths[vectors.row_of[word]] > 0]
        names, targets = [vectors.words[row] for row in allowed], matrix[allowed]
        found: dict[str, tuple[str, ...]] = {}
        for begin in range(0, len(asked), _WORDS_AT_ONCE):
            block = asked[begin : begin + _WORDS_AT_ONCE]
            distances = squared_distances(matrix[[vectors.row_of[word] for word in block]], targets)
            for word, row in zip(block, distances, strict=True):
                near = np.flatnonzero(row < self.settings.delta)
                order = near[np.argsort(row[near], kind="stable")][: self.settings.most + 1]
                found[word] = self.usable(word, (names[index] for index in order))
        return found


def squared_distances(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, m) squared Euclidean distances between rows (n, E) and (m, E), never below zero."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None] - 2.0 * (first @ second.T)
    return np.maximum(squares, 0.0)


@final
class WordNetCandidates(Candidates):
    """Words that share a synset (and so a part of speech) with the word, in the order of the word's synsets."""

    class Settings(Candidates.Settings):
        path: str = ""
        """Folder of WordNet's data files; empty for Debian's."""

    settings: Settings

    def table(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        wordnet = read_wordnet(self.settings.path)
        self.hashes = {"wordnet": wordnet.sha256}
        return {word: self.usable(word, wordnet.synonyms(word)) for word in dict.fromkeys(words)}


@final
class TableCandidates(Candidates):
    """``{word: [substitute, ...]}``, or ``{word: {part of speech: [substitute, ...]}}`` as DictSKB's files have it."""

    class Settings(Candidates.Settings):
        path: str
        """A JSON file of words and their substitutes."""

    settings: Settings

    def table(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        path = at_home(self.settings.path)
        data = read_bytes(path, DataError)
        try:
            content = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: not JSON: {error}") from None
        if not isinstance(content, dict):
            raise DataError(
                f"{path}: a table of substitutes is an object, word -> substitutes, and this is {type(content).__name__}"
            )
        self.hashes = {Path(self.settings.path).name: hashlib.sha256(data).hexdigest()}
        asked = (word for word in dict.fromkeys(words) if word in content)
        return {word: self.usable(word, _strings(content[word], word, path)) for word in asked}


def _strings(found: Any, word: str, path: Path) -> Iterator[str]:
    for part in found.values() if isinstance(found, dict) else (found,):
        if not isinstance(part, list) or not all(isinstance(item, str) for item in part):
            raise DataError(f"{path}: the substitutes of {word!r} must be a list of words, or lists by part of speech")
        for item in part:
            if any("\ud800" <= letter <= "\udfff" for letter in item):
                raise DataError(f"{path}: a substitute of {word!r} holds half a surrogate pair: {item!a}; take it out")
            yield item


CANDIDATES: dict[str, str] = {
    "sememe": "sememekit.attack.candidates:SememeCandidates",
    "embedding": "sememekit.attack.candidates:EmbeddingCandidates",
    "wordnet": "sememekit.attack.candidates:WordNetCandidates",
    "table": "sememekit.attack.candidates:TableCandidates",
}
"""Name of ``--candidates`` -> "module:Class"."""
