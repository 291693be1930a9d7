"""Running shards: those with a marker are taken over, the others are done here or in a pool of processes."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple

from sememekit.corpora.base import Corpus
from sememekit.corpora.units import ShardResult
from sememekit.errors import DataError
from sememekit.prepare.shards import finished_shard, process_shard
from sememekit.text.reading import Span
from sememekit.text.segmenters import Segmenter


class ShardJob(NamedTuple):
    """What every shard of a run has in common; pickled once for each worker."""

    folder: Path
    corpus: Corpus
    segmenter: Segmenter
    end: str | None
    errors: str

    def run(self, span: Span, key: str) -> ShardResult:
        """Do one shard."""
        return process_shard(span, key, self.folder, self.corpus, self.segmenter, self.end, self.errors)


def run_shards(
    job: ShardJob, spans: Sequence[Span], keys: Sequence[str], workers: int, progress: Callable[[str, int, int], None]
) -> list[ShardResult]:
    """Results in the order of the spans, whatever the order in which they were finished. Raises DataError: of the first bad
    shard, or when a worker was killed."""
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
    """Leave at once when the process that wants the shards is gone: nobody reads them, and nobody holds the lock any more."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _run(span: Span, key: str) -> ShardResult:
    assert _job is not None
    return _job.run(span, key)
