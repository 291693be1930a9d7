"""Refuse texts in other encodings than UTF-8, which ``--errors replace`` would turn into signs for bad bytes."""

from typing import BinaryIO, Final

from sememekit.errors import DataError
from sememekit.files import by_its_beginning, how_to_convert
from sememekit.files.reading import SAMPLE

FEWEST_LINES: Final = 20  # fewest lines for a remark on the whole file
_ONLY_BYTES: Final = "and --errors replace is for single bytes"


def refuse_mostly_invalid(name: str, invalid: int, lines: int) -> None:
    """Raise DataError if most of the first ``lines`` (20 or more) were not UTF-8, under ``replace``."""
    if lines >= FEWEST_LINES and 2 * invalid > lines:
        remedy = "convert the text before, such as with: iconv -f GB18030 -t UTF-8"
        raise DataError(f"{name}: {invalid:,} of the first {lines:,} lines are not UTF-8, {_ONLY_BYTES}; {remedy}")


def refuse_encoding_of(file: BinaryIO, name: str) -> None:
    """Raise DataError for an open file of 20 lines or more that are mostly not UTF-8 or have NUL, or with the first bytes of
    compressed files or UTF-16."""
    lines = invalid = 0
    sample = b""
    while block := file.read(SAMPLE):
        if not lines and _is_invalid(block) and (remedy := by_its_beginning(block, name)):
            raise DataError(f"{name}: not UTF-8, {_ONLY_BYTES}; {remedy}")
        block += file.readline(1 << 20)
        lines += block.count(b"\n") + (not block.endswith(b"\n"))
        if _is_invalid(block):
            sample = sample or block[:SAMPLE]
            invalid += sum(map(_is_invalid, block.split(b"\n")))
    if lines < FEWEST_LINES or 2 * invalid <= lines:
        return
    remedy = how_to_convert(sample, name, begins=False)
    raise DataError(f"{name}: {invalid:,} of {lines:,} lines are not UTF-8, {_ONLY_BYTES}; {remedy}")


def _is_invalid(raw: bytes) -> bool:
    try:
        return "\0" in raw.decode()
    except UnicodeDecodeError:
        return True
