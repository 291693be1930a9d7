"""Rows of word ids as one padded table."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.integer]


def padded(
    rows: Sequence[Ids], begin: Sequence[int] = (), end: Sequence[int] = ()
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids (T, B), each row between ``begin`` and ``end`` and then padded with 0, and the lengths (B,)."""
    before, around = len(begin), len(begin) + len(end)
    lengths = np.array([len(row) + around for row in rows], dtype=np.int64)
    ids = np.zeros((int(lengths.max()), len(rows)), dtype=np.int64)
    ids[:before] = np.array(begin, dtype=np.int64)[:, None]
    for column, row in enumerate(rows):
        ids[before : before + len(row), column] = row
        ids[before + len(row) : len(row) + around, column] = end
    return ids, lengths
