"""The recurrence of the Mogrifier LSTM: rounds of gating before each step, with a hand-written backward pass."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from sememekit.layers.lstm_scan import at_step, gate_slopes, lstm_step
from sememekit.layers.shared import differentiable_once


class GateMap(NamedTuple):
    """The map of one round, from S to O numbers: ``up`` (O, K) times ``down`` (K, S), or ``up`` (O, S) alone; ``bias`` (O,)."""

    bias: Tensor
    up: Tensor
    down: Tensor | None = None


def mogrifier_scan(
    x_TBE: Tensor,
    input_GE: Tensor,
    recurrent_GH: Tensor,
    bias_G: Tensor,
    rounds: Sequence[GateMap],
    hidden_BH: Tensor,
    cell_BH: Tensor,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Scan an LSTM whose input and previous output gate each other before every step (Eq. (1), (2), Melis et al. 2020).

    x^-1 = x_t and h^0 = the previous output, times ``mask``. Round i = 1, 3, .. is x^i = 2 sigmoid(Q^i h^(i-1) + b^i) x^(i-2),
    round i = 2, 4, .. is h^i = 2 sigmoid(R^i x^(i-1) + b^i) h^(i-2). The last x and the last h are input and previous output of
    the step: [u, f, i, o] = [tanh, then sigmoid] of W x + U h + b; c = f c + i u; h = o tanh(c).

    Vectors are computed without the factors 2; the maps that read a vector include its power of two, which is exact.

    Args:
        input_GE, recurrent_GH, bias_G: W, U, b; G is 4 H, in the order u, f, i, o.
        rounds: Q^1, R^2, Q^3, .. and their biases; odd rounds map H to E, even rounds E to H.
        mask: (B, H), the same at every step, or None.

    Returns (T, B, H) outputs and (T, B, H) cell states of every step."""
    if not torch.compiler.is_compiling():
        matrix = torch.cat([input_GE * 2.0 ** ((len(rounds) + 1) // 2), recurrent_GH * 2.0 ** (len(rounds) // 2)], dim=1)
        flat: list[Tensor | None] = []
        for number, (bias, up, down) in enumerate(rounds, start=1):
            flat += [bias, up * 2.0 ** (number // 2), down]
        return _MogrifierScan.apply(x_TBE, matrix, bias_G, hidden_BH, cell_BH, mask, *flat)
    # What a compiler traces, which cannot follow writes into parts of tensors; values and gradients are those of the scan.
    hiddens: list[Tensor] = []
    cells: list[Tensor] = []
    for x_BE in x_TBE.unbind(0):
        pair = [x_BE, hidden_BH if mask is None else hidden_BH * mask]
        for number, (bias, up, down) in enumerate(rounds):
            target = number % 2
            source = pair[1 - target] if down is None else functional.linear(pair[1 - target], down)
            pair[target] = 2.0 * functional.linear(source, up, bias).sigmoid() * pair[target]
        sums_BG = functional.linear(pair[0], input_GE, bias_G) + functional.linear(pair[1], recurrent_GH)
        hidden_BH, cell_BH, _ = lstm_step(sums_BG, cell_BH)
        hiddens.append(hidden_BH)
        cells.append(cell_BH)
    return torch.stack(hiddens), torch.stack(cells)


class _MogrifierScan(torch.autograd.Function):
    """Steps of a mogrifier LSTM. The gradient of each map is one product after the loop. The loops never wait for a device.

    ``kept[i]`` (T, B, E or H) is the vector after round i, without its powers of two: kept[-1] is x, kept[0] is h. The last x
    and h are concatenated in ``joined`` (T, B, E + H), for one product with the gates."""

    @staticmethod
    def forward(
        ctx: Any,
        x_TBE: Tensor,
        matrix_GJ: Tensor,
        bias_G: Tensor,
        hidden_BH: Tensor,
        cell_BH: Tensor,
        mask: Tensor | None,
        *flat: Any,
    ) -> tuple[Tensor, Tensor]:
        steps, batch, size_in = x_TBE.shape
        size, num_rounds = hidden_BH.shape[1], len(flat) // 3
        rounds = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        maps = [(bias, up.t(), None if down is None else down.t()) for bias, up, down in rounds]
        hidden_TBH, cell_TBH = (x_TBE.new_empty(steps + 1, batch, size) for _ in range(2))
        hidden_TBH[0], cell_TBH[0] = hidden_BH, cell_BH
        seen_TBH = hidden_TBH[:-1] if mask is None else x_TBE.new_empty(steps, batch, size)
        joined_TBJ = x_TBE.new_empty(steps, batch, size_in + size)
        squashed_TBH = x_TBE.new_empty(steps, batch, size)
        gates_TBG = x_TBE.new_empty(steps, batch, len(bias_G))
        kept = {-1: x_TBE, 0: seen_TBH}
        gate, low = {}, {}
        for number, (_, up, down) in enumerate(maps, start=1):
            width = up.shape[1]
            place = joined_TBJ[..., :size_in] if number % 2 else joined_TBJ[..., size_in:]
            kept[number] = place if number > num_rounds - 2 else x_TBE.new_empty(steps, batch, width)
            gate[number] = x_TBE.new_empty(steps, batch, width)
            if down is not None:
                low[number] = x_TBE.new_empty(steps, batch, len(up))
        if num_rounds < 1:
            joined_TBJ[..., :size_in] = x_TBE
        # Views of all steps are taken before the loop, where they cost a tenth.
        rows, gate_rows, low_rows = ({name: part.unbind(0) for name, part in parts.items()} for parts in (kept, gate, low))
        hiddens, cells, squashed = hidden_TBH.unbind(0), cell_TBH.unbind(0), squashed_TBH.unbind(0)
        joined, sums, bounded = joined_TBJ.unbind(0), gates_TBG.unbind(0), gates_TBG[..., size:].unbind(0)
        us, fs, is_, os = (part.unbind(0) for part in gates_TBG.split(size, dim=2))
        ends = joined_TBJ[..., size_in:].unbind(0)
        matrix = matrix_GJ.t()
        for t in range(steps):
            if mask is not None:
                torch.mul(hiddens[t], mask, out=rows[0][t])
            if num_rounds < 2:
                ends[t].copy_(rows[0][t])
            for number, (bias, up, down) in enumerate(maps, start=1):
                source = rows[number - 1][t]
                if down is not None:
                    source = torch.mm(source, down, out=low_rows[number][t])
                gated = torch.addmm(bias, source, up, out=gate_rows[number][t]).sigmoid_()
                torch.mul(rows[number - 2][t], gated, out=rows[number][t])
            torch.addmm(bias_G, joined[t], matrix, out=sums[t])
            # The rest is the LSTM step of lstm_scan.py, over views that were taken before the loop.
            us[t].tanh_()
            bounded[t].sigmoid_()
            torch.mul(fs[t], cells[t], out=cells[t + 1]).addcmul_(is_[t], us[t])
            torch.tanh(cells[t + 1], out=squashed[t])
            torch.mul(os[t], squashed[t], out=hiddens[t + 1])
        order = range(1, num_rounds + 1)
        ctx.save_for_backward(
            x_TBE, matrix_GJ, mask, seen_TBH, cell_TBH, squashed_TBH, gates_TBG, joined_TBJ, *flat,
            *(part for number in order for part in (gate[number], kept[number], low.get(number))),
        )  # fmt: skip
        ctx.set_materialize_grads(False)
        return hidden_TBH[1:], cell_TBH[1:]

    @staticmethod
    @differentiable_once("The scan of a Mogrifier LSTM")
    def backward(ctx: Any, grad_hidden_TBH: Tensor | None, grad_cell_TBH: Tensor | None) -> tuple[Tensor | None, ...]:
        x_TBE, matrix_GJ, mask, seen_TBH, cell_TBH, squashed_TBH, gates_TBG, joined_TBJ, *rest = ctx.saved_tensors
        steps, batch, size_in = x_TBE.shape
        size, half = seen_TBH.shape[2], len(rest) // 2
        maps = [rest[number : number + 3] for number in range(0, half, 3)]
        saved = [rest[number : number + 3] for number in range(half, len(rest), 3)]
        kept = {-1: x_TBE, 0: seen_TBH} | {number: parts[1] for number, parts in enumerate(saved, start=1)}
        slopes_TBG, cell_slope_TBH = gate_slopes(gates_TBG, cell_TBH, squashed_TBH)
        grad_joined_TBJ = torch.empty_like(joined_TBJ)
        forget, cell_slopes, sums = gates_TBG[..., size : 2 * size].unbind(0), cell_slope_TBH.unbind(0), slopes_TBG.unbind(0)
        by_cell, by_output = (part.unbind(0) for part in slopes_TBG.view(steps, batch, 4, size).split([3, 1], dim=2))
        joined, dx, dh = (part.unbind(0) for part in (grad_joined_TBJ, *grad_joined_TBJ.split([size_in, size], dim=2)))
        # What each round's sum makes of its product: d sum = slope * d vector, and d previous vector = gate * d vector.
        slopes = [kept[number - 2] * gate * (1 - gate) for number, (gate, _, _) in enumerate(saved, start=1)]
        lows = [None if low is None else torch.empty_like(low) for _, _, low in saved]
        rounds = [
            (number, up, down, gate.unbind(0), slope.unbind(0), None if low is None else low.unbind(0))
            for number, ((_, up, down), (gate, _, _), slope, low) in enumerate(zip(maps, saved, slopes, lows, strict=True))
        ][::-1]
        dh_BH, dc_BH = (torch.zeros_like(seen_TBH[0]) for _ in range(2))
        for t in range(steps - 1, -1, -1):
            dh_BH = at_step(t, dh_BH, dc_BH, cell_slopes[t], grad_hidden_TBH, grad_cell_TBH)
            by_cell[t].mul_(dc_BH.unsqueeze(1))
            by_output[t].mul_(dh_BH.unsqueeze(1))
            dc_BH.mul_(forget[t])
            torch.mm(sums[t], matrix_GJ, out=joined[t])
            ends = dx[t], dh[t]
            for number, up, down, gate, slope, low in rounds:
                made, source = ends[number % 2], ends[1 - number % 2]
                grad_sum = slope[t].mul_(made)
                made.mul_(gate[t])
                if down is None or low is None:
                    source.addmm_(grad_sum, up)
                else:
                    source.addmm_(torch.mm(grad_sum, up, out=low[t]), down)
            dh_BH = ends[1] if mask is None else ends[1] * mask
        grads: list[Tensor | None] = []
        for number, (slope, grad_low, (_, _, low)) in enumerate(zip(slopes, lows, saved, strict=True)):
            grad_sum, source = slope.flatten(0, 1), kept[number].flatten(0, 1)
            grads.append(grad_sum.sum(0))
            if grad_low is None:
                grads += [grad_sum.t() @ source, None]
            else:
                grads += [grad_sum.t() @ low.flatten(0, 1), grad_low.flatten(0, 1).t() @ source]
        flat_slopes = slopes_TBG.flatten(0, 1)
        grad_matrix = flat_slopes.t() @ joined_TBJ.flatten(0, 1)
        return grad_joined_TBJ[..., :size_in], grad_matrix, flat_slopes.sum(0), dh_BH, dc_BH, None, *grads
