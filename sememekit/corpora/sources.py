"""Source files: finding the splits of a folder, hashing, decompression, texts out of columns."""

from __future__ import annotations

import bz2
import hashlib
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from sememekit.corpora.columns import texts_of_lines, texts_of_parquet
from sememekit.errors import ConfigError, DataError
from sememekit.files import opening
from sememekit.text.reading import FaultCounter

SPLITS: Final = ("train", "valid", "test")
_BLOCK: Final = 1 << 20

_UNPACKERS: Final[dict[str, Callable[[], Any]]] = {
    ".xz": lzma.LZMADecompressor,
    ".bz2": bz2.BZ2Decompressor,
    ".gz": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    ".zst": lambda: _zstd().ZstdDecompressor(),
}


PACKED: Final = tuple(_UNPACKERS)
"""Endings of compressed files that are read."""


class CorpusFile(NamedTuple):
    """A file to read, and its split; None for text that is to be divided into splits. A file of a store elsewhere is a
    ``corpora.places.RemoteFile``, which is opened and named alike."""

    split: str | None
    path: Any


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

    ``patterns`` are file names with ``{}`` for the split; a compressed file (.xz, .gz, .bz2, .zst) serves as well.
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
            raise DataError(f"{folder}: no file for the split {split!r}; looked for {names} (also as {', '.join(PACKED)})")
    return found


def require_file(path: Path) -> Path:
    """The path. Raises DataError when it is a folder or absent."""
    if path.is_dir():
        raise DataError(f"{path}: a folder, where a text file is needed")
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    return path


def unpack(
    source: CorpusFile, folder: Path, faults: FaultCounter, *, name: str | None = None, column: str | None = None
) -> Unpacked:
    """Hash a source and, unless it is a plain file of this machine, write its text into ``folder``, block by block.

    Args:
        source: what to read.
        folder: for the file ``NAME.unpacked``.
        faults: counts archives that end too early, and texts that are not UTF-8.
        name: of the file; that of the split unless given.
        column: of .jsonl and .parquet the text that is taken, where the corpus has texts in columns; None reads the lines.

    Raises DataError: a file that cannot be read, is empty, is damaged or, under the policy ``strict``, ends too early.
    """
    target = folder / f"{name or source.split or 'text'}.unpacked"
    packing, form = form_of(source.path.name)
    with opening(Path(str(source.path)), DataError):
        if isinstance(source.path, Path) and not packing and (column is None or not form):
            with source.path.open("rb") as file:
                digest, size = hashlib.file_digest(file, "sha256").hexdigest(), file.tell()
            if size == 0:
                raise DataError(f"{source.path}: the file is empty")
            return Unpacked(source.path, size, digest, size)
        return _unpack(source.path, target, faults, form if column is not None else "", column or "")


def form_of(name: str) -> tuple[str, str]:
    """The ending of a compressed file, and that of a file whose texts are in columns, each "" where it has none."""
    packing = next((ending for ending in PACKED if name.endswith(ending)), "")
    return packing, next((ending for ending in (".jsonl", ".parquet") if name.removesuffix(packing).endswith(ending)), "")


def _unpack(path: Any, target: Path, faults: FaultCounter, form: str, column: str) -> Unpacked:
    raw, text = _Counted(), _Counted()
    with target.open("wb") as out:
        for block in _texts(path, target, raw, faults, form, column):
            text.add(block)
            out.write(block)
    if raw.size == 0 or text.size == 0:
        raise DataError(f"{path}: the file is empty" if not form else f"{path}: no text in the column {column!r}")
    return Unpacked(target, raw.size, raw.hexdigest(), text.size, text.hexdigest())


class _Counted:
    """Size and SHA-256 of what went by."""

    def __init__(self) -> None:
        self.size, self._digest = 0, hashlib.sha256()
        self.hexdigest = self._digest.hexdigest

    def add(self, block: bytes) -> None:
        self.size += len(block)
        self._digest.update(block)


def _texts(path: Any, target: Path, raw: _Counted, faults: FaultCounter, form: str, column: str) -> Iterator[bytes]:
    """The text of a file in blocks; what was read of the file itself is told to ``raw``."""
    blocks = _unpacked_blocks(path, raw, faults)
    if form == ".jsonl":
        yield from texts_of_lines(blocks, str(path), column, faults)
    elif form == ".parquet":  # read from its end: a whole copy is needed
        copy = target.with_suffix(".parquet")
        with copy.open("wb") as out:
            for block in blocks:
                out.write(block)
        yield from texts_of_parquet(copy, str(path), column)
        copy.unlink()
    else:
        yield from blocks


def _unpacked_blocks(path: Any, raw: _Counted, faults: FaultCounter) -> Iterator[bytes]:
    """The bytes of a file in blocks, decompressed."""
    make = _UNPACKERS.get(form_of(path.name)[0])
    decoder: Any = make() if make is not None else None
    size = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            raw.add(block)
            if make is None:
                yield block
                continue
            data = block
            while data:
                if decoder.eof:  # several archives one after the other make one text
                    decoder = make()
                try:
                    for plain in _plain_blocks(decoder, data):
                        yield plain
                        size += len(plain)
                except (lzma.LZMAError, zlib.error, OSError, EOFError, _zstd_error()) as error:
                    raise DataError(f"{path}: damaged after {size} bytes of text: {error}") from None
                data = decoder.unused_data
    if decoder is not None and raw.size and size and not decoder.eof:
        if faults.policy == "strict":
            read_on = ", or pass --errors replace to read up to there" if faults.choices else ""
            raise DataError(f"{path}: ends before its end mark, after {size} bytes of text; fetch it again{read_on}")
        faults.add("truncated_archives")


def _zstd() -> Any:
    """The module of Python 3.14, or its backport. Raises ConfigError: it is not installed."""
    try:
        return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ModuleNotFoundError:
        raise ConfigError(".zst files need the package backports.zstd; run: pip install 'sememekit[remote]'") from None


def _zstd_error() -> type[Exception]:
    """The error of a damaged .zst file, where one is read; else one that is never raised."""
    module = sys.modules.get("compression.zstd") or sys.modules.get("backports.zstd")
    return module.ZstdError if module is not None else lzma.LZMAError


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
