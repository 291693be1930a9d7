"""GRU layers with the reset gate before the matrix: plain, and with the sememes of a word (Qin et al. 2020).

h' = (1 - z) h + z n: z is the share of the new state, where torch's z is that of the old.
"""

from __future__ import annotations

from typing import Literal, final

import torch
from torch import Tensor, nn

from sememekit.encoders.base import State
from sememekit.encoders.own_layer import CustomRecurrentLayer
from sememekit.encoders.sememe_sum import Pi
from sememekit.layers import gru_scan

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

    The added term stays in h, and where z is small nothing reduces it: in no other cell can |h| grow from step to step. That is
    the published form, in text and code; a lower learning rate keeps it in bounds.
    """

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
    """A second GRU cell reads pi, and its output joins the old one under the reset gate (Eq. (8), Qin et al. 2020).

    h_s = sigmoid(a) tanh(b), one step of a GRU on pi from zero; z, r = sigmoid of maps of x, h and h_s; n = tanh(W x + U (r (h
    + h_s))) as in the text and the released inference code ("paper"), or tanh(W x + U (r h) + U_s (r h_s)) as in the released
    language-model code ("release").
    """

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
