"""Compressed files, a block at a time; concatenated archives are one text."""

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from sememekit.files.packages import needed

BLOCK: Final = 1 << 20
_ZSTD: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"  # the module, or its backport

_UNPACKERS: Final[dict[str, Callable[[], Any]]] = {
    ".xz": lambda: lzma.LZMADecompressor(memlimit=1 << 30),
    ".bz2": bz2.BZ2Decompressor,
    ".gz": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    ".zst": lambda: needed(_ZSTD, "reading .zst", "sememekit[remote]").ZstdDecompressor(),
}

PACKED: Final = tuple(_UNPACKERS)  # suffixes of readable compressed files


class DamagedArchiveError(Exception):
    """The rest of a file cannot be decompressed; the message comes from the decompressor."""


class CutArchiveError(DamagedArchiveError):
    """A file ends before the end mark of its archive."""


def packing_of(name: str) -> str:
    """Return the suffix of ``PACKED`` of a name, in either case; "" if it has none."""
    return next((ending for ending in PACKED if name.lower().endswith(ending)), "")


def unpacked_name(name: str) -> str:
    """Return a name without the suffix of a compressed file."""
    return name[: len(name) - len(packing_of(name))]


def unpack_blocks(packing: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the decompressed content of a file in blocks of at most 1 MiB, as a small file can expand without limit.

    ``packing`` is one of ``PACKED``. Zero bytes between and after archives are padding. Raises DamagedArchiveError and
    CutArchiveError, and ConfigError where .zst needs a package that is absent."""
    make = _UNPACKERS[packing]
    decoder = make()
    damage = (lzma.LZMAError, zlib.error, OSError, EOFError, getattr(sys.modules.get(_ZSTD), "ZstdError", EOFError))
    for block in blocks:
        data = block
        while data:
            if decoder.eof:
                if not (data := data.lstrip(b"\0")):
                    break
                decoder = make()
            try:
                yield from _plain_blocks(decoder, data)
            except damage as error:
                raise DamagedArchiveError(str(error)) from None
            data = decoder.unused_data
    if not decoder.eof:
        raise CutArchiveError("its end mark is missing")


def _plain_blocks(decoder: Any, data: bytes) -> Iterator[bytes]:
    while True:
        plain = decoder.decompress(data, BLOCK)
        yield plain
        # lzma and bz2 keep what they have not used, zlib hands it back; each may hold text back when a block is full
        data = getattr(decoder, "unconsumed_tail", b"")
        more = bool(data) or len(plain) == BLOCK or not getattr(decoder, "needs_input", True)
        if decoder.eof or not more:
            return
