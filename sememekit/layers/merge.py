"""Weighted sums of states, and rows of one matrix for several uses: two small sums whose gradients torch takes the long way."""

from typing import Any

import torch
from torch import Tensor

from sememekit.layers.shared import differentiable_once


def weighted_sum(weights: Tensor, *states: Tensor) -> Tensor:
    """(B, H) sum over l and c of weights[l, c] states[l][c], of weights (L, C, B) and L tensors (C, B, H)."""
    return _WeightedSum.apply(weights, *states)


def rows_of(matrix: Tensor, *indices: Tensor) -> tuple[Tensor, ...]:
    """``matrix[index]`` for each of several ``indices`` of any shape, with one gradient of the matrix for all of them.

    Args:
        matrix: (V, E).
        indices: each (...) of row numbers.

    Returns (..., E) each."""
    return _RowsOf.apply(matrix, *indices)


class _WeightedSum(torch.autograd.Function):
    """No batched product: its batches are as many as there are sentences, and tiny."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, *states: Tensor) -> Tensor:
        ctx.save_for_backward(weights, *states)
        terms = [(weight, state) for pair in zip(weights, states, strict=True) for weight, state in zip(*pair, strict=True)]
        total = terms[0][1] * terms[0][0].unsqueeze(-1)
        for weight, state in terms[1:]:
            total.addcmul_(state, weight.unsqueeze(-1))
        return total

    @staticmethod
    @differentiable_once("weighted_sum")
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weights, *states = ctx.saved_tensors
        grad_weights = torch.stack([(state * grad).sum(-1) for state in states]) if ctx.needs_input_grad[0] else None
        return grad_weights, *(weight.unsqueeze(-1) * grad for weight in weights)


class _RowsOf(torch.autograd.Function):
    """The gradient is as large as the matrix, so it is made once."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, *indices: Tensor) -> tuple[Tensor, ...]:
        ctx.save_for_backward(*indices)
        ctx.shape = matrix.shape
        return tuple(matrix[index] for index in indices)

    @staticmethod
    @differentiable_once("rows_of")
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        total = grads[0].new_zeros(ctx.shape)
        for index, grad in zip(ctx.saved_tensors, grads, strict=True):
            total.index_add_(0, index.flatten(), grad.reshape(-1, ctx.shape[1]))
        return total, *(None for _ in grads)
