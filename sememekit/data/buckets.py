"""Batches of examples of similar length, in an order that a number decides."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_POOL = 50
"""Batches of a pool: inside it examples are sorted by length, so a larger one pads less and mixes less."""


def bucketed_batches(lengths: npt.NDArray[np.int64], batch_size: int, order: int) -> list[npt.NDArray[np.int64]]:
    """Cut an epoch into batches that pad little.

    Examples are shuffled, cut into pools of 50 batches, sorted by length inside each pool, cut into batches, and the batches
    of the epoch are shuffled. The same ``order`` gives the same batches.

    Args:
        lengths: (n,) words of each example.
        batch_size: B.
        order: the seed.

    Returns:
        ceil(n / B) arrays of numbers of examples, each number once; all have B but the last of the last pool.
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
