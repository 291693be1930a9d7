"""A linear map whose three products go by ``product``, forward and backward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sememekit.layers.product import product


def linear(x: Tensor, layer: nn.Linear) -> Tensor:
    """``layer(x)``, faster on a CPU (see ``product``). ``x``: (..., E). Returns (..., H)."""
    return _Linear.apply(x, layer.weight, layer.bias)


class _Linear(torch.autograd.Function):
    """x W^T + b."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x.reshape(-1, x.shape[-1]), weight).add_(bias).view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        rows, grads = x.reshape(-1, x.shape[-1]), grad.reshape(-1, grad.shape[-1])
        grad_x = product(grads, weight.t()).view(x.shape) if ctx.needs_input_grad[0] else None
        return grad_x, product(grads.t(), rows.t()), grads.sum(dim=0)
