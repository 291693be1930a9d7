"""Gated recurrent units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, final

from torch import nn

from sememekit.config import OnlyWith
from sememekit.encoders.own_layer import CustomRecurrentLayer
from sememekit.encoders.sememe_gru import Candidate, GateOutput, GRUBefore, GRUCell, GRUGate
from sememekit.encoders.stack import RecurrentStack
from sememekit.errors import ConfigError


@final
class GRU(RecurrentStack):
    """Gates r, z = sigmoid of linear maps; n = tanh(W x + r (U h + b)); h = (1 - z) n + z h: torch's form of Cho et al. 2014.

    >>> encoder = GRU(GRU.Settings(hidden_size=16), EncoderResources(input_size=8, vocabulary=words))
    >>> encoder(vectors_TBE, target_TB, encoder.start(batch_size=2)).hidden.shape
    torch.Size([5, 2, 16])

    With ``reset="before"`` n = tanh(W x + U (r h)), the original form, which Qin et al. 2020 write; their sememe layers have it
    whatever the setting (see ``sememe_gru``). State: (h_1, h_2, ...), each (B, H_l).
    """

    states_per_layer: ClassVar[int] = 1

    class Settings(RecurrentStack.Settings):
        """Settings of the GRU stack."""

        reset: Literal["after", "before"] = "after"
        """Of plain layers: the reset gate acts "after" the matrix as in torch, or "before" it as in the papers."""
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
