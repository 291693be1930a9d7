"""Scores of rankings in which items have equal scores: expected values over all orders of these items, computed exactly."""

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike, NDArray

Reals = NDArray[np.float64]

ROUNDING = 1e-9
"""Scores that differ by no more are equal to ``share_of_best``: sums of parts differ by rounding alone."""


def share_of_best(scores: ArrayLike, right: Collection[int]) -> float:
    """Return the accuracy of the item with the best score: 1 / n for each right one of n items with equal best scores.

    >>> share_of_best([0.5, 0.5, 0.0], {1})
    0.5"""
    values = np.asarray(scores, dtype=np.float64)
    best = np.flatnonzero(values >= values.max() - ROUNDING)
    return float(np.isin(best, list(right)).mean())


def average_precision(scores: ArrayLike, gold: Collection[int]) -> float:
    """Return the mean of the precisions at the ranks of the ``gold`` items, best scores first (McSherry and Najork 2008).

    With t items above n equal ones, of which r and m are gold, place j of the n is gold with probability m / n, and then the
    gold items up to it are expected to be r + 1 + (j - 1)(m - 1) / (n - 1).

    >>> average_precision([1.0, 1.0], {1})
    0.75"""
    values = np.asarray(scores, dtype=np.float64)
    is_gold = np.isin(np.arange(len(values)), list(gold))
    _, group, sizes = np.unique(-values, return_inverse=True, return_counts=True)
    hits = np.bincount(group, is_gold)
    above, total = np.cumsum(sizes) - sizes, 0.0
    for number in np.flatnonzero(hits).tolist():
        n, m, before = int(sizes[number]), hits[number], hits[:number].sum()
        place = np.arange(1, n + 1)
        found = before + 1.0 + (place - 1) * (m - 1.0) / max(n - 1, 1)
        total += float((m / n * found / (above[number] + place)).sum())
    return total / len(gold)


def reciprocal_rank(above: NDArray[np.integer], equal: NDArray[np.integer]) -> Reals:
    """Return 1 / rank (N,) of items with ``above`` better ones (N,) and ``equal`` ones (N,), themselves counted.

    >>> reciprocal_rank(np.array([0]), np.array([2]))
    array([0.75])"""
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, int((above + equal).max(initial=0)) + 1))])
    return np.asarray((harmonic[above + equal] - harmonic[above]) / equal)
