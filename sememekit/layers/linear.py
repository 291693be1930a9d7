"""A linear map."""

from __future__ import annotations

from torch import Tensor, nn


def linear(x: Tensor, layer: nn.Linear) -> Tensor:
    """``layer(x)``. ``x``: (..., E). Returns (..., H)."""
    return layer(x)
