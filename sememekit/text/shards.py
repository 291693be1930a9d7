"""One shard of a corpus: text in, words as provisional ids out, with a marker when it is finished.

A shard writes four files into the work folder, each under a name that holds the key of the shard:

    KEY.ids      uint32: words by provisional ids, 0.. in the order in which the shard meets them
    KEY.units    (sentences, 3) uint32: words, characters and bytes of each sentence
    KEY.types    word TAB count TAB provisional id, sorted by word
    KEY.done     JSON: what was counted; written last, by a rename, so that its presence means that the shard is whole

The key is a hash over all that decides the result, so a marker of an earlier, killed run is good exactly when it fits.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, final

import numpy as np
import numpy.typing as npt

from sememekit.errors import DataError
from sememekit.text.reading import LINE_CAP, FaultCounter, Piece, Span, place, read_pieces
from sememekit.text.segment import Segmenter
from sememekit.text.vocabulary import END

SHARD_BYTES: Final = 64 << 20
_VERSION: Final = 1
_FLUSH: Final = 1 << 20


class Sentences(Protocol):
    """What a shard needs of a reader of corpora; see ``Corpus``."""

    @property
    def normalisation(self) -> str:
        """The rule applied to the text, in words."""

    @property
    def keeps_blank_lines(self) -> bool:
        """Whether a blank line is a sentence without words."""

    def units(self, text: str, segmenter: Segmenter) -> Iterable[tuple[list[str], int, int]]:
        """The sentences of a line: words, characters and bytes."""


class ShardResult(NamedTuple):
    """Where a finished shard lies and what was counted in it."""

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

    def types(self) -> Iterator[tuple[str, int, int]]:
        """Words with their counts and provisional ids, by word (code points)."""
        with self.stem.with_suffix(".types").open(encoding="utf-8", newline="\n") as file:
            for line in file:
                word, count, index = line[:-1].split("\t")
                yield word, int(count), int(index)


def shard_key(span: Span, source_sha256: str, corpus: Sentences, segmenter: str, end_of_sentence: bool, errors: str) -> str:
    """Hash over everything that decides what a shard writes."""
    parts = [
        _VERSION,
        LINE_CAP,
        source_sha256,
        *span[2:],
        f"{type(corpus).__module__}:{type(corpus).__qualname__}",
        corpus.normalisation,
        segmenter,
        end_of_sentence,
        errors,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def finished_shard(folder: Path, key: str) -> ShardResult | None:
    """The shard of that key when its marker is there, otherwise None."""
    try:
        report: dict[str, Any] = json.loads((folder / f"{key}.done").read_bytes())
        return ShardResult(folder / key, report["words"], report["sentences"], report["faults"])
    except (OSError, ValueError, KeyError):
        return None


def process_shard(
    span: Span, key: str, folder: Path, corpus: Sentences, segmenter: Segmenter, end_of_sentence: bool, errors: str
) -> ShardResult:
    """Read, segment and count one shard.

    Memory grows with the number of distinct words in the shard, not with its length.

    Raises:
        DataError: as the readers do, with file and line.
    """
    stem = folder / key
    faults = FaultCounter(errors)
    ids = _ProvisionalIds()
    words_written = sentences = 0
    words: array[int] = array("I")
    units: array[int] = array("I")
    with stem.with_suffix(".ids").open("wb") as id_file, stem.with_suffix(".units").open("wb") as unit_file:
        for piece in read_pieces(span, faults):
            for sentence, characters, size in _units(piece, span, corpus, segmenter, end_of_sentence):
                words.extend(map(ids.__getitem__, sentence))
                units.extend((len(sentence), characters, size))
                sentences += 1
            if len(words) >= _FLUSH:
                words_written += len(words)
                ids.count(words)
                words, units = _flush(words, id_file), _flush(units, unit_file)
        words_written += len(words)
        ids.count(words)
        _flush(words, id_file)
        _flush(units, unit_file)
    with stem.with_suffix(".types").open("w", encoding="utf-8", newline="\n") as type_file:
        type_file.writelines(f"{word}\t{ids.counts[index]}\t{index}\n" for word, index in sorted(ids.items()))
    result = ShardResult(stem, words_written, sentences, faults.counts)
    partial = stem.with_suffix(".partial")
    partial.write_text(json.dumps({"words": words_written, "sentences": sentences, "faults": faults.counts}))
    os.replace(partial, stem.with_suffix(".done"))
    return result


def _units(
    piece: Piece, span: Span, corpus: Sentences, segmenter: Segmenter, end_of_sentence: bool
) -> Iterator[tuple[list[str], int, int]]:
    """Sentences of a piece, with ``<eos>`` where it belongs: not after a piece that its line goes on behind."""
    try:
        found = list(corpus.units(piece.text, segmenter))
    except DataError as error:
        raise DataError(f"{place(span, piece.offset)}: {error}") from None
    for index, (words, characters, size) in enumerate(found):
        if not characters and not (corpus.keeps_blank_lines and piece.ends_line):
            continue  # a blank line
        closed = piece.ends_line or index + 1 < len(found)
        yield ([*words, END] if end_of_sentence and closed else words), characters, size


@final
class _ProvisionalIds(dict[str, int]):
    """word -> id, where a word that was never asked for gets the next id; and how often each was met."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def __missing__(self, word: str) -> int:
        index = self[word] = len(self)
        return index

    def count(self, words: array[int]) -> None:
        """Add the ids of a stretch of text to the counts."""
        counts = np.bincount(np.frombuffer(words, dtype=np.uint32), minlength=len(self))
        counts[: len(self.counts)] += self.counts
        self.counts = counts


def _flush(values: array[int], file: Any) -> array[int]:
    np.frombuffer(values, dtype=np.uint32).astype("<u4").tofile(file)
    return array("I")


def _open_array(path: Path, length: int) -> npt.NDArray[np.uint32]:
    if length == 0:
        return np.zeros(0, dtype="<u4")
    return np.memmap(path, dtype="<u4", mode="r", shape=(length,))
