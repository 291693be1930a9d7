"""How different the predictions of a model are from context to context."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def mean_pairwise_divergence(log_probs: npt.NDArray[np.float64]) -> float:
    """Mean of KL(p_c || p_d) in nats over all ordered pairs of different contexts c, d (Table 5, Yang et al. 2018).

    All pairs are taken, not a sample of them: the sum over pairs of sum_x p_c(x) (log p_c(x) - log p_d(x)) is
    N sum_c sum_x p_c log p_c - sum_x (sum_c p_c(x)) (sum_d log p_d(x)), which costs one pass over the rows.

    Args:
        log_probs: (N, V), natural logarithms of distributions, none of them -inf.

    Returns:
        nats; NaN for fewer than two contexts.
    """
    count = len(log_probs)
    if count < 2:
        return math.nan
    total, total_log, negative_entropy = np.zeros(log_probs.shape[1]), np.zeros(log_probs.shape[1]), 0.0
    for row in log_probs:
        probability = np.exp(row)
        negative_entropy += float(probability @ row)
        total += probability
        total_log += row
    return (count * negative_entropy - float(total @ total_log)) / (count * (count - 1))
