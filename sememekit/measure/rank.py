"""The rank of a matrix of log-probabilities (the dimension of predictions), and the divergence between contexts."""

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt
import torch

COPIES = 3
"""Memory of a singular value decomposition, in multiples of the matrix (itself included)."""
BLOCK_ROWS: Final = 2048
"""Rows of a block of ``TriangularFactor``."""
_PANEL: Final = 128  # columns whose reflections are applied together; LAPACK applies 64 or fewer one by one


@dataclass(frozen=True)
class Spectrum:
    """Falling singular values of a matrix of ``shape`` (N, V), min(N, V) of them."""

    values: npt.NDArray[np.float64]
    shape: tuple[int, int]

    @property
    def round_off(self) -> float:
        """Expected round-off of a singular value: 1/2 sqrt(N + V + 1) eps times the largest (Press et al. 2007)."""
        return float(0.5 * np.sqrt(sum(self.shape) + 1.0) * np.finfo(np.float64).eps * self.values[0])

    @property
    def rank(self) -> int:
        return int((self.values > self.round_off).sum())

    def cumulative(self, thresholds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Share of singular values that, divided by the largest, are at most each threshold (Figure 1, Yang et al. 2018)."""
        rising = self.values[::-1] / self.values[0]
        return np.searchsorted(rising, thresholds, side="right") / len(rising)


def spectrum_of(matrix: npt.NDArray[np.float64]) -> Spectrum:
    """Singular values of a matrix (N, V), N and V at least 1; needs ``COPIES`` times its memory."""
    values = np.linalg.svd(matrix, compute_uv=False).astype(np.float64)
    return Spectrum(values, (matrix.shape[0], matrix.shape[1]))


@final
class TriangularFactor:
    """R of A = Q R for a matrix with V columns whose rows come block by block; R and A have the same singular values.

    A block B is added by a QR decomposition of R stacked on B, panel by panel. The Householder reflections of a panel mix one
    row of R with the rows of B, and are applied to the columns on its right. So R stays triangular, the work is 2 N V^2 for any
    block size, and memory holds R and one block. Orthogonal transformations preserve the singular values up to round-off; the
    Gram matrix A'A would lose all below some 1e-8 of the largest."""

    def __init__(self, num_columns: int) -> None:
        self._factor = torch.zeros(num_columns, num_columns, dtype=torch.float64)
        self.num_rows = 0

    def add(self, rows: npt.NDArray[np.float64]) -> None:
        for begin in range(0, len(rows), BLOCK_ROWS):
            self._add(torch.from_numpy(rows[begin : begin + BLOCK_ROWS].copy()))

    def _add(self, block: torch.Tensor) -> None:
        size = len(self._factor)
        self.num_rows += len(block)
        for begin in range(0, size, _PANEL):
            end = min(size, begin + _PANEL)
            panel = torch.cat([self._factor[begin:end, begin:end], block[:, begin:end]])
            reflections, tau = torch.geqrf(panel)
            self._factor[begin:end, begin:end] = reflections[: end - begin].triu()
            if end < size:
                rest = torch.cat([self._factor[begin:end, end:], block[:, end:]])
                rest = torch.ormqr(reflections, tau, rest, left=True, transpose=True)
                self._factor[begin:end, end:] = rest[: end - begin]
                block[:, end:] = rest[end - begin :]

    def spectrum(self) -> Spectrum:
        """Singular values of all rows so far, one at least."""
        size = len(self._factor)
        values = np.linalg.svd(self._factor.numpy(), compute_uv=False)
        return Spectrum(values[: min(self.num_rows, size)], (self.num_rows, size))


def rows_that_fit(num_words: int, num_bytes: float) -> int:
    """Return the number of rows of V float64 numbers that can be decomposed in so much memory."""
    return int(num_bytes // (COPIES * 8 * num_words))


def bytes_by_blocks(num_words: int) -> int:
    """Memory of ``TriangularFactor``: R, a copy of R for computing its singular values, and three blocks."""
    return 8 * num_words * (2 * num_words + 3 * BLOCK_ROWS)


@final
class PairwiseDivergence:
    """Mean of KL(p_c || p_d) in nats over all ordered pairs of different contexts c, d (Table 5, Yang et al. 2018).

    Rows of V log-probabilities, none of them -inf, come block by block. All pairs count: the sum over pairs of sum_x p_c(x)
    (log p_c(x) - log p_d(x)) is N sum_c sum_x p_c log p_c - sum_x (sum_c p_c(x)) (sum_d log p_d(x)), one pass over the rows."""

    def __init__(self, num_words: int) -> None:
        self._count, self._negative_entropy = 0, 0.0
        self._total, self._total_log = np.zeros(num_words), np.zeros(num_words)

    def add(self, log_probs: npt.NDArray[np.float64]) -> None:
        for row in log_probs:
            probability = np.exp(row)
            self._negative_entropy += float(probability @ row)
            self._total += probability
            self._total_log += row
        self._count += len(log_probs)

    def mean(self) -> float:
        """Nats; NaN for fewer than two contexts."""
        count = self._count
        if count < 2:
            return math.nan
        return (count * self._negative_entropy - float(self._total @ self._total_log)) / (count * (count - 1))
