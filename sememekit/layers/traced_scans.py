"""The recurrences of the scans step by step in plain operations: what a compiler traces, which cannot follow writes into parts
of tensors. Values and gradients are those of the scans; see there for the arguments."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def traced_lstm(
    ready_TBG: Tensor,
    recurrent_GH: Tensor,
    hidden_BH: Tensor,
    cell_BH: Tensor,
    added: Tensor | None,
    output: Tensor | None,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """``lstm_scan``."""
    hiddens: list[Tensor] = []
    cells: list[Tensor] = []
    size = hidden_BH.shape[1]
    for t, ready_BG in enumerate(ready_TBG.unbind(0)):
        seen_BH = hidden_BH if mask is None else hidden_BH * mask
        hidden_BH, cell_BH, o_s = _lstm_step(torch.addmm(ready_BG, seen_BH, recurrent_GH.T), cell_BH, size, added, t)
        if output is not None:
            hidden_BH = hidden_BH + o_s[0] * output[t]
        hiddens.append(hidden_BH)
        cells.append(cell_BH)
    return torch.stack(hiddens), torch.stack(cells)


def traced_gru(
    ready_gates_TBG: Tensor,
    ready_candidate_TBH: Tensor,
    to_gates_GH: Tensor,
    to_candidate_HR: Tensor,
    hidden_BH: Tensor,
    second: Tensor | None,
    output: Tensor | None,
) -> Tensor:
    """``gru_scan``."""
    hiddens: list[Tensor] = []
    size = hidden_BH.shape[1]
    apart = to_candidate_HR.shape[1] > size
    for t, (gates_BG, candidate_BH) in enumerate(zip(ready_gates_TBG.unbind(0), ready_candidate_TBH.unbind(0), strict=True)):
        z, r, *o_s = torch.addmm(gates_BG, hidden_BH, to_gates_GH.T).sigmoid().split(size, dim=1)
        passed_BR = r * hidden_BH
        if second is not None:
            passed_BR = torch.cat([passed_BR, r * second[t]], dim=1) if apart else passed_BR + r * second[t]
        hidden_BH = torch.lerp(hidden_BH, torch.addmm(candidate_BH, passed_BR, to_candidate_HR.T).tanh(), z)
        if output is not None:
            hidden_BH = hidden_BH + o_s[0] * output[t]
        hiddens.append(hidden_BH)
    return torch.stack(hiddens)


def traced_mogrifier(
    x_TBE: Tensor,
    input_GE: Tensor,
    recurrent_GH: Tensor,
    bias_G: Tensor,
    rounds: Sequence[tuple[Tensor, Tensor, Tensor | None]],
    hidden_BH: Tensor,
    cell_BH: Tensor,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """``mogrifier_scan``."""
    hiddens: list[Tensor] = []
    cells: list[Tensor] = []
    size = hidden_BH.shape[1]
    for x_BE in x_TBE.unbind(0):
        pair = [x_BE, hidden_BH if mask is None else hidden_BH * mask]
        for number, (bias, up, down) in enumerate(rounds):
            target = number % 2
            source = pair[1 - target] if down is None else functional.linear(pair[1 - target], down)
            pair[target] = 2.0 * functional.linear(source, up, bias).sigmoid() * pair[target]
        sums_BG = functional.linear(pair[0], input_GE, bias_G) + functional.linear(pair[1], recurrent_GH)
        hidden_BH, cell_BH, _ = _lstm_step(sums_BG, cell_BH, size, None, 0)
        hiddens.append(hidden_BH)
        cells.append(cell_BH)
    return torch.stack(hiddens), torch.stack(cells)


def _lstm_step(
    sums_BG: Tensor, cell_BH: Tensor, size: int, added: Tensor | None, t: int
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """h = o tanh(c), c = f c + i u (+ added), and the gates behind o."""
    f, i, o, *more = sums_BG[:, size:].sigmoid().split(size, dim=1)
    cell_BH = f * cell_BH + i * sums_BG[:, :size].tanh()
    if added is not None:
        cell_BH = cell_BH + added[t]
    return o * cell_BH.tanh(), cell_BH, more
