"""Gated recurrent units, with the reset gate before or after the matrix, and with the sememes of a word (Qin et al. 2020).

h' = (1 - z) h + z n: in the layers with the gate before the matrix z weighs the new state; in torch z weighs the old state."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from sememekit.config import OnlyWith
from sememekit.encoders.base import State
from sememekit.encoders.sememe_sum import CustomRecurrentLayer, Pi
from sememekit.encoders.stack import RecurrentStack
from sememekit.errors import ConfigError
from sememekit.layers.shared import differentiable_once

GateOutput = Literal["mapped", "plain"]
Candidate = Literal["paper", "release"]


@final
class GRUBefore(CustomRecurrentLayer):
    """z, r = sigmoid of maps of x and h; n = tanh(W x + U (r h)) (Eq. (2), Qin et al. 2020); pi, if any, is part of x."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.input = nn.Linear(input_size, 3 * size)  # n, z, r
        self.recurrent = nn.Linear(size, 2 * size)  # z, r
        self.candidate = nn.Linear(size, size)

    def forward(self, x: Tensor, pi: Pi | None, state: State) -> State:
        candidate_TBH, gates_TBG = self.input(x).split([self.size, 2 * self.size], dim=-1)
        ready = gates_TBG + self.recurrent.bias, candidate_TBH + self.candidate.bias
        return (gru_scan(*ready, self.recurrent.weight, self.candidate.weight, state[0]),)


@final
class GRUGate(CustomRecurrentLayer):
    """A gate for the sememes in the output (Eq. (6), Qin et al. 2020).

    z, r, o_s = sigmoid of maps of x, h and pi; n = tanh(W x + U (r h)); h' = (1 - z) h + z n + o_s tanh(W_s pi + b) as in the
    released code ("mapped"), or + o_s tanh(pi) as in the text ("plain", which needs P = H).

    The added term stays in h, and a small z does not reduce it: unlike in other cells, |h| can grow from step to step. Text and
    code publish this form; a lower learning rate keeps h bounded."""

    def __init__(self, input_size: int, sememe_size: int, size: int, gate_output: GateOutput) -> None:
        super().__init__()
        self.size = size
        self.input = nn.Linear(input_size, 4 * size)  # n, z, r, o_s
        self.recurrent = nn.Linear(size, 3 * size)  # z, r, o_s
        self.sememes = nn.Linear(sememe_size, 3 * size)  # z, r, o_s
        self.candidate = nn.Linear(size, size)
        self.output = nn.Linear(sememe_size, size) if gate_output == "mapped" else None

    def forward(self, x: Tensor, pi: Pi, state: State) -> State:
        candidate_TBH, gates_TBG = self.input(x).split([self.size, 3 * self.size], dim=-1)
        gates_TBG = gates_TBG + pi.to_positions(self.sememes(pi.rows)) + self.recurrent.bias
        output_TBH = pi.to_positions(torch.tanh(pi.rows if self.output is None else self.output(pi.rows)))
        ready = gates_TBG, candidate_TBH + self.candidate.bias
        return (gru_scan(*ready, self.recurrent.weight, self.candidate.weight, state[0], output=output_TBH),)


@final
class GRUCell(CustomRecurrentLayer):
    """A second GRU cell reads pi, and its output is added to the previous one under the reset gate (Eq. (8), Qin et al. 2020).

    h_s = sigmoid(a) tanh(b), one step of a GRU on pi from zero; z, r = sigmoid of maps of x, h and h_s; n = tanh(W x + U (r (h
    + h_s))) as in the text and the released inference code ("paper"), or tanh(W x + U (r h) + U_s (r h_s)) as in the released
    language-model code ("release")."""

    def __init__(self, input_size: int, sememe_size: int, size: int, candidate: Candidate) -> None:
        super().__init__()
        self.size = size
        self.sememe_cell = nn.Linear(sememe_size, 2 * size)  # a, b
        self.input = nn.Linear(input_size, 3 * size)  # n, z, r
        self.recurrent = nn.Linear(size, 2 * size)  # z, r
        self.sememes = nn.Linear(size, 2 * size)  # z, r, from h_s
        self.candidate = nn.Linear(size, size)
        self.sememe_candidate = nn.Linear(size, size) if candidate == "release" else None

    def forward(self, x: Tensor, pi: Pi, state: State) -> State:
        gate_NH, value_NH = self.sememe_cell(pi.rows).split(self.size, dim=-1)
        sememe_hidden_NH = torch.sigmoid(gate_NH) * torch.tanh(value_NH)
        candidate_TBH, gates_TBG = self.input(x).split([self.size, 2 * self.size], dim=-1)
        gates_TBG = gates_TBG + pi.to_positions(self.sememes(sememe_hidden_NH)) + self.recurrent.bias
        maps = [one for one in (self.candidate, self.sememe_candidate) if one is not None]
        ready = gates_TBG, candidate_TBH + sum(one.bias for one in maps)
        weight = torch.cat([one.weight for one in maps], dim=1)  # (H, H), or (H, 2 H) with a matrix of its own for h_s
        return (gru_scan(*ready, self.recurrent.weight, weight, state[0], second=pi.to_positions(sememe_hidden_NH)),)


@final
class GRU(RecurrentStack):
    """Gates r, z = sigmoid of linear maps; n = tanh(W x + r (U h + b)); h = (1 - z) n + z h: torch's form of Cho et al. 2014.

    >>> encoder = GRU(GRU.Settings(hidden_size=16), EncoderResources(input_size=8, vocabulary=words))
    >>> encoder(vectors_TBE, target_TB, encoder.start(batch_size=2)).hidden.shape
    torch.Size([5, 2, 16])

    With ``reset="before"`` n = tanh(W x + U (r h)), the original form, as in Qin et al. 2020; the sememe layers always have it
    (see above). State: (h_1, h_2, ...), each (B, H_l)."""

    states_per_layer: ClassVar[int] = 1

    class Settings(RecurrentStack.Settings):
        reset: Literal["after", "before"] = "after"
        """In plain layers the reset gate acts "after" the matrix as in torch, or "before" it as in the papers."""
        gate_output: GateOutput = "mapped"
        """With injection "gate": tanh(W pi + b) as the released code ("mapped"), or tanh(pi) as the text ("plain")."""
        candidate: Candidate = "paper"
        """With injection "cell": U (r (h + h_s)) as the text ("paper"), or U (r h) + U_s (r h_s) ("release")."""

        only_with: ClassVar[Mapping[str, OnlyWith]] = {
            "gate_output": OnlyWith("injection", values=("gate",)),
            "candidate": OnlyWith("injection", values=("cell",)),
        }

    @staticmethod
    def plain_layer(settings: Settings, size_in: int, size_out: int) -> nn.Module:
        return nn.GRU(size_in, size_out) if settings.reset == "after" else GRUBefore(size_in, size_out)

    @staticmethod
    def sememe_layer(settings: Settings, size_in: int, sememe_size: int, size_out: int) -> CustomRecurrentLayer:
        if settings.injection == "cell":
            return GRUCell(size_in, sememe_size, size_out, settings.candidate)
        if settings.gate_output == "plain" and sememe_size != size_out:
            raise ConfigError(
                f"encoder 'gru' with gate_output='plain' adds tanh(pi) to the output: the size of the sememe vectors "
                f"({sememe_size}) and of the first layer ({size_out}) must be equal; set encoder.sememe_size={size_out} or "
                "encoder.gate_output=mapped"
            )
        return GRUGate(size_in, sememe_size, size_out, settings.gate_output)


def gru_scan(
    ready_gates_TBG: Tensor,
    ready_candidate_TBH: Tensor,
    to_gates_GH: Tensor,
    to_candidate_HR: Tensor,
    hidden_BH: Tensor,
    second: Tensor | None = None,
    output: Tensor | None = None,
) -> Tensor:
    """Scan h' = (1 - z) h + z n (+ o_s output) over time.

    [z, r (, o_s)] = sigmoid(ready_gates_t + h U^T), n = tanh(ready_candidate_t + (r h) W^T). With a ``second`` memory h_s the
    reset gate acts on both: on their sum, or on each separately if W is (H, 2 H).

    G is 2 H, or 3 H with ``output``; R is H, or 2 H for separate memories.

    Args:
        ready_gates_TBG, ready_candidate_TBH: the parts independent of the previous step, with biases.
        to_candidate_HR: W: of r h, or of r (h + h_s), or of [r h; r h_s].
        second: (T, B, H) h_s, or None.
        output: (T, B, H) a second source of the output, gated by o_s, or None.

    Returns (T, B, H) outputs of every step."""
    if not torch.compiler.is_compiling():
        return _GRUScan.apply(ready_gates_TBG, ready_candidate_TBH, to_gates_GH, to_candidate_HR, hidden_BH, second, output)
    # What a compiler traces, which cannot follow writes into parts of tensors; values and gradients are those of the scan.
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


class _GRUScan(torch.autograd.Function):
    """Steps of a GRU. The gradient of each matrix is one product after the loop. The loops never synchronise with a device."""

    @staticmethod
    def forward(ctx: Any, ready_gates_TBG: Tensor, ready_candidate_TBH: Tensor, *more: Any) -> Tensor:
        to_gates_GH, to_candidate_HR, hidden_BH, second, output = more
        steps, batch, size = ready_candidate_TBH.shape
        apart = to_candidate_HR.shape[1] > size
        hidden_TBH = ready_gates_TBG.new_empty(steps + 1, batch, size)
        hidden_TBH[0] = hidden_BH
        gates_TBG = torch.empty_like(ready_gates_TBG)
        passed_TBR = ready_gates_TBG.new_empty(steps, batch, to_candidate_HR.shape[1])
        candidate_TBH = torch.empty_like(ready_candidate_TBH)
        for t in range(steps):
            h_BH = hidden_TBH[t]
            z, r, *o_s = torch.addmm(ready_gates_TBG[t], h_BH, to_gates_GH.T, out=gates_TBG[t]).sigmoid_().split(size, dim=1)
            torch.mul(r, h_BH, out=passed_TBR[t, :, :size])
            if second is not None:
                if apart:
                    torch.mul(r, second[t], out=passed_TBR[t, :, size:])
                else:
                    passed_TBR[t].addcmul_(r, second[t])
            n_BH = torch.addmm(ready_candidate_TBH[t], passed_TBR[t], to_candidate_HR.T, out=candidate_TBH[t]).tanh_()
            after_BH = torch.lerp(h_BH, n_BH, z, out=hidden_TBH[t + 1])
            if output is not None:
                after_BH.addcmul_(o_s[0], output[t])
        ctx.save_for_backward(to_gates_GH, to_candidate_HR, gates_TBG, passed_TBR, candidate_TBH, hidden_TBH, second, output)
        return hidden_TBH[1:]

    @staticmethod
    @differentiable_once("The scan of a GRU")
    def backward(ctx: Any, grad_hidden_TBH: Tensor) -> tuple[Tensor | None, ...]:
        to_gates_GH, to_candidate_HR, gates_TBG, passed_TBR, candidate_TBH, hidden_TBH, second, output = ctx.saved_tensors
        steps, _, size = candidate_TBH.shape
        width, apart = gates_TBG.shape[2], to_candidate_HR.shape[1] > size
        before_TBH = hidden_TBH[:-1]
        z, r, *o_s = gates_TBG.split(size, dim=2)
        # Everything that is not recurrent in the gradients, for all steps at once.
        slopes_TBG = gates_TBG * (1 - gates_TBG)
        slopes_TBG[:, :, :size].mul_(candidate_TBH - before_TBH)
        if output is not None:
            slopes_TBG[:, :, 2 * size :].mul_(output)
        grad_candidate_TBH = z * (1 - candidate_TBH * candidate_TBH)
        kept_TBH = 1 - z
        under_reset_TBH = before_TBH if second is None or apart else before_TBH + second
        grad_second_TBH = torch.empty_like(candidate_TBH) if second is not None else None
        grad_output_TBH = torch.empty_like(candidate_TBH) if output is not None else None
        dh_BH = torch.zeros_like(hidden_TBH[0])
        for t in range(steps - 1, -1, -1):
            dh_BH = dh_BH + grad_hidden_TBH[t]
            dn_BH = grad_candidate_TBH[t].mul_(dh_BH)
            d_passed_BR = dn_BH @ to_candidate_HR
            d_first_BH = d_passed_BR[:, :size]
            dr_BH = d_first_BH * under_reset_TBH[t]
            if grad_second_TBH is not None:
                if apart:
                    dr_BH.addcmul_(d_passed_BR[:, size:], second[t])
                    torch.mul(d_passed_BR[:, size:], r[t], out=grad_second_TBH[t])
                else:
                    torch.mul(d_first_BH, r[t], out=grad_second_TBH[t])
            slope_BG = slopes_TBG[t]
            slope_BG[:, :size].mul_(dh_BH)
            slope_BG[:, size : 2 * size].mul_(dr_BH)
            if grad_output_TBH is not None:
                slope_BG[:, 2 * size :].mul_(dh_BH)
                torch.mul(dh_BH, o_s[0][t], out=grad_output_TBH[t])
            dh_BH = (slope_BG @ to_gates_GH).addcmul_(dh_BH, kept_TBH[t]).addcmul_(d_first_BH, r[t])
        grad_to_gates = slopes_TBG.view(-1, width).T @ before_TBH.reshape(-1, size)
        grad_to_candidate = grad_candidate_TBH.view(-1, size).T @ passed_TBR.view(-1, passed_TBR.shape[2])
        return slopes_TBG, grad_candidate_TBH, grad_to_gates, grad_to_candidate, dh_BH, grad_second_TBH, grad_output_TBH
