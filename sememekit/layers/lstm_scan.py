"""LSTM recurrences over precomputed input projections: a scan with one product a step and a hand-written backward pass, and a
single step for lattices."""

from typing import Any

import torch
from torch import Tensor

from sememekit.layers.shared import differentiable_once


def lstm_scan(
    ready_TBG: Tensor,
    recurrent_GH: Tensor,
    hidden_BH: Tensor,
    cell_BH: Tensor,
    added: Tensor | None = None,
    output: Tensor | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Scan c = f c + i u (+ added), h = o tanh(c) (+ o_s output) over time, with gates of ``ready_TBG`` and the previous h.

    [u, f, i, o (, o_s)] = ready_t + h U^T, with tanh on u and sigmoid on all others. G is 4 H, or 5 H with ``output``.

    Args:
        ready_TBG: the part independent of the previous output, with biases.
        recurrent_GH: U; may be bfloat16, while sums and states have the dtype of ``ready_TBG``.
        added: (T, B, H) a second source of the cell state, or None.
        output: (T, B, H) a second source of the output, gated by o_s, or None.
        mask: (B, H) dropout mask of the previous output in the gates, the same at every step, or None.

    Returns (T, B, H) outputs and (T, B, H) cell states of every step."""
    if not torch.compiler.is_compiling():
        return _LSTMScan.apply(ready_TBG, recurrent_GH, hidden_BH, cell_BH, added, output, mask)
    # What a compiler traces, which cannot follow writes into parts of tensors; values and gradients are those of the scan.
    hiddens: list[Tensor] = []
    cells: list[Tensor] = []
    for t, ready_BG in enumerate(ready_TBG.unbind(0)):
        seen_BH = hidden_BH if mask is None else hidden_BH * mask
        source_BH = None if added is None else added[t]
        sums_BG = ready_BG + seen_BH.to(recurrent_GH.dtype) @ recurrent_GH.T
        hidden_BH, cell_BH, o_s = lstm_step(sums_BG, cell_BH, source_BH)
        if output is not None:
            hidden_BH = hidden_BH + o_s[0] * output[t]
        hiddens.append(hidden_BH)
        cells.append(cell_BH)
    return torch.stack(hiddens), torch.stack(cells)


def lstm_step(sums_G: Tensor, cell_H: Tensor, added_H: Tensor | None = None) -> tuple[Tensor, Tensor, list[Tensor]]:
    """h = o tanh(c), c = f c + i u (+ added), and the gates after o, in traceable operations."""
    size = cell_H.shape[-1]
    f, i, o, *more = sums_G[..., size:].sigmoid().split(size, dim=-1)
    cell_H = torch.addcmul(f * cell_H, i, sums_G[..., :size].tanh())
    if added_H is not None:
        cell_H = cell_H + added_H
    return o * cell_H.tanh(), cell_H, more


class _LSTMScan(torch.autograd.Function):
    """Steps of an LSTM. The gradient of U is one product after the loop. The loops never synchronise with a device."""

    @staticmethod
    def forward(
        ctx: Any, ready_TBG: Tensor, recurrent_GH: Tensor, hidden_BH: Tensor, cell_BH: Tensor, *more: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        added, output, mask = more
        steps, batch, _ = ready_TBG.shape
        size = hidden_BH.shape[1]
        hidden_TBH = ready_TBG.new_empty(steps + 1, batch, size)
        cell_TBH = ready_TBG.new_empty(steps + 1, batch, size)
        squashed_TBH = ready_TBG.new_empty(steps, batch, size)
        hidden_TBH[0], cell_TBH[0] = hidden_BH, cell_BH
        gates_TBG = torch.empty_like(ready_TBG)
        for t in range(steps):
            seen_BH = hidden_TBH[t] if mask is None else hidden_TBH[t] * mask
            if seen_BH.dtype == recurrent_GH.dtype:  # one kernel; with bfloat16 weights the sum must stay wide
                torch.addmm(ready_TBG[t], seen_BH, recurrent_GH.T, out=gates_TBG[t])
            else:
                torch.add(ready_TBG[t], seen_BH.to(recurrent_GH.dtype) @ recurrent_GH.T, out=gates_TBG[t])
            # u comes first, so that all sigmoids are one contiguous range.
            gates_TBG[t, :, :size].tanh_()
            gates_TBG[t, :, size:].sigmoid_()
            u, f, i, o, *o_s = gates_TBG[t].split(size, dim=1)
            c_BH = torch.mul(f, cell_TBH[t], out=cell_TBH[t + 1]).addcmul_(i, u)
            if added is not None:
                c_BH.add_(added[t])
            torch.tanh(c_BH, out=squashed_TBH[t])
            h_BH = torch.mul(o, squashed_TBH[t], out=hidden_TBH[t + 1])
            if output is not None:
                h_BH.addcmul_(o_s[0], output[t])
        ctx.save_for_backward(recurrent_GH, gates_TBG, hidden_TBH, cell_TBH, squashed_TBH, output, mask)
        ctx.has_added = added is not None
        ctx.set_materialize_grads(False)
        return hidden_TBH[1:], cell_TBH[1:]

    @staticmethod
    @differentiable_once("The scan of an LSTM")
    def backward(ctx: Any, grad_hidden_TBH: Tensor | None, grad_cell_TBH: Tensor | None) -> tuple[Tensor | None, ...]:
        recurrent_GH, gates_TBG, hidden_TBH, cell_TBH, squashed_TBH, output, mask = ctx.saved_tensors
        steps, batch, width = gates_TBG.shape
        size = hidden_TBH.shape[2]
        _, f, _, _, *o_s = gates_TBG.split(size, dim=2)
        # Everything that is not recurrent in the gradients, for all steps at once: d gate = slope * (dc or dh).
        slopes_TBG, cell_slope_TBH = gate_slopes(gates_TBG, cell_TBH, squashed_TBH)
        if output is not None:
            torch.mul(output * o_s[0], 1 - o_s[0], out=slopes_TBG[:, :, 4 * size :])
        grad_ready_TB4H = slopes_TBG.view(steps, batch, width // size, size)
        grad_added_TBH = torch.empty_like(squashed_TBH) if ctx.has_added else None
        grad_output_TBH = torch.empty_like(squashed_TBH) if output is not None else None
        dh_BH = torch.zeros_like(hidden_TBH[0])
        dc_BH = torch.zeros_like(dh_BH)
        for t in range(steps - 1, -1, -1):
            dh_BH = at_step(t, dh_BH, dc_BH, cell_slope_TBH[t], grad_hidden_TBH, grad_cell_TBH)
            # From here on the slopes of step t are gradients: u, f and i act through c, o (and o_s) through h.
            grad_ready_TB4H[t, :, :3].mul_(dc_BH.unsqueeze(1))
            grad_ready_TB4H[t, :, 3:].mul_(dh_BH.unsqueeze(1))
            if grad_added_TBH is not None:
                grad_added_TBH[t] = dc_BH
            if grad_output_TBH is not None:
                torch.mul(dh_BH, o_s[0][t], out=grad_output_TBH[t])
            dc_BH.mul_(f[t])
            dh_BH = (slopes_TBG[t].to(recurrent_GH.dtype) @ recurrent_GH).to(dc_BH.dtype)
            if mask is not None:
                dh_BH.mul_(mask)
        seen_BH = hidden_TBH[:-1] if mask is None else hidden_TBH[:-1] * mask
        narrow_slopes, narrow_seen = (part.to(recurrent_GH.dtype) for part in (slopes_TBG, seen_BH))
        grad_recurrent = narrow_slopes.view(-1, width).T @ narrow_seen.reshape(-1, size)
        return slopes_TBG, grad_recurrent, dh_BH, dc_BH, grad_added_TBH, grad_output_TBH, None


def at_step(
    t: int, dh_BH: Tensor, dc_BH: Tensor, slope_BH: Tensor, grad_hidden_TBH: Tensor | None, grad_cell_TBH: Tensor | None
) -> Tensor:
    """Return the gradient of h at a step, and add the parts of the gradient of c; ``slope_BH`` is the slope of h by c."""
    dh_BH = dh_BH if grad_hidden_TBH is None else dh_BH + grad_hidden_TBH[t]
    dc_BH.addcmul_(dh_BH, slope_BH)
    if grad_cell_TBH is not None:
        dc_BH.add_(grad_cell_TBH[t])
    return dh_BH


def gate_slopes(gates_TBG: Tensor, cell_TBH: Tensor, squashed_TBH: Tensor) -> tuple[Tensor, Tensor]:
    """Return slopes (T, B, G) of the sums, the derivatives of c by the pre-activations u, f and i and of h by the
    pre-activation o, and slopes (T, B, H) of h by c. ``gates_TBG``: u, f, i, o, and perhaps further gates, for which the result
    has room; ``cell_TBH``: (T + 1, B, H) c before each step, and after the last; ``squashed_TBH``: tanh(c) after each step."""
    size = squashed_TBH.shape[2]
    u, f, i, o, *_ = gates_TBG.split(size, dim=2)
    slopes_TBG = torch.empty_like(gates_TBG)
    torch.mul(i, 1 - u * u, out=slopes_TBG[:, :, :size])
    torch.mul(cell_TBH[:-1] * f, 1 - f, out=slopes_TBG[:, :, size : 2 * size])
    torch.mul(u * i, 1 - i, out=slopes_TBG[:, :, 2 * size : 3 * size])
    torch.mul(squashed_TBH * o, 1 - o, out=slopes_TBG[:, :, 3 * size : 4 * size])
    return slopes_TBG, o * (1 - squashed_TBH * squashed_TBH)


def lstm_cell(ready_G: Tensor, recurrent_G: Tensor, cell_H: Tensor) -> tuple[Tensor, Tensor]:
    """c' = f c + i u, h = o tanh(c'), with [u, f, i, o] = [tanh, then sigmoid] of ``ready_G`` + ``recurrent_G``; G is 4 H. The
    contribution of the state (..., G) and c (..., H) may have axes of size 1 (many edges leave a node). Returns h and c', (...,
    H) each, of the axes of ``ready_G``."""
    return lstm_step(ready_G + recurrent_G, cell_H)[:2]


def four_gates(gates: Tensor, coupled: bool, axis: int = -1) -> Tensor:
    """Return [u, f, i, o] from [u, f, o] with coupled input gates: 1 - sigmoid(z) = sigmoid(-z)."""
    if not coupled:
        return gates
    u, f, o = gates.chunk(3, dim=axis)
    return torch.cat([u, f, -f, o], dim=axis)
