"""Read whole lexicon files: decompress, detect the encoding by strict decoding, hash the bytes."""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from sememekit.errors import DataError
from sememekit.files import (
    CutArchiveError,
    DamagedArchiveError,
    how_to_convert,
    read_bytes,
    unpack_blocks,
)
from sememekit.files.packed import BLOCK
from sememekit.files.tables import Row, numbered, split_lines, table_rows

MAX_BYTES = 1 << 30
"""A larger lexicon (after decompression) is refused, since an archive can expand without limit; HowNet has 60 MB."""


@dataclass(frozen=True)
class LexiconText:
    """The text of one file, with the SHA-256 of its bytes on disk."""

    path: Path
    text: str
    sha256: str
    encoding: str

    def lines(self) -> list[str]:
        """All lines without their ends."""
        return split_lines(self.text)

    def entries(self, comment: str = "") -> Iterator[tuple[int, str]]:
        """(number, line) of lines that are not blank and do not begin with ``comment``."""
        return ((number, line) for number, line in numbered(self.lines()) if not (comment and line.startswith(comment)))

    def rows(self, comment: str = "", names: Collection[str] = ()) -> Iterator[Row]:
        """The rows of a table, as ``table_rows``, without those that begin with ``comment``."""
        rows = table_rows(self.lines(), self.path, names)
        return (row for row in rows if not (comment and row.cells[0].startswith(comment)))

    def place(self, line: int) -> str:
        """``file:line`` for a message."""
        return f"{self.path}:{line}"


def read_lexicon_bytes(path: Path) -> bytes:
    """All bytes of a file. Raises DataError: absent, a folder, unreadable, or empty."""
    data = read_bytes(path, lambda why: DataError(f"lexicon {why}; give FORMAT:PATH with the path of a file"))
    if not data:
        raise DataError(f"lexicon {path}: the file is empty")
    return data


def read_lexicon_text(path: Path, encodings: tuple[str, ...] = ("utf-8-sig",)) -> LexiconText:
    """Read and decode a file, perhaps compressed (``.xz``, ``.gz``; concatenated archives are one text), by the first of the
    ``encodings`` that fits every byte. Raises DataError: absent, empty, a broken or oversized archive, not text in any of the
    encodings (with the place of the first bad byte in the first encoding), or with NUL bytes in it (UTF-16, or no text)."""
    packed = read_lexicon_bytes(path)
    data = _unpack(path, packed) if path.suffix in (".xz", ".gz") else packed
    digest = hashlib.sha256(packed).hexdigest()
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        remedy = how_to_convert(data[:BLOCK], path)
        raise DataError(f"{path}:{line}: holds a NUL byte, so it is no text in {_spelled(encodings)}; {remedy}")
    first_fault = ""
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            first_fault = (
                first_fault or f"{path}:{line}: byte {error.start} (0x{data[error.start]:02x}) is not {_spelled((encoding,))}"
            )
            continue
        if not text.strip("\ufeff").strip():
            raise DataError(f"lexicon {path}: the file holds nothing but blanks")
        return LexiconText(path=path, text=text, sha256=digest, encoding=encoding)
    others = f"; nor is the file {_spelled(encodings[1:])}" if len(encodings) > 1 else ""
    raise DataError(f"{first_fault}{others}; {how_to_convert(data, path)}")


def _spelled(encodings: tuple[str, ...]) -> str:
    """Return the usual names of encodings; utf-8-sig is UTF-8."""
    return " or ".join(encoding.removesuffix("-sig").upper() for encoding in encodings)


def _unpack(path: Path, packed: bytes) -> bytes:
    kind = path.suffix[1:]
    found, size = [], 0
    try:
        for block in unpack_blocks(path.suffix, (packed[start : start + BLOCK] for start in range(0, len(packed), BLOCK))):
            found.append(block)
            size += len(block)
            if size > MAX_BYTES:
                raise DataError(f"lexicon {path}: holds more than 1 GiB")
    except CutArchiveError:
        raise DataError(f"lexicon {path}: is cut off: the end of the {kind} stream is missing") from None
    except DamagedArchiveError as error:
        raise DataError(f"lexicon {path}: not an intact {kind} file: {error}") from None
    return b"".join(found)
