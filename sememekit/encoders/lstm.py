"""Long short-term memory."""

from __future__ import annotations

from typing import ClassVar, final

from torch import nn

from sememekit.encoders.stack import RecurrentStack


@final
class LSTM(RecurrentStack):
    """Gates i, f, o = sigmoid of linear maps of input and previous output; c = f c + i tanh(candidate); h = o tanh(c).

    Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000, as torch computes it; forget bias 0.
    State: (h_1, c_1, h_2, c_2, ...), each (B, H_l).
    """

    kernel: ClassVar = nn.LSTM
    states_per_layer: ClassVar[int] = 2

    class Settings(RecurrentStack.Settings):
        """Settings of the LSTM stack."""
