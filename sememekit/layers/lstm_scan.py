"""The recurrence of LSTMs whose input side is ready: one product a step, and a backward pass written by hand."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def lstm_scan(
    ready: Tensor,
    recurrent: Tensor,
    hidden: Tensor,
    cell: Tensor,
    added: Tensor | None = None,
    output: Tensor | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Scan c = f c + i u (+ added), h = o tanh(c) (+ o_s output) over time, with gates of ``ready`` and the previous h.

    [u, f, i, o (, o_s)] = [tanh, then sigmoid for all the others] of ready_t + h U^T.

    Args:
        ready: (T, B, G H) all that does not depend on the previous output, biases included; G is 4, or 5 with ``output``.
        recurrent: (G H, H) U.
        hidden: (B, H) h before the first step.
        cell: (B, H) c before the first step.
        added: (T, B, H) a second source of the cell state, or None.
        output: (T, B, H) a second source of the output, which the gate o_s lets through, or None.
        mask: (B, H) that the previous output is multiplied by on its way to the gates, the same at every step, or None.

    Returns:
        (T, B, H) outputs and (T, B, H) cell states of every step.
    """
    return _LSTMScan.apply(ready, recurrent, hidden, cell, added, output, mask)


class _LSTMScan(torch.autograd.Function):
    """The gradient of U is one product for the whole sequence, after the loop. The loops never wait for a device."""

    @staticmethod
    def forward(
        ctx: Any,
        ready: Tensor,
        recurrent: Tensor,
        hidden: Tensor,
        cell: Tensor,
        added: Tensor | None,
        output: Tensor | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        steps, batch, _ = ready.shape
        size = hidden.shape[1]
        hiddens = ready.new_empty(steps + 1, batch, size)
        cells = ready.new_empty(steps + 1, batch, size)
        squashed = ready.new_empty(steps, batch, size)
        hiddens[0], cells[0] = hidden, cell
        gates = torch.empty_like(ready)
        for t in range(steps):
            seen = hiddens[t] if mask is None else hiddens[t] * mask
            torch.addmm(ready[t], seen, recurrent.T, out=gates[t])
            gates[t, :, :size].tanh_()
            gates[t, :, size:].sigmoid_()
            u, f, i, o, *o_s = gates[t].split(size, dim=1)
            c = torch.mul(f, cells[t], out=cells[t + 1]).addcmul_(i, u)
            if added is not None:
                c.add_(added[t])
            torch.tanh(c, out=squashed[t])
            h = torch.mul(o, squashed[t], out=hiddens[t + 1])
            if output is not None:
                h.addcmul_(o_s[0], output[t])
        ctx.save_for_backward(recurrent, gates, hiddens, cells, squashed, output, mask)
        ctx.has_added = added is not None
        ctx.set_materialize_grads(False)
        return hiddens[1:], cells[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hiddens: Tensor | None, grad_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        recurrent, gates, hiddens, cells, squashed, output, mask = ctx.saved_tensors
        steps, batch, width = gates.shape
        size = hiddens.shape[2]
        u, f, i, o, *o_s = gates.split(size, dim=2)
        # Everything that is not recurrent in the gradients, for all steps at once: d gate = slope * (dc or dh).
        slopes = torch.empty_like(gates)
        torch.mul(i, 1 - u * u, out=slopes[:, :, :size])
        torch.mul(cells[:-1] * f, 1 - f, out=slopes[:, :, size : 2 * size])
        torch.mul(u * i, 1 - i, out=slopes[:, :, 2 * size : 3 * size])
        torch.mul(squashed * o, 1 - o, out=slopes[:, :, 3 * size : 4 * size])
        if output is not None:
            torch.mul(output * o_s[0], 1 - o_s[0], out=slopes[:, :, 4 * size :])
        cell_slope = o * (1 - squashed * squashed)
        grad_ready = slopes.view(steps, batch, width // size, size)
        grad_added = torch.empty_like(squashed) if ctx.has_added else None
        grad_output = torch.empty_like(squashed) if output is not None else None
        dh = torch.zeros_like(hiddens[0])
        dc = torch.zeros_like(dh)
        for t in range(steps - 1, -1, -1):
            if grad_hiddens is not None:
                dh = dh + grad_hiddens[t]
            dc.addcmul_(dh, cell_slope[t])
            if grad_cells is not None:
                dc.add_(grad_cells[t])
            grad_ready[t, :, :3].mul_(dc.unsqueeze(1))
            grad_ready[t, :, 3:].mul_(dh.unsqueeze(1))
            if grad_added is not None:
                grad_added[t] = dc
            if grad_output is not None:
                torch.mul(dh, o_s[0][t], out=grad_output[t])
            dc.mul_(f[t])
            dh = slopes[t] @ recurrent
            if mask is not None:
                dh.mul_(mask)
        seen = hiddens[:-1] if mask is None else hiddens[:-1] * mask
        grad_recurrent = slopes.view(-1, width).T @ seen.reshape(-1, size)
        return slopes, grad_recurrent, dh, dc, grad_added, grad_output, None
