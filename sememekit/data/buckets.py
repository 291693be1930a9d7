"""Batches of examples of similar length, in a random order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_POOL = 50
"""Batches of a pool, which is sorted by length: a larger pool means less padding and less mixing."""


def bucketed_batches(lengths: npt.NDArray[np.int64], batch_size: int, order: int) -> list[npt.NDArray[np.int64]]:
    """Cut the examples of an epoch, with ``lengths`` (n,), into ceil(n / B) batches with little padding; ``order`` is the seed.

    Examples are shuffled, cut into pools of 50 batches, sorted by length inside each pool, cut into batches, and the batches
    are shuffled. All have B examples but the last of the last pool.
    """
    generator = np.random.default_rng(order)
    shuffled = generator.permutation(len(lengths))
    batches = []
    for first in range(0, len(shuffled), _POOL * batch_size):
        pool = shuffled[first : first + _POOL * batch_size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[begin : begin + batch_size] for begin in range(0, len(pool), batch_size)]
    return [batches[index] for index in generator.permutation(len(batches))]


def sorted_batches(lengths: npt.NDArray[np.int64], batch_size: int) -> list[npt.NDArray[np.int64]]:
    """All examples once, the longest first, so that one that does not fit into memory shows itself at once."""
    order = np.argsort(-lengths, kind="stable")
    return [order[begin : begin + batch_size] for begin in range(0, len(order), batch_size)]
