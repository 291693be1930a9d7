"""Sentences and their sizes, and the counted words of a shard of a corpus."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sememekit.data.examples import mapped
from sememekit.text.maximum_matching import line_sums


class Unit(NamedTuple):
    """A sentence: its words, and the characters and UTF-8 bytes of its text without white space; or a skipped sentence."""

    words: list[str]
    characters: int
    bytes: int
    left_out: bool = False


class ShardResult(NamedTuple):
    """The files of a finished shard, and its counts."""

    stem: Path
    words: int
    sentences: int
    faults: dict[str, int]

    def ids(self) -> npt.NDArray[np.uint32]:
        """(words,) provisional ids, memory-mapped."""
        return mapped(self.stem.with_suffix(".ids"), "<u4")

    def units(self) -> npt.NDArray[np.uint32]:
        """(sentences, 3) words, characters and bytes, memory-mapped."""
        return mapped(self.stem.with_suffix(".units"), "<u4").reshape(-1, 3)

    def num_types(self) -> int:
        """The number of distinct words, which is the number of lines of the file."""
        with self.stem.with_suffix(".types").open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))

    def types(self) -> Iterator[tuple[str, int, int]]:
        """Words with their counts and provisional ids, by word (code points)."""
        with self.stem.with_suffix(".types").open(encoding="utf-8", newline="\n") as file:
            for line in file:
                word, count, index = line[:-1].split("\t")
                yield word, int(count), int(index)


def line_sizes(lines: Sequence[str]) -> npt.NDArray[np.int64]:
    """(lines, 2) characters and UTF-8 bytes without white space, of lines without a line end in them."""
    return line_sums(lines, _SIZES)


def _utf8_sizes() -> npt.NDArray[np.uint8]:
    """(2, 65537) for ``line_sums``: 1 and the bytes of each character, 0 for white space."""
    codes = np.arange((1 << 16) + 1)
    sizes = 1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000)
    sizes[[code for code in range(1 << 16) if chr(code).isspace()]] = 0
    return np.stack([sizes > 0, sizes]).astype(np.uint8)


_SIZES: Final = _utf8_sizes()
