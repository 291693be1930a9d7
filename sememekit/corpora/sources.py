"""Source files: finding the splits of a folder, hashing, decompression."""

from __future__ import annotations

import bz2
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from sememekit.errors import DataError
from sememekit.files import opening
from sememekit.text.reading import FaultCounter

SPLITS: Final = ("train", "valid", "test")
_BLOCK: Final = 1 << 20

_UNPACKERS: Final[dict[str, Callable[[], Any]]] = {
    ".xz": lzma.LZMADecompressor,
    ".bz2": bz2.BZ2Decompressor,
    ".gz": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
}


PACKED: Final = tuple(_UNPACKERS)
"""Endings of compressed files that are read."""


class CorpusFile(NamedTuple):
    """A file to read, and its split; None for text that is to be divided into splits."""

    split: str | None
    path: Path


class Unpacked(NamedTuple):
    """A source that can be read by byte ranges.

    Attributes:
        path, text_bytes: the plain file, and its size.
        bytes, sha256: of the file as given.
        text_sha256: of the plain file, where its content does not follow from the file as given alone.
    """

    path: Path
    bytes: int
    sha256: str
    text_bytes: int
    text_sha256: str = ""


def find_splits(folder: Path, patterns: Sequence[str], required: Sequence[str] = SPLITS) -> list[CorpusFile]:
    """The files of a folder with one file for each split. Raises DataError when one of the ``required`` splits is missing.

    ``patterns`` are file names with ``{}`` for the split; a compressed file (.xz, .gz, .bz2) serves as well.
    """
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else "does not exist"
        raise DataError(f"{folder}: {kind}; a folder with {', '.join(patterns[0].format(split) for split in SPLITS)} is needed")
    found = []
    for split in SPLITS:
        tried = [pattern.format(split) + ending for pattern in patterns for ending in ("", *_UNPACKERS)]
        path = next((folder / name for name in tried if (folder / name).is_file()), None)
        if path is not None:
            found.append(CorpusFile(split, path))
        elif split in required:
            names = ", ".join(pattern.format(split) for pattern in patterns)
            raise DataError(f"{folder}: no file for the split {split!r}; looked for {names} (also as .xz, .gz, .bz2)")
    return found


def require_file(path: Path) -> Path:
    """The path. Raises DataError when it is a folder or absent."""
    if path.is_dir():
        raise DataError(f"{path}: a folder, where a text file is needed")
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    return path


def unpack(source: CorpusFile, folder: Path, faults: FaultCounter) -> Unpacked:
    """Hash a source and, when it is compressed, write its text into ``folder``, block by block. Raises DataError for a file
    that cannot be read, is empty, is damaged or, under the policy ``strict``, ends too early."""
    with opening(source.path, DataError):
        if make := _UNPACKERS.get(source.path.suffix):
            return _unpack(source.path, folder / f"{source.split or 'text'}.unpacked", make, faults)
        with source.path.open("rb") as file:
            digest, size = hashlib.file_digest(file, "sha256").hexdigest(), file.tell()
    if size == 0:
        raise DataError(f"{source.path}: the file is empty")
    return Unpacked(source.path, size, digest, size)


def _unpack(path: Path, target: Path, make: Callable[[], Any], faults: FaultCounter) -> Unpacked:
    digest = hashlib.sha256()
    size = text_size = 0
    decoder = make()
    with target.open("wb") as out, path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
            data = block
            while data:
                if decoder.eof:  # several archives one after the other make one text
                    decoder = make()
                try:
                    for plain in _plain_blocks(decoder, data):
                        out.write(plain)
                        text_size += len(plain)
                except (lzma.LZMAError, zlib.error, OSError, EOFError) as error:
                    raise DataError(f"{path}: damaged after {text_size} bytes of text: {error}") from None
                data = decoder.unused_data
    if size == 0 or text_size == 0:
        raise DataError(f"{path}: the file is empty")
    if not decoder.eof:
        if faults.policy == "strict":
            read_on = ", or pass --errors replace to read up to there" if faults.choices else ""
            raise DataError(f"{path}: ends before its end mark, after {text_size} bytes of text; fetch it again{read_on}")
        faults.add("truncated_archives")
    return Unpacked(target, size, digest.hexdigest(), text_size)


def _plain_blocks(decoder: Any, data: bytes) -> Iterator[bytes]:
    """The decompressed content of a stretch of a file, a block at a time: a small file may hold any amount of text."""
    while True:
        plain = decoder.decompress(data, _BLOCK)
        yield plain
        # lzma and bz2 keep what they have not used, zlib hands it back; each may hold text back when a block is full
        data = getattr(decoder, "unconsumed_tail", b"")
        more = bool(data) or len(plain) == _BLOCK or not getattr(decoder, "needs_input", True)
        if decoder.eof or not more:
            return
