"""Precision of sums and products."""

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional


def at_least_single(values: Tensor) -> Tensor:
    """Half precision as single precision; single and double as they are."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def product_dtype(parameter: Tensor) -> torch.dtype:
    """What matrix products of a parameter run in: the dtype of autocast where that is on, otherwise its own.

    Double precision stays as it is under autocast, as torch has it.
    """
    kind = parameter.device.type
    lowers = torch.is_autocast_enabled(kind) and parameter.dtype != torch.float64
    return torch.get_autocast_dtype(kind) if lowers else parameter.dtype


def product_and_bias(rows: Tensor, items: Tensor, bias: Tensor | None) -> Tensor:
    """rows items^T + bias, (..., E), (V, E), (V,) -> (..., V): the product in ``product_dtype``, the sum in that of the items.

    The bias of a word is near the logarithm of its frequency, and half precision would round the sum by up to 0.03.
    """
    if product_dtype(items) == items.dtype:
        return functional.linear(rows, items, bias)
    product = functional.linear(rows, items).to(items.dtype)
    return product if bias is None else product.add_(bias)


@final
class Linear(nn.Linear):
    """``nn.Linear`` by ``product_and_bias``: its bias is not rounded to half precision."""

    def forward(self, input: Tensor) -> Tensor:
        return product_and_bias(input, self.weight, self.bias)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """``total += left @ right``, summed in the dtype of ``total``."""
    return total.addmm_(left, right) if left.dtype == total.dtype else total.add_(left @ right)
