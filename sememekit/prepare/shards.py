"""Shards of a corpus: text in, words as provisional ids out, and a marker when one is finished; here or in a pool of processes.

A shard writes four files into the work folder, each under a name that holds the key of the shard:

    KEY.ids      uint32: words by provisional ids, 0.. in the order of their first occurrence in the shard
    KEY.units    (sentences, 3) uint32: words, characters and bytes of each sentence
    KEY.types    word TAB count TAB provisional id, sorted by word
    KEY.done     JSON: the counts, and size and SHA-256 of the other files; written last, by a rename, when those are on the
                 disk, so that a shard with this file is whole

The key is a hash over all that decides the result, so a marker of an earlier, killed run is valid exactly when it fits. The
files are compared with it before they are used again.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from sememekit.corpora.base import Corpus
from sememekit.corpora.units import ShardResult
from sememekit.errors import DataError
from sememekit.files import sync_to_disk, write_bytes
from sememekit.text.reading import LINE_CAP, FaultCounter, Piece, Span, place, read_pieces
from sememekit.text.segmenters import Segmenter

_VERSION: Final = 2
_FILES: Final = (".ids", ".units", ".types")
_FLUSH: Final = 1 << 20


def shard_key(span: Span, source_sha256: str, corpus: Corpus, segmenter: str, end: str | None, errors: str) -> str:
    """Hash over everything that decides what a shard writes."""
    reader = f"{type(corpus).__module__}:{type(corpus).__qualname__}"
    parts = [_VERSION, LINE_CAP, source_sha256, *span[2:], reader, corpus.normalisation, segmenter, end, errors]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def finished_shard(folder: Path, key: str) -> ShardResult | None:
    """The shard of that key when its marker is there and its files fit the marker, otherwise None."""
    stem = folder / key
    try:
        report: dict[str, Any] = json.loads(stem.with_suffix(".done").read_bytes())
        if report["files"] != {ending: _digest(stem.with_suffix(ending)) for ending in _FILES}:
            return None
        return ShardResult(stem, report["words"], report["sentences"], report["faults"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _digest(path: Path) -> list[int | str]:
    with path.open("rb") as file:
        return [path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()]


def process_shard(
    span: Span, key: str, folder: Path, corpus: Corpus, segmenter: Segmenter, end: str | None, errors: str
) -> ShardResult:
    """Read, segment and count one shard; ``end`` is the word that ends a sentence, None for none.

    Memory grows with the number of distinct words in the shard. Raises DataError as the readers do, with file and line.
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
        sync_to_disk(stem.with_suffix(ending))
    marker = {
        "words": words_written,
        "sentences": sentences,
        "faults": faults.counts,
        "files": {ending: _digest(stem.with_suffix(ending)) for ending in _FILES},
    }
    partial = stem.with_suffix(".partial")
    write_bytes(partial, json.dumps(marker).encode())
    os.replace(partial, stem.with_suffix(".done"))
    sync_to_disk(folder)
    return result


def _units(
    piece: Piece, span: Span, corpus: Corpus, segmenter: Segmenter, end: str | None, faults: FaultCounter
) -> Iterator[tuple[list[str], int, int]]:
    """Sentences of a piece, with the word ``end`` after each, unless the piece ends inside a line."""
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
    """word -> id, where a new word gets the next id; and the count of each."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def __missing__(self, word: str) -> int:
        index = self[word] = len(self)
        return index

    def count(self, words: array[int]) -> None:
        counts = np.bincount(np.frombuffer(words, dtype=np.uint32), minlength=len(self))
        counts[: len(self.counts)] += self.counts
        self.counts = counts


def _flush(values: array[int], file: Any) -> array[int]:
    np.frombuffer(values, dtype=np.uint32).astype("<u4").tofile(file)
    return array("I")


class ShardJob(NamedTuple):
    """What all shards of a run share; pickled once for each worker."""

    folder: Path
    corpus: Corpus
    segmenter: Segmenter
    end: str | None
    errors: str

    def run(self, span: Span, key: str) -> ShardResult:
        return process_shard(span, key, self.folder, self.corpus, self.segmenter, self.end, self.errors)


def run_shards(
    job: ShardJob, spans: Sequence[Span], keys: Sequence[str], workers: int, progress: Callable[[str, int, int], None]
) -> list[ShardResult]:
    """Results in the order of the spans. Raises DataError: that of the first bad shard, or when a worker was killed."""
    results = {key: found for key in keys if (found := finished_shard(job.folder, key)) is not None}
    todo = [(span, key) for span, key in zip(spans, keys, strict=True) if key not in results]
    done = len(keys) - len(todo)
    progress("shards", done, len(keys))
    if workers == 1 or len(todo) <= 1:
        for span, key in todo:
            results[key] = job.run(span, key)
            done += 1
            progress("shards", done, len(keys))
        return [results[key] for key in keys]
    # "spawn", because a forked child of a process with threads (torch, BLAS) can hang
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(todo)), context, _begin, (job,)) as pool:
        futures = {pool.submit(_run, span, key): key for span, key in todo}
        try:
            for future in as_completed(futures):
                results[futures[future]] = future.result()
                done += 1
                progress("shards", done, len(keys))
        except BrokenProcessPool:
            raise DataError(
                "a worker was killed, perhaps for want of memory; run the same command again with fewer --workers: "
                "finished shards are kept"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)
    return [results[key] for key in keys]


_job: ShardJob | None = None


def _begin(job: ShardJob) -> None:
    global _job
    _job = job
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches all processes; the one that was called speaks of it
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Exit when the parent process is gone: it would hold the lock no longer."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _run(span: Span, key: str) -> ShardResult:
    assert _job is not None
    return _job.run(span, key)
