"""The vocabulary: the id of each word, and its count."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import numpy as np
import numpy.typing as npt

from sememekit.errors import DataError
from sememekit.files import read_text

UNKNOWN: Final = "<unk>"
END: Final = "<eos>"
STOP: Final = "</s>"  # end mark of targets of pairs, and of sentences prepared with the vocabulary of pairs

LARGEST_COUNT: Final = 2**63 - 1

_FORBIDDEN: Final = frozenset("\t\n\r\0")


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Vocabulary:
    """Immutable: V words with ids 0..V-1 by falling count, then by spelling (code points).

    >>> words = Vocabulary.from_counts({"the": 3, "cat": 1}, specials=("<unk>",))
    >>> words.encode(["the", "dog"]).tolist(), words.decode([1])
    ([0, 2], ['cat'])

    Attributes:
        tokens: the V words in the order of their ids.
        counts: (V,) int64, read-only: counts in the splits named by the signature. For pairs only predictions count: the words
            of the targets, and ``</s>`` for each.
        unknown_id: the id of ``<unk>``; None in a closed vocabulary.
        end_id: the id of ``<eos>``, else of ``</s>``, else None.
        fingerprint: 16 hexadecimal digits of the SHA-256 over words and counts; graphs and checkpoints hold it."""

    tokens: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    unknown_id: int | None
    end_id: int | None
    fingerprint: str
    _ids: dict[str, int]

    def __init__(self, tokens: Sequence[str], counts: Sequence[int] | npt.NDArray[np.int64], where: str = "vocabulary") -> None:
        """Take sorted words with counts, as from :meth:`from_counts`; messages begin with ``where``.

        Raises DataError: no words, a repeated word, a word with a tab or a line end, or a wrong order."""
        words = tuple(tokens)
        try:
            numbers = np.array(counts, dtype=np.int64)
        except OverflowError:
            raise DataError(f"{where}: a count above {LARGEST_COUNT:,}, which 64 bits cannot hold") from None
        _check(words, numbers, where)
        numbers.setflags(write=False)
        ids = {token: index for index, token in enumerate(words)}
        own = vars(self)
        own |= {"tokens": words, "counts": numbers, "_ids": ids}
        own |= {"unknown_id": ids.get(UNKNOWN), "end_id": ids.get(END, ids.get(STOP))}
        own["fingerprint"] = hashlib.sha256(self._as_bytes()).hexdigest()[:16]

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], specials: Sequence[str] = ()) -> Vocabulary:
        """Order words by falling count, then spelling; add missing ``specials`` with 0. Raises DataError as the constructor."""
        merged = {**dict.fromkeys(specials, 0), **counts}
        ordered = sorted(merged.items(), key=lambda item: (-item[1], item[0]))
        return cls([token for token, _ in ordered], [count for _, count in ordered])

    def __reduce__(self) -> tuple[type[Vocabulary], tuple[tuple[str, ...], list[int]]]:
        return Vocabulary, (self.tokens, self.counts.tolist())

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words, fingerprint {self.fingerprint})"

    def id(self, token: str) -> int:
        """Return the id of a word (default: of ``<unk>``). Raises DataError for an unknown word without ``<unk>``."""
        found: int | None = self._ids.get(token, self.unknown_id)
        if found is None:
            raise DataError(f"the word {token!r} is not among the {len(self)} of the vocabulary, which has no {UNKNOWN!r}")
        return found

    def token(self, id: int) -> str:
        """The word of an id. Raises DataError for an id outside 0..V-1."""
        if not 0 <= id < len(self.tokens):
            raise DataError(f"id {id} is outside the vocabulary: allowed are 0 to {len(self) - 1}")
        return self.tokens[id]

    def encode(self, tokens: Iterable[str]) -> npt.NDArray[np.int64]:
        """Words to ids, (N,) int64. Raises DataError as :meth:`id`."""
        known, unknown = self._ids, self.unknown_id
        if unknown is None:
            return np.array([self.id(token) for token in tokens], dtype=np.int64)
        return np.array([known.get(token, unknown) for token in tokens], dtype=np.int64)

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Ids to words. Raises DataError as :meth:`token`."""
        return [self.token(int(index)) for index in ids]

    def save(self, path: Path | str) -> None:
        """Write ``token TAB count`` lines, UTF-8 with LF."""
        Path(path).write_bytes(self._as_bytes())

    @classmethod
    def load(cls, path: Path | str) -> Vocabulary:
        """Read what :meth:`save` wrote. Raises DataError with ``file:line``."""
        tokens: list[str] = []
        counts: list[int] = []
        text = read_text(Path(path), DataError)
        if not text.endswith("\n"):
            what = "the last line has no line end, so the file is cut short" if text else "the vocabulary is empty"
            raise DataError(f"{path}: {what}")
        for number, line in enumerate(text[:-1].split("\n"), start=1):
            token, tab, count = line.partition("\t")
            value = parse_count(count)
            if not tab or value is None:
                rule = f"; a count is 0 to {LARGEST_COUNT}" if count.isdecimal() else ""
                raise DataError(f"{path}:{number}: expected 'word TAB count', found {line[:80]!r}{rule}")
            tokens.append(token)
            counts.append(value)
        return cls(tokens, counts, where=str(path))

    def _as_bytes(self) -> bytes:
        text = "".join(f"{token}\t{count}\n" for token, count in zip(self.tokens, self.counts.tolist(), strict=True))
        return ("\ufeff" + text if text.startswith("\ufeff") else text).encode()  # a reader takes one byte-order mark off


def parse_number(text: str) -> float | None:
    """Parse a finite number, also in full width, or return None."""
    try:
        number = float(unicodedata.normalize("NFKC", text))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def parse_count(text: str) -> int | None:
    """Parse an integer from 0 to ``LARGEST_COUNT``, or return None."""
    digits = len(str(LARGEST_COUNT))
    value = int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else None
    return value if value is not None and value <= LARGEST_COUNT else None


def _check(tokens: tuple[str, ...], counts: npt.NDArray[np.int64], where: str) -> None:
    if not tokens:
        raise DataError(f"{where}: no words")
    if counts.shape != (len(tokens),):
        raise DataError(f"{where}: {len(tokens)} words but counts of shape {counts.shape}")
    seen: dict[str, int] = {}
    previous: tuple[int, str] | None = None
    for number, (token, count) in enumerate(zip(tokens, counts.tolist(), strict=True), start=1):
        if not token or not _FORBIDDEN.isdisjoint(token):
            raise DataError(f"{where}:{number}: {token!r} cannot be a word: it is empty, or holds a tab, a line end or NUL")
        if not token.isascii() and any("\ud800" <= character <= "\udfff" for character in token):
            raise DataError(f"{where}:{number}: {token!r} holds half a surrogate pair, which UTF-8 cannot store")
        if count < 0:
            raise DataError(f"{where}:{number}: {token!r} has the count {count}; allowed are 0 and more")
        if token in seen:
            raise DataError(f"{where}:{number}: {token!r} stands on line {seen[token]} already")
        key = (-count, token)
        if previous is not None and key < previous:
            raise DataError(f"{where}:{number}: {token!r} with count {count} is out of order: by falling count, then spelling")
        seen[token] = number
        previous = key
