"""Sources and shards of a corpus, on an engine: read text, write words as provisional ids, and mark what is finished.

A source that is unpacked into the work folder has a marker ``NUMBER.source``: name, size and time of the source (or the stamp
of its store), and the size and SHA-256 of the file. A later run reuses the file if both agree.

A shard writes four files into the work folder, named by the key of the shard:

    KEY.ids      uint32: words by provisional ids, 0.. in the order of their first occurrence in the shard
    KEY.units    (sentences, 3) uint32: words, characters and bytes of each sentence
    KEY.types    word TAB count TAB provisional id, sorted by word
    KEY.done     JSON: the counts, and size and SHA-256 of the other files; a shard with this file is complete, since a rename
                 puts it there last

The key is a hash over all that decides the result, so the marker of a killed run is valid if its key matches. The files are
compared with the marker before reuse."""

from __future__ import annotations

import hashlib
import json
import pickle
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import count
from operator import call
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sememekit.corpora.base import Corpus
from sememekit.corpora.sources import CorpusFile, Unpacked
from sememekit.corpora.units import ShardResult, line_sizes
from sememekit.engines.base import Engine
from sememekit.errors import DataError
from sememekit.files import read_sealed, replace_file, sealed, sync_to_disk
from sememekit.progress import Progress
from sememekit.text.form import CLOSING, OPENING, has_ends, without_ends
from sememekit.text.reading import LINE_CAP, FaultCounter, Piece, Span, clean_blocks, place, read_pieces
from sememekit.text.segmenters import Segmenter, numbering

_VERSION: Final = 4
MARKER: Final = ".source"

_Array = npt.NDArray[np.integer]


def _read_source(corpus: Corpus, source: CorpusFile, number: int, folder: Path, errors: str) -> tuple[Unpacked, dict[str, int]]:
    """Return one source, and the faults of its bytes, in a process of an engine."""
    source = CorpusFile(source.split, source.path.absolute())
    marker, stamp = folder / f"{number}{MARKER}", [_VERSION, str(source.path), _state(source.path), errors, corpus.column]
    if (kept := read_marker(marker)) is not None and kept["stamp"] == stamp:
        return Unpacked(**{**kept["found"], "path": folder / kept["found"]["path"]}), kept["faults"]
    faults = FaultCounter(errors)
    found = corpus.unpack(source, number, folder, faults)
    if found.path != source.path:
        table = {**found._asdict(), "path": found.path.name}
        write_marker(marker, {"stamp": stamp, "found": table, "faults": faults.counts}, [found.path])
    return found, faults.counts


def _state(path: Any) -> Any:
    """Return a value that changes when the file does; None for a folder."""
    if not isinstance(path, Path):
        return path.stamp()
    stat = path.stat() if path.is_file() else None
    return None if stat is None else [stat.st_size, stat.st_mtime_ns, stat.st_ino]


def write_marker(marker: Path, table: Mapping[str, Any], files: Sequence[Path]) -> None:
    """Write a marker beside finished files, with size and SHA-256 of each, after they are on disk."""
    for file in files:
        sync_to_disk(file)
    listed = {file.relative_to(marker.parent).as_posix(): _digest(file) for file in files}
    replace_file(marker, sealed({**table, "files": listed}))


def read_marker(marker: Path) -> dict[str, Any] | None:
    """Read a marker of ``write_marker``; None unless it and all its files are unchanged."""
    try:
        table = read_sealed(marker, DataError)
        return table if table["files"] == {name: _digest(marker.parent / name) for name in table["files"]} else None
    except (OSError, KeyError, TypeError, DataError):
        return None


def _digest(path: Path) -> list[int | str]:
    with path.open("rb") as file:
        return [path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()]


def read_sources(
    engine: Engine, corpus: Corpus, sources: Sequence[CorpusFile], folder: Path, faults: FaultCounter, progress: Progress
) -> list[Unpacked]:
    """Every source, in order; their faults are added to ``faults``. Raises DataError as ``Corpus.unpack``."""
    progress("hash", 0, len(sources))
    found: list[Unpacked] = []
    if not corpus.unpacks_apart:
        for number, source in enumerate(sources):
            found.append(corpus.unpack(source, number, folder, faults))
            progress("hash", number + 1, len(sources))
        return found
    tasks = [partial(_read_source, corpus, source, number, folder, faults.policy) for number, source in enumerate(sources)]
    for unpacked, counts in engine.in_order(call, tasks, lambda done: progress("hash", done, len(sources))):
        found.append(unpacked)
        faults.counts.update(counts)
    return found


def _bare(line: str, faults: FaultCounter) -> str:
    """Return a line without end marks, which are counted: the line gets a new end mark."""
    if not has_ends(line):
        return line
    faults.add("end_marks")
    return without_ends(line)


def _taken(values: array[int]) -> _Array:
    return np.frombuffer(values, dtype=np.int64)


class ShardJob(NamedTuple):
    """The fields that all shards of a run share; ``end`` is the word that ends a sentence, None for none."""

    folder: Path
    corpus: Corpus
    segmenter: Segmenter
    end: str | None
    errors: str

    def key(self, span: Span, source_sha256: str) -> str:
        """Return a hash over everything that decides the output of a shard."""
        reader, corpus = f"{type(self.corpus).__module__}:{type(self.corpus).__qualname__}", self.corpus.normalisation
        rules = [reader, corpus, self.segmenter.description, self.end, self.errors]
        parts = [_VERSION, LINE_CAP, source_sha256, *span[2:], *rules]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]

    def process(self, span: Span, key: str) -> ShardResult:
        """Read, segment and count one shard.

        Memory grows with the number of distinct words in the shard. Raises DataError as the readers do, with file and line."""
        stem = self.folder / key
        faults = FaultCounter(self.errors)
        ids = defaultdict[str, int](count().__next__)  # a new word gets the next number
        counts: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        words_written = sentences = 0
        with stem.with_suffix(".ids").open("wb") as id_file, stem.with_suffix(".units").open("wb") as unit_file:
            for words, units in self._blocks(span, ids, faults):
                id_file.write(words.astype("<u4").data)
                unit_file.write(units.astype("<u4").data)
                so_far, counts = counts, np.bincount(words, minlength=len(ids))
                counts[: len(so_far)] += so_far
                words_written += len(words)
                sentences += len(units)
        with stem.with_suffix(".types").open("w", encoding="utf-8", newline="\n") as type_file:
            type_file.writelines(f"{word}\t{counts[index]}\t{index}\n" for word, index in sorted(ids.items()))
        table = {"words": words_written, "sentences": sentences, "faults": faults.counts}
        write_marker(stem.with_suffix(".done"), table, [stem.with_suffix(ending) for ending in (".ids", ".units", ".types")])
        return ShardResult(stem, words_written, sentences, faults.counts)

    def _blocks(self, span: Span, ids: dict[str, int], faults: FaultCounter) -> Iterator[tuple[_Array, _Array]]:
        """Provisional ids (N,) and units (sentences, 3) of a span, a block of lines at a time; lines with faults one by one."""
        if not self.corpus.is_lines(self.segmenter):
            yield from self._one_by_one(span, ids, faults)
            return
        number = numbering(self.segmenter, ids)
        for block in clean_blocks(span):
            if isinstance(block, Span):
                yield from self._one_by_one(block, ids, faults)
                continue
            lines = block.removesuffix("\n").split("\n")
            if self.end is not None and any(mark in block for mark in (*OPENING, *CLOSING)):
                lines = [_bare(line, faults) for line in lines]
            words, counts = number(lines)
            sizes = line_sizes(lines)
            kept = slice(None) if self.corpus.keeps_blank_lines else sizes[:, 0] > 0
            counts, sizes = counts[kept], sizes[kept]
            if self.end is not None and len(counts):
                words = np.insert(words, np.cumsum(counts), ids[self.end])
                counts = counts + 1
            yield words, np.column_stack([counts, sizes])

    def _one_by_one(self, span: Span, ids: dict[str, int], faults: FaultCounter) -> Iterator[tuple[_Array, _Array]]:
        words: array[int] = array("q")
        units: array[int] = array("q")
        for piece in read_pieces(span, faults):
            for sentence, characters, size in self._units(piece, span, faults):
                words.extend(map(ids.__getitem__, sentence))
                units.extend((len(sentence), characters, size))
            if len(words) >= 1 << 20:
                yield _taken(words), _taken(units).reshape(-1, 3)
                words, units = array("q"), array("q")
        yield _taken(words), _taken(units).reshape(-1, 3)

    def _units(self, piece: Piece, span: Span, faults: FaultCounter) -> Iterator[tuple[list[str], int, int]]:
        """Sentences of a piece, with the word ``end`` after each, unless the piece ends inside a line."""
        try:
            text = piece.text if self.end is None else _bare(piece.text, faults)
            found = list(self.corpus.units(text, self.segmenter))
        except DataError as error:
            raise DataError(f"{place(span, piece.offset)}: {error}") from None
        for index, (words, characters, size, left_out) in enumerate(found):
            if left_out:
                faults.add("long_sentences")
                continue
            if not characters and not (self.corpus.keeps_blank_lines and piece.ends_line):
                continue  # a blank line
            closed = piece.ends_line or index + 1 < len(found)
            yield ([*words, self.end] if self.end is not None and closed else words), characters, size


def run_shards(
    engine: Engine, job: ShardJob, spans: Sequence[Span], keys: Sequence[str], progress: Progress
) -> list[ShardResult]:
    """Return results in the order of spans. Raises DataError: a shard is bad. Raises EngineError: a worker was killed."""
    tables = {key: read_marker(job.folder / f"{key}.done") for key in keys}
    results = {
        key: ShardResult(job.folder / key, table["words"], table["sentences"], table["faults"])
        for key, table in tables.items()
        if table is not None
    }
    todo = [(span, key) for span, key in zip(spans, keys, strict=True) if key not in results]
    progress("shards", finished := len(results), len(keys))
    pickled = pickle.dumps(job)
    tasks = [partial(_process, pickled, span, key) for span, key in todo]
    try:
        found = engine.in_order(call, tasks, lambda done: progress("shards", finished + done, len(keys)))
        results |= {key: result for (_, key), result in zip(todo, found, strict=True)}
    finally:
        _unpickled.cache_clear()
    return [results[key] for key in keys]


def _process(job: bytes, span: Span, key: str) -> ShardResult:
    """Process one shard of a pickled ``ShardJob``, in a process of an engine."""
    return _unpickled(job).process(span, key)


@lru_cache(maxsize=1)
def _unpickled(job: bytes) -> ShardJob:
    """Return the current job, unpickled once in a process, since opening a segmenter can take longer than a shard."""
    opened: ShardJob = pickle.loads(job)
    return opened
