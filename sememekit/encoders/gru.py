"""Gated recurrent units, with the reset gate before or after the matrix, and with the sememes of a word (Qin et al. 2020).

h' = (1 - z) h + z n: z weighs the new state in the layers with the gate before the matrix, while torch's z weighs the old
state.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal, final

import torch
from torch import Tensor, nn

from sememekit.config import OnlyWith
from sememekit.encoders.base import State
from sememekit.encoders.sememe_sum import CustomRecurrentLayer, Pi
from sememekit.encoders.stack import RecurrentStack
from sememekit.errors import ConfigError
from sememekit.layers.gru_scan import gru_scan

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

    The added term stays in h, and with a small z nothing reduces it: unlike in other cells, |h| can grow from step to step.
    This is the published form, in text and code; a lower learning rate keeps h bounded.
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
    """A second GRU cell reads pi, and its output is added to the previous output under the reset gate (Eq. (8), Qin et al.
    2020).

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


@final
class GRU(RecurrentStack):
    """Gates r, z = sigmoid of linear maps; n = tanh(W x + r (U h + b)); h = (1 - z) n + z h: torch's form of Cho et al. 2014.

    >>> encoder = GRU(GRU.Settings(hidden_size=16), EncoderResources(input_size=8, vocabulary=words))
    >>> encoder(vectors_TBE, target_TB, encoder.start(batch_size=2)).hidden.shape
    torch.Size([5, 2, 16])

    With ``reset="before"`` n = tanh(W x + U (r h)), the original form, as in Qin et al. 2020; the sememe layers always have it
    (see above). State: (h_1, h_2, ...), each (B, H_l).
    """

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
