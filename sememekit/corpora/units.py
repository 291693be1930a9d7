"""Sentences, and the counted words of a shard of a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Unit(NamedTuple):
    """A sentence: its words, and the characters and UTF-8 bytes of its text without white space; or one that is left out."""

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
        return _open_array(self.stem.with_suffix(".ids"), self.words)

    def units(self) -> npt.NDArray[np.uint32]:
        """(sentences, 3) words, characters and bytes, memory-mapped."""
        return _open_array(self.stem.with_suffix(".units"), self.sentences * 3).reshape(-1, 3)

    def num_types(self) -> int:
        """How many distinct words there are: one a line of the file."""
        with self.stem.with_suffix(".types").open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))

    def types(self) -> Iterator[tuple[str, int, int]]:
        """Words with their counts and provisional ids, by word (code points)."""
        with self.stem.with_suffix(".types").open(encoding="utf-8", newline="\n") as file:
            for line in file:
                word, count, index = line[:-1].split("\t")
                yield word, int(count), int(index)


def _open_array(path: Path, length: int) -> npt.NDArray[np.uint32]:
    if length == 0:
        return np.zeros(0, dtype="<u4")
    return np.memmap(path, dtype="<u4", mode="r", shape=(length,))
