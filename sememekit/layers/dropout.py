"""Dropout whose mask is shared along the axes over which it must not vary."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional


def shared_dropout(x: Tensor, rate: float, training: bool, shared: Sequence[int]) -> Tensor:
    """Drop elements of ``x`` with one mask along the axes in ``shared`` (locked dropout, Gal and Ghahramani 2016).

    Args:
        x: any shape.
        rate: probability that an element of the mask is zero; kept elements are scaled by 1 / (1 - rate).
        training: no dropout when false.
        shared: axes along which the mask is the same, such as (0,) for time in a (T, B, H) tensor.
    """
    if not training or rate == 0.0:
        return x
    shape = [1 if axis in shared else size for axis, size in enumerate(x.shape)]
    return x * functional.dropout(x.new_ones(shape), rate, training=True)
