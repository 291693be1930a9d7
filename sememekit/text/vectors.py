"""Word vectors from text files in GloVe's format (each line a word and its numbers), possibly compressed or with a header."""

import gzip
import hashlib
import lzma
import zlib
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sememekit.errors import DataError
from sememekit.files import how_to_convert, opening, warn
from sememekit.files.reading import SAMPLE
from sememekit.files.tables import numbered
from sememekit.text.vocabulary import parse_number


@dataclass(frozen=True)
class WordVectors:
    """Words with their vectors, in the order of the file: n distinct ``words``, ``matrix`` (n, E) and the SHA-256 of the file.

    The first line of a repeated word counts."""

    words: tuple[str, ...]
    matrix: NDArray[np.float32]
    sha256: str

    @property
    def size(self) -> int:
        return self.matrix.shape[1]

    @cached_property
    def row_of(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}


def read_vectors(path: Path, *, words: Container[str] | None = None, size: int | None = None) -> WordVectors:
    """Read a text file of word vectors, ``word number number ...`` a line; a header of word2vec is skipped.

    Lines without a word are left out, and a RunWarning counts them.

    ``.xz`` and ``.gz`` are decompressed. ``words`` keeps only these words; ``size`` is E (default: from the first line).
    Raises DataError, with the line: absent, cut off, not UTF-8, a line of another width than E, or a number not finite."""
    kept: dict[str, NDArray[np.float32]] = {}
    wordless: list[int] = []
    for number, line in numbered(_lines(path)):
        fields = line.rstrip().split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            continue
        if size is None:
            size = len(fields) - 1
            if not 1 <= size <= 10_000:
                raise DataError(
                    f"{path}:{number}: a line of vectors is a word and its numbers, blanks between; given {line[:60]!r}"
                )
        # Some words of the large GloVe files have blanks inside, so the numbers are counted from the end.
        word, values = " ".join(fields[:-size]), fields[-size:]
        if len(fields) == size + 1 and not word.strip():
            wordless.append(number)
            continue
        if not word or any(parse_number(field) is not None for field in fields[1:-size]):
            raise DataError(
                f"{path}:{number}: {len(fields) - 1} numbers behind the word, and vectors of {size} are expected here"
            )
        if word in kept or (words is not None and word not in words):
            continue
        try:
            vector = np.array(values, dtype=np.float32)
        except ValueError as error:
            raise DataError(
                f"{path}:{number}: the last {size} fields of the line for {word[:30]!r} must be numbers ({error})"
            ) from None
        if not np.isfinite(vector).all():
            raise DataError(f"{path}:{number}: the vector of {word[:30]!r} holds a number that is not finite")
        kept[word] = vector
    if size is None:
        raise DataError(f"{path}: holds no vectors")
    if wordless:
        warn(f"{path}:{wordless[0]}: the vector has no word, so it is left out; {len(wordless):,} in this file")
    matrix = np.stack(list(kept.values())) if kept else np.zeros((0, size), dtype=np.float32)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return WordVectors(tuple(kept), matrix, digest)


def _lines(path: Path) -> Iterator[str]:
    done = 0
    open_text: Any = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix.lower(), open)
    try:
        with opening(path, DataError), open_text(path, "rt", encoding="utf-8-sig") as file:
            for line in file:
                yield line
                done += 1
    except (lzma.LZMAError, zlib.error, EOFError) as error:
        kind = path.suffix[1:]
        raise DataError(f"{path}: not an intact {kind} file: after line {done:,}, {error}; fetch it again") from None
    except UnicodeDecodeError:
        with path.open("rb") as raw:
            remedy = how_to_convert(raw.read(SAMPLE), path)
        raise DataError(f"{path}: not UTF-8 after line {done:,}; {remedy}, or is it a binary file of vectors?") from None
