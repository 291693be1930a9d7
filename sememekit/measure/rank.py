"""The rank of a matrix of log-probabilities: how many directions a model's predictions vary in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

COPIES = 3
"""Times the matrix that its decomposition needs in memory, the matrix itself included."""


@dataclass(frozen=True)
class Spectrum:
    """Singular values of an N x V matrix.

    Attributes:
        values: falling, min(N, V) of them.
        shape: (N, V).
    """

    values: npt.NDArray[np.float64]
    shape: tuple[int, int]

    @property
    def round_off(self) -> float:
        """The expected round-off of a singular value: 1/2 sqrt(N + V + 1) eps times the largest (Press et al. 2007, Sec. 2.6).

        eps is that of float64, 2.2e-16.
        """
        return float(0.5 * np.sqrt(sum(self.shape) + 1.0) * np.finfo(np.float64).eps * self.values[0])

    @property
    def rank(self) -> int:
        """Singular values above the round-off."""
        return int((self.values > self.round_off).sum())

    def cumulative(self, thresholds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Share of singular values that, divided by the largest, are at most each threshold (Figure 1, Yang et al. 2018)."""
        rising = self.values[::-1] / self.values[0]
        return np.searchsorted(rising, thresholds, side="right") / len(rising)


def spectrum_of(matrix: npt.NDArray[np.float64]) -> Spectrum:
    """Singular values of a matrix (N, V), N and V at least 1. It needs ``COPIES`` times its memory."""
    values = np.linalg.svd(matrix, compute_uv=False).astype(np.float64)
    return Spectrum(values, (matrix.shape[0], matrix.shape[1]))


def rows_that_fit(num_words: int, num_bytes: float) -> int:
    """How many rows of V float64 numbers can be decomposed in so much memory."""
    return int(num_bytes // (COPIES * 8 * num_words))
