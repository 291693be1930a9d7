"""One step of an LSTM whose gates are summed already, for recurrences that are no chain."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def lstm_cell(ready: Tensor, recurrent: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """c' = f c + i u, h = o tanh(c'), with [u, f, i, o] = [tanh, then sigmoid] of ``ready`` + ``recurrent``.

    Args:
        ready: (..., 4 H) what the input adds.
        recurrent: what the state adds; may have axes of size 1 where ``ready`` has more (many edges leave one node).
        cell: (..., H) c, of the axes of ``recurrent``.

    Returns:
        h and c', (..., H) each, of the axes of ``ready``.
    """
    return _Cell.apply(ready, recurrent, cell)


class _Cell(torch.autograd.Function):
    """Four gates in one tensor, and a backward pass that needs no more than they and tanh(c')."""

    @staticmethod
    def forward(ctx: Any, ready: Tensor, recurrent: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        size = cell.shape[-1]
        gates = ready + recurrent
        gates[..., :size].tanh_()
        gates[..., size:].sigmoid_()
        u, f, i, o = gates.split(size, dim=-1)
        new_cell = (f * cell).addcmul_(i, u)
        squashed = new_cell.tanh()
        ctx.save_for_backward(gates, cell, squashed)
        ctx.shape = recurrent.shape
        return o * squashed, new_cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hidden: Tensor, grad_cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gates, cell, squashed = ctx.saved_tensors
        size = cell.shape[-1]
        u, f, i, o = gates.split(size, dim=-1)
        grad = torch.empty_like(gates)
        # 1 - s^2 for tanh, s (1 - s) for sigmoids, of all gates at once.
        torch.mul(gates, gates, out=grad)
        grad[..., :size].neg_().add_(1.0)
        grad[..., size:].neg_().add_(gates[..., size:])
        down = torch.mul(squashed, squashed).neg_().add_(1.0).mul_(o).mul_(grad_hidden).add_(grad_cell)
        grad[..., :size].mul_(i).mul_(down)
        grad[..., size : 2 * size].mul_(cell).mul_(down)
        grad[..., 2 * size : 3 * size].mul_(u).mul_(down)
        grad[..., 3 * size :].mul_(squashed).mul_(grad_hidden)
        return grad, grad.sum_to_size(ctx.shape), down.mul_(f).sum_to_size(cell.shape)
