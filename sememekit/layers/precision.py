"""Precision of sums."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_single(values: Tensor) -> Tensor:
    """Half precision as single precision; single and double as they are."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
