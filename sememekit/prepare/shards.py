"""One shard of a corpus: text in, words as provisional ids out, with a marker when it is finished.

A shard writes four files into the work folder, each under a name that holds the key of the shard:

    KEY.ids      uint32: words by provisional ids, 0.. in the order in which the shard meets them
    KEY.units    (sentences, 3) uint32: words, characters and bytes of each sentence
    KEY.types    word TAB count TAB provisional id, sorted by word
    KEY.done     JSON: what was counted, and size and SHA-256 of the other files; written last, by a rename, when those are on
                 the disk, so that its presence means that the shard is whole

The key is a hash over all that decides the result, so a marker of an earlier, killed run is good exactly when it fits. The
files are compared with it before they are taken over: a disk that lost a part of them gives no other data.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol, final

import numpy as np
import numpy.typing as npt

from sememekit.corpora.units import ShardResult, Unit
from sememekit.errors import DataError
from sememekit.text.reading import LINE_CAP, FaultCounter, Piece, Span, place, read_pieces
from sememekit.text.segmenters import Segmenter

_VERSION: Final = 2
_FILES: Final = (".ids", ".units", ".types")
_FLUSH: Final = 1 << 20


class Sentences(Protocol):
    """What a shard needs of a reader of corpora; see ``Corpus``."""

    @property
    def normalisation(self) -> str:
        """The rule applied to the text, in words."""

    @property
    def keeps_blank_lines(self) -> bool:
        """Whether a blank line is a sentence without words."""

    def units(self, text: str, segmenter: Segmenter) -> Iterable[Unit]:
        """The sentences of a line: words, characters and bytes."""


def shard_key(span: Span, source_sha256: str, corpus: Sentences, segmenter: str, end: str | None, errors: str) -> str:
    """Hash over everything that decides what a shard writes."""
    parts = [
        _VERSION,
        LINE_CAP,
        source_sha256,
        *span[2:],
        f"{type(corpus).__module__}:{type(corpus).__qualname__}",
        corpus.normalisation,
        segmenter,
        end,
        errors,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def finished_shard(folder: Path, key: str) -> ShardResult | None:
    """The shard of that key when its marker is there and its files are as the marker says, otherwise None."""
    stem = folder / key
    try:
        report: dict[str, Any] = json.loads(stem.with_suffix(".done").read_bytes())
        if report["files"] != {ending: _digest(stem.with_suffix(ending)) for ending in _FILES}:
            return None
        return ShardResult(stem, report["words"], report["sentences"], report["faults"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _digest(path: Path) -> list[int | str]:
    """Size and SHA-256 of a file."""
    with path.open("rb") as file:
        return [path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()]


def sync(path: Path) -> None:
    """Wait until a file or a folder is on the disk. Windows cannot do that for a folder."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def process_shard(
    span: Span, key: str, folder: Path, corpus: Sentences, segmenter: Segmenter, end: str | None, errors: str
) -> ShardResult:
    """Read, segment and count one shard; ``end`` is the word that ends a sentence, None for none.

    Memory grows with the number of distinct words in the shard, not with its length. Raises DataError as the readers do, with
    file and line.
    """
    stem = folder / key
    faults = FaultCounter(errors)
    ids = _ProvisionalIds()
    words_written = sentences = 0
    words: array[int] = array("I")
    units: array[int] = array("I")
    with stem.with_suffix(".ids").open("wb") as id_file, stem.with_suffix(".units").open("wb") as unit_file:
        for piece in read_pieces(span, faults):
            for sentence, characters, size in _units(piece, span, corpus, segmenter, end, faults):
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
    for ending in _FILES:
        sync(stem.with_suffix(ending))
    marker = {
        "words": words_written,
        "sentences": sentences,
        "faults": faults.counts,
        "files": {ending: _digest(stem.with_suffix(ending)) for ending in _FILES},
    }
    partial = stem.with_suffix(".partial")
    partial.write_text(json.dumps(marker))
    sync(partial)
    os.replace(partial, stem.with_suffix(".done"))
    sync(folder)
    return result


def _units(
    piece: Piece, span: Span, corpus: Sentences, segmenter: Segmenter, end: str | None, faults: FaultCounter
) -> Iterator[tuple[list[str], int, int]]:
    """Sentences of a piece, with the word ``end`` where it belongs: not after a piece that its line goes on behind."""
    try:
        found = list(corpus.units(piece.text, segmenter))
    except DataError as error:
        raise DataError(f"{place(span, piece.offset)}: {error}") from None
    for index, (words, characters, size, left_out) in enumerate(found):
        if left_out:
            faults.add("long_sentences")
            continue
        if not characters and not (corpus.keeps_blank_lines and piece.ends_line):
            continue  # a blank line
        closed = piece.ends_line or index + 1 < len(found)
        yield ([*words, end] if end is not None and closed else words), characters, size


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
