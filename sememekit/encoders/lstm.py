"""Long short-term memory."""

from __future__ import annotations

from typing import ClassVar, final

from torch import nn

from sememekit.encoders.own_layer import CustomRecurrentLayer
from sememekit.encoders.sememe_lstm import LSTMCell, LSTMGate
from sememekit.encoders.stack import RecurrentStack


@final
class LSTM(RecurrentStack):
    """Gates i, f, o = sigmoid of linear maps of input and previous output; c = f c + i tanh(candidate); h = o tanh(c).

    >>> encoder = LSTM(LSTM.Settings(hidden_size=16), EncoderResources(input_size=8, vocabulary=words))
    >>> encoder(vectors_TBE, target_TB, encoder.start(batch_size=2)).hidden.shape
    torch.Size([5, 2, 16])

    Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000, as torch computes it; forget bias 0. Sememes enter
    as in Qin et al. 2020 (see ``sememe_lstm``). State: (h_1, c_1, h_2, c_2, ...), each (B, H_l).
    """

    states_per_layer: ClassVar[int] = 2

    class Settings(RecurrentStack.Settings):
        """Settings of the LSTM stack."""

    @staticmethod
    def plain_layer(settings: Settings, size_in: int, size_out: int) -> nn.Module:
        return nn.LSTM(size_in, size_out)

    @staticmethod
    def sememe_layer(settings: Settings, size_in: int, sememe_size: int, size_out: int) -> CustomRecurrentLayer:
        kind = {"gate": LSTMGate, "cell": LSTMCell}[settings.injection]
        return kind(size_in, sememe_size, size_out)
