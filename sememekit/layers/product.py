"""One matrix product, by the faster of the two kernels that torch ships for the CPU."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

TORCH_VERSIONS: Final = frozenset({"2.13"})
"""Releases of torch on which the private operator below was seen to give what ``@`` gives and to be faster. Add one after
``pytest tests/layers/test_product.py`` and ``python benchmarks/sdlm.py`` on it; every other release takes ``@``."""


def has_quick_product(version: str) -> bool:
    """Whether the operator is there and ``version`` of torch is one on which it was tried, pre-releases excluded."""
    release, _, _ = version.partition("+")
    tried = release.rpartition(".")[0] in TORCH_VERSIONS and release.replace(".", "").isdigit()
    return tried and torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


_QUICK = has_quick_product(str(torch.__version__))


def product(left: Tensor, right: Tensor) -> Tensor:
    """``left @ right.T``, without a gradient of its own: for use inside hand-written backward passes.

    In float32 on a CPU the product goes to oneDNN, whose kernels are made for the shape and the processor at run time, in place
    of the general one behind ``@``: at (13,477 x 650) and 320 rows it is 1.2 to 1.8 times as fast (docs/results/sdlm.md). Other
    types and devices, builds of torch without oneDNN, and releases of torch on which nobody tried it (``TORCH_VERSIONS``: the
    operator is private) take ``@``. The two differ in rounding alone.

    Args:
        left: (M, E), any strides.
        right: (N, E), any strides.

    Returns:
        (M, N), contiguous.
    """
    if _QUICK and left.device.type == "cpu" and left.dtype == right.dtype == torch.float32:
        result: Tensor = torch.ops.mkldnn._linear_pointwise(_dense(left), _dense(right), None, "none", [], "")
        return result
    return left @ right.T


def _dense(matrix: Tensor) -> Tensor:
    """``matrix`` in one of the two layouts that the kernels are quick with; with other strides they crawl."""
    return matrix if matrix.is_contiguous() or matrix.T.is_contiguous() else matrix.contiguous()
