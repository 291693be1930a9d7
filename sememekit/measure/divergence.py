"""How different the predictions of a model are from context to context."""

from __future__ import annotations

import math
from typing import final

import numpy as np
import numpy.typing as npt


@final
class PairwiseDivergence:
    """Mean of KL(p_c || p_d) in nats over all ordered pairs of different contexts c, d (Table 5, Yang et al. 2018).

    Rows of V log-probabilities, none of them -inf, come block by block. All pairs are taken, not a sample of them: the sum over
    pairs of sum_x p_c(x) (log p_c(x) - log p_d(x)) is N sum_c sum_x p_c log p_c - sum_x (sum_c p_c(x)) (sum_d log p_d(x)), one
    pass over the rows.
    """

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
