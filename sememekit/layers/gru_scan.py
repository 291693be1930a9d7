"""The recurrence of GRUs whose reset gate acts before the matrix, input side ready, with a backward pass written by hand."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def gru_scan(
    ready_gates: Tensor,
    ready_candidate: Tensor,
    to_gates: Tensor,
    to_candidate: Tensor,
    hidden: Tensor,
    second: Tensor | None = None,
    output: Tensor | None = None,
) -> Tensor:
    """Scan h' = (1 - z) h + z n (+ o_s output) over time.

    [z, r (, o_s)] = sigmoid(ready_gates_t + h U^T), n = tanh(ready_candidate_t + what r lets through, times W^T). With a
    ``second`` memory h_s the reset gate acts on both: on their sum, or on each for itself where W is (H, 2 H).

    Args:
        ready_gates: (T, B, G H), biases included; G is 2, or 3 with ``output``.
        ready_candidate: (T, B, H), bias included.
        to_gates: (G H, H) U.
        to_candidate: (H, H) W: of r h, or of r (h + h_s); or (H, 2 H): of [r h; r h_s].
        hidden: (B, H) h before the first step.
        second: (T, B, H) h_s, or None.
        output: (T, B, H) a second source of the output, which the gate o_s lets through, or None.

    Returns:
        (T, B, H) outputs of every step.
    """
    return _GRUScan.apply(ready_gates, ready_candidate, to_gates, to_candidate, hidden, second, output)


class _GRUScan(torch.autograd.Function):
    """Gradients of both matrices are taken after the loop, in one product each. The loops never wait for a device."""

    @staticmethod
    def forward(
        ctx: Any,
        ready_gates: Tensor,
        ready_candidate: Tensor,
        to_gates: Tensor,
        to_candidate: Tensor,
        hidden: Tensor,
        second: Tensor | None,
        output: Tensor | None,
    ) -> Tensor:
        steps, batch, size = ready_candidate.shape
        apart = to_candidate.shape[1] > size
        hiddens = ready_gates.new_empty(steps + 1, batch, size)
        hiddens[0] = hidden
        gates = torch.empty_like(ready_gates)
        passed = ready_gates.new_empty(steps, batch, to_candidate.shape[1])
        candidates = torch.empty_like(ready_candidate)
        for t in range(steps):
            h = hiddens[t]
            z, r, *o_s = torch.addmm(ready_gates[t], h, to_gates.T, out=gates[t]).sigmoid_().split(size, dim=1)
            torch.mul(r, h, out=passed[t, :, :size])
            if second is not None:
                if apart:
                    torch.mul(r, second[t], out=passed[t, :, size:])
                else:
                    passed[t].addcmul_(r, second[t])
            n = torch.addmm(ready_candidate[t], passed[t], to_candidate.T, out=candidates[t]).tanh_()
            after = torch.lerp(h, n, z, out=hiddens[t + 1])
            if output is not None:
                after.addcmul_(o_s[0], output[t])
        ctx.save_for_backward(to_gates, to_candidate, gates, passed, candidates, hiddens, second, output)
        return hiddens[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hiddens: Tensor) -> tuple[Tensor | None, ...]:
        to_gates, to_candidate, gates, passed, candidates, hiddens, second, output = ctx.saved_tensors
        steps, _, size = candidates.shape
        width, apart = gates.shape[2], to_candidate.shape[1] > size
        before = hiddens[:-1]
        z, r, *o_s = gates.split(size, dim=2)
        # Everything that is not recurrent in the gradients, for all steps at once.
        slopes = gates * (1 - gates)
        slopes[:, :, :size].mul_(candidates - before)
        if output is not None:
            slopes[:, :, 2 * size :].mul_(output)
        grad_candidate = z * (1 - candidates * candidates)
        kept = 1 - z
        under_reset = before if second is None or apart else before + second
        grad_second = torch.empty_like(candidates) if second is not None else None
        grad_output = torch.empty_like(candidates) if output is not None else None
        dh = torch.zeros_like(hiddens[0])
        for t in range(steps - 1, -1, -1):
            dh = dh + grad_hiddens[t]
            dn = grad_candidate[t].mul_(dh)
            d_passed = dn @ to_candidate
            d_first = d_passed[:, :size]
            dr = d_first * under_reset[t]
            if grad_second is not None:
                if apart:
                    dr.addcmul_(d_passed[:, size:], second[t])
                    torch.mul(d_passed[:, size:], r[t], out=grad_second[t])
                else:
                    torch.mul(d_first, r[t], out=grad_second[t])
            slope = slopes[t]
            slope[:, :size].mul_(dh)
            slope[:, size : 2 * size].mul_(dr)
            if grad_output is not None:
                slope[:, 2 * size :].mul_(dh)
                torch.mul(dh, o_s[0][t], out=grad_output[t])
            dh = (slope @ to_gates).addcmul_(dh, kept[t]).addcmul_(d_first, r[t])
        grad_to_gates = slopes.view(-1, width).T @ before.reshape(-1, size)
        grad_to_candidate = grad_candidate.view(-1, size).T @ passed.view(-1, passed.shape[2])
        return slopes, grad_candidate, grad_to_gates, grad_to_candidate, dh, grad_second, grad_output
