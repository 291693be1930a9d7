"""One matrix product, by the faster of the two kernels that torch ships for the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

_MEASURED_FASTER = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def product(left: Tensor, right: Tensor) -> Tensor:
    """``left @ right.T``, without a gradient of its own: for use inside hand-written backward passes.

    In float32 on a CPU the product goes to oneDNN, whose kernels are made for the shape and the processor at run time, in place
    of the general one behind ``@``: at (13,477 x 650) and 320 rows it is 1.2 to 1.8 times as fast (docs/results/sdlm.md). Other
    types and devices, and builds of torch without oneDNN, take ``@``. The two differ in rounding alone.

    Args:
        left: (M, E), any strides.
        right: (N, E), any strides.

    Returns:
        (M, N), contiguous.
    """
    if _MEASURED_FASTER and left.device.type == "cpu" and left.dtype == right.dtype == torch.float32:
        result: Tensor = torch.ops.mkldnn._linear_pointwise(_dense(left), _dense(right), None, "none", [], "")
        return result
    return left @ right.T


def _dense(matrix: Tensor) -> Tensor:
    """``matrix`` in one of the two layouts that the kernels are quick with; with other strides they crawl."""
    return matrix if matrix.is_contiguous() or matrix.T.is_contiguous() else matrix.contiguous()
