"""The examples of a prepared split: their texts, their labels, and the original text of pairs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from sememekit.data.signature import Signature, remedy
from sememekit.errors import DataError


def mapped(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the numbers of a file, memory-mapped and read-only (empty files cannot be mapped)."""
    return np.memmap(path, dtype=dtype, mode="r") if path.stat().st_size else np.zeros(0, dtype=dtype)


class Original(NamedTuple):
    """The text of a pair before its words became ids."""

    source: tuple[str, ...]  # the words of the first text, one for each id, including words outside the vocabulary
    references: tuple[str, ...]  # the original targets, with white space normalised


@final
class Originals:
    """The original texts of a split, read a line at a time: the bytes of the file at ``path``, and the start of each line."""

    def __init__(self, path: Path, texts: npt.NDArray[np.uint8], lines: npt.NDArray[np.int64]) -> None:
        self._path, self._texts, self._lines = path, texts, lines

    def __len__(self) -> int:
        return len(self._lines) - 1

    def __getitem__(self, example: int) -> Original:
        if not 0 <= example < len(self):
            raise IndexError(example)
        start, end = self._lines[example : example + 2].tolist()
        if not 0 <= start <= end <= len(self._texts):
            raise DataError(
                f"{self._path}: the file of line ends beside it is damaged: line {example + 1} should lie at bytes {start} "
                f"to {end}; {remedy(self._path.parent)}"
            )
        try:
            record = json.loads(self._texts[start:end].tobytes())
            return Original(tuple(record["source"].split(" ")), tuple(record["references"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"{self._path}:{example + 1}: torn ({error}); {remedy(self._path.parent)}") from None

    def __iter__(self) -> Iterator[Original]:
        return map(self.__getitem__, range(len(self)))


@dataclass(frozen=True)
class Examples:
    """The examples of a split, memory-mapped: n examples of N texts each."""

    tokens: npt.NDArray[np.unsignedinteger]  # (tokens,) ids of all texts, one after the other
    offsets: npt.NDArray[np.int64]  # (n * N + 1,) where each text begins, and where the last ends
    labels: npt.NDArray[np.uint16]  # (n,) ids of labels; empty without labels
    num_texts: int  # N
    originals: Originals | None = None  # for pairs, the source and the references as text

    def __len__(self) -> int:
        return (len(self.offsets) - 1) // self.num_texts

    def text(self, example: int, text: int) -> npt.NDArray[np.unsignedinteger]:
        place = example * self.num_texts + text
        return self.tokens[self.offsets[place] : self.offsets[place + 1]]

    def texts(self, example: int) -> list[npt.NDArray[np.unsignedinteger]]:
        """The N texts of an example."""
        return [self.text(example, text) for text in range(self.num_texts)]

    def lengths(self) -> npt.NDArray[np.int64]:
        """(n, N) words of each text."""
        return np.diff(self.offsets).reshape(-1, self.num_texts)

    def followed_by(self, other: "Examples") -> "Examples":
        return Examples(
            np.concatenate([self.tokens, other.tokens.astype(self.tokens.dtype)]),
            np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
            np.concatenate([self.labels, other.labels]),
            self.num_texts,
        )


def example_files(folder: Path, signature: Signature) -> Iterator[tuple[Path, int]]:
    """The files that a folder of examples has in addition, and the size of each."""
    if signature.examples is None:
        return
    for split, summary in signature.examples.splits.items():
        yield folder / f"{split}.offsets.bin", 8 * (summary.examples * len(signature.examples.texts) + 1)
        if signature.examples.labels is not None:
            yield folder / f"{split}.labels.bin", 2 * summary.examples
        if signature.examples.keeps_text:
            lines, size = folder / f"{split}.lines.bin", 8 * (summary.examples + 1)
            yield lines, size
            if lines.is_file() and lines.stat().st_size == size:  # otherwise the line before was refused
                yield folder / f"{split}.texts.jsonl", int(np.fromfile(lines, dtype="<i8")[-1])


def check_lines(folder: Path, split: str) -> None:
    """Check ``SPLIT.lines.bin`` against the line ends of the text."""
    ends, position = [np.zeros(1, dtype=np.int64)], 0
    with (folder / f"{split}.texts.jsonl").open("rb") as stream:
        while block := stream.read(1 << 24):
            ends.append(np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")) + position + 1)
            position += len(block)
    path = folder / f"{split}.lines.bin"
    if not np.array_equal(np.concatenate(ends), np.fromfile(path, dtype="<i8")):
        raise DataError(f"{path}: does not say where the lines of {split}.texts.jsonl begin; {remedy(folder)}")
