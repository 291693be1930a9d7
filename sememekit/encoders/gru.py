"""Gated recurrent units."""

from __future__ import annotations

from typing import ClassVar, final

from torch import nn

from sememekit.encoders.stack import RecurrentStack


@final
class GRU(RecurrentStack):
    """Gates r, z = sigmoid of linear maps; n = tanh(W x + r (U h + b)); h = (1 - z) n + z h: torch's form of Cho et al. 2014.

    State: (h_1, h_2, ...), each (B, H_l).
    """

    kernel: ClassVar = nn.GRU
    states_per_layer: ClassVar[int] = 1

    class Settings(RecurrentStack.Settings):
        """Settings of the GRU stack."""
