"""Log-space reductions over segments of rows."""

from __future__ import annotations

import torch
from torch import Tensor


def segment_logsumexp(x: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Log of the sum of exponentials of the rows of each segment, each segment shifted by its own maximum.

    Args:
        x: (S, ...) log-space values.
        segment: (S,) the segment of each row, 0 .. num_segments - 1; each segment has at least one row.

    Returns:
        (num_segments, ...): never -inf and never NaN for finite ``x``, since the largest term of a segment counts as exp(0).
    """
    shape = (num_segments, *x.shape[1:])
    with torch.no_grad():
        rows = segment.view(-1, *[1] * (x.ndim - 1)).expand_as(x)
        top = x.new_full(shape, -torch.inf).scatter_reduce_(0, rows, x, "amax")
    total = x.new_zeros(shape).index_add(0, segment, (x - top.index_select(0, segment)).exp())
    return total.log() + top
