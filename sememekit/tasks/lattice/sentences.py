"""Sentences of prepared data as a lattice model takes them: bounds, training batches, remarks on long ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from sememekit.data.batching import sentence_bounds
from sememekit.data.buckets import bucketed_batches
from sememekit.data.prepared import PreparedData
from sememekit.errors import DataError
from sememekit.figures import percent
from sememekit.tasks.lattice.settings import LONG, LatticeSettings

Numbers = npt.NDArray[np.int64]


def split_sentences(data: PreparedData, split: str, end: int) -> tuple[npt.NDArray[np.integer], Numbers]:
    """The stream of a split, and where each of its n sentences begins and the last one ends, (n + 1,); DataError for none."""
    tokens = data.tokens(split)
    bounds = sentence_bounds(tokens, end)
    if len(bounds) < 2 or bounds[-1] != len(tokens):
        raise DataError(
            f"{data.folder}: the split {split!r} has {len(bounds) - 1} sentences with an end mark and {len(tokens):,} "
            "tokens; every sentence has to end with <eos>: write the data with 'sememekit preprocess ... --end-of-sentence'"
        )
    return tokens, bounds


def training_batches(data: PreparedData, lengths: Numbers, settings: LatticeSettings, order: int) -> list[Numbers]:
    """The batches of an epoch as numbers of sentences, without those of more than ``max_length`` tokens."""
    limit = settings.max_length
    kept = np.flatnonzero(lengths <= limit + 1) if limit else np.arange(len(lengths))
    if not len(kept):
        raise DataError(
            f"{data.folder}: all {len(lengths):,} training sentences are longer than task.max_length={limit}; the shortest "
            f"has {int(lengths.min()) - 1} tokens: raise it, or set 0 to take all"
        )
    return [kept[chosen] for chosen in bucketed_batches(lengths[kept], settings.batch_size, order)]


def length_remarks(lengths: Numbers, limit: int) -> list[str]:
    """Which training sentences ``max_length`` leaves out, or which take much memory without it."""
    long = lengths[lengths > (limit or LONG) + 1]
    if not len(long):
        return []
    if limit:
        return [
            f"{len(long):,} of {len(lengths):,} training sentences have more than task.max_length={limit} tokens and are "
            f"left out, {percent(long.sum() / lengths.sum())} of the training text; break its lines at the ends of sentences, "
            "or set task.max_length=0 to train on all of them"
        ]
    return [
        f"{len(long):,} of {len(lengths):,} training sentences have more than {LONG} tokens, the longest "
        f"{int(long.max()) - 1:,}, and memory grows with the longest of a batch; task.max_length={LONG} leaves them out"
    ]


def limit_places(batches: Iterable[Numbers], lengths: Numbers, most: int) -> Iterator[Numbers]:
    """Cut batches further, so that none of several sentences has more than ``most`` places, padding included."""
    for chosen in batches:
        while len(chosen):
            size = max(1, most // max(1, int(lengths[chosen[0]])))
            yield chosen[:size]
            chosen = chosen[size:]
