"""One step of an LSTM whose gates are summed already, for recurrences that are no chain."""

from typing import Any

import torch
from torch import Tensor

from sememekit.layers.differentiable_once import differentiable_once


def lstm_cell(ready_G: Tensor, recurrent_G: Tensor, cell_H: Tensor) -> tuple[Tensor, Tensor]:
    """c' = f c + i u, h = o tanh(c'), with [u, f, i, o] = [tanh, then sigmoid] of ``ready_G`` + ``recurrent_G``; G is 4 H.

    Args:
        ready_G: (..., G) what the input adds.
        recurrent_G: (..., G) what the state adds; may have axes of size 1 where ``ready_G`` has more (many edges leave a node).
        cell_H: (..., H) c, of the axes of ``recurrent_G``.

    Returns:
        h and c', (..., H) each, of the axes of ``ready_G``.
    """
    return _Cell.apply(ready_G, recurrent_G, cell_H)


class _Cell(torch.autograd.Function):
    """Four gates in one tensor, and a backward pass that needs no more than they and tanh(c')."""

    @staticmethod
    def forward(ctx: Any, ready_G: Tensor, recurrent_G: Tensor, cell_H: Tensor) -> tuple[Tensor, Tensor]:
        size = cell_H.shape[-1]
        gates_G = ready_G + recurrent_G
        gates_G[..., :size].tanh_()
        gates_G[..., size:].sigmoid_()
        u, f, i, o = gates_G.split(size, dim=-1)
        new_cell_H = (f * cell_H).addcmul_(i, u)
        squashed_H = new_cell_H.tanh()
        ctx.save_for_backward(gates_G, cell_H, squashed_H)
        ctx.shape = recurrent_G.shape
        return o * squashed_H, new_cell_H

    @staticmethod
    @differentiable_once("lstm_cell")
    def backward(ctx: Any, grad_hidden_H: Tensor, grad_cell_H: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gates_G, cell_H, squashed_H = ctx.saved_tensors
        size = cell_H.shape[-1]
        u, f, i, o = gates_G.split(size, dim=-1)
        grad_G = torch.empty_like(gates_G)
        # 1 - s^2 for tanh, s (1 - s) for sigmoids, of all gates at once.
        torch.mul(gates_G, gates_G, out=grad_G)
        grad_G[..., :size].neg_().add_(1.0)
        grad_G[..., size:].neg_().add_(gates_G[..., size:])
        down_H = torch.mul(squashed_H, squashed_H).neg_().add_(1.0).mul_(o).mul_(grad_hidden_H).add_(grad_cell_H)
        grad_G[..., :size].mul_(i).mul_(down_H)
        grad_G[..., size : 2 * size].mul_(cell_H).mul_(down_H)
        grad_G[..., 2 * size : 3 * size].mul_(u).mul_(down_H)
        grad_G[..., 3 * size :].mul_(squashed_H).mul_(grad_hidden_H)
        return grad_G, grad_G.sum_to_size(ctx.shape), down_H.mul_(f).sum_to_size(cell_H.shape)
