"""Long short-term memory, and its layers with the sememes of a word: the output gate and the second cell of Qin et al. 2020."""

from typing import final

import torch
from torch import Tensor, nn

from sememekit.encoders.base import State
from sememekit.encoders.sememe_sum import CustomRecurrentLayer, Pi
from sememekit.encoders.stack import RecurrentStack
from sememekit.layers import lstm_scan


@final
class LSTM(RecurrentStack):
    """Gates i, f, o = sigmoid of linear maps of input and previous output; c = f c + i tanh(candidate); h = o tanh(c).

    >>> encoder = LSTM(LSTM.Settings(hidden_size=16), EncoderResources(input_size=8, vocabulary=words))
    >>> encoder(vectors_TBE, target_TB, encoder.start(batch_size=2)).hidden.shape
    torch.Size([5, 2, 16])

    Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000, as torch computes it; forget bias 0. Sememes enter
    as in Qin et al. 2020 (see below). State: (h_1, c_1, h_2, c_2, ...), each (B, H_l)."""

    @staticmethod
    def plain_layer(settings: RecurrentStack.Settings, size_in: int, size_out: int) -> nn.Module:
        return nn.LSTM(size_in, size_out)

    @staticmethod
    def sememe_layer(settings: RecurrentStack.Settings, size_in: int, sememe_size: int, size_out: int) -> CustomRecurrentLayer:
        kind = {"gate": LSTMGate, "cell": LSTMCell}[settings.injection]
        return kind(size_in, sememe_size, size_out)


@final
class LSTMGate(CustomRecurrentLayer):
    """A gate for the sememes in the output (Eq. (5), Qin et al. 2020).

    f, i, o, o_s = sigmoid of maps of x, h and pi; u = tanh of maps of x and h only; c = f c + i u; h = o tanh(c) + o_s tanh(W
    pi + b). W is not the matrix of u, although the text names both W; the released code has two."""

    def __init__(self, input_size: int, sememe_size: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.input = nn.Linear(input_size, 5 * size)  # u, f, i, o, o_s
        self.recurrent = nn.Linear(size, 5 * size)  # u, f, i, o, o_s
        self.sememes = nn.Linear(sememe_size, 4 * size)  # f, i, o, o_s
        self.output = nn.Linear(sememe_size, size)

    def forward(self, x: Tensor, pi: Pi, state: State) -> State:
        hidden, cell = state
        ready_TBG = self.input(x) + self.recurrent.bias
        ready_TBG[..., self.size :] += pi.to_positions(self.sememes(pi.rows))
        output_TBH = pi.to_positions(torch.tanh(self.output(pi.rows)))
        return lstm_scan(ready_TBG, self.recurrent.weight, hidden, cell, output=output_TBH)


@final
class LSTMCell(CustomRecurrentLayer):
    """A second LSTM cell reads pi, and its cell state enters through a separate forget gate (Eq. (7), Qin et al. 2020).

    c_s, h_s result from one LSTM step on pi from a zero state, which needs no forget gate and no recurrence. f = sigmoid of
    maps of x and h; f_s of x and h_s; i, o, u of x, h and h_s; c = f c + f_s c_s + i u; h = o tanh(c). Only f c and the maps of
    h depend on the previous step; all else is computed for the whole sequence at once."""

    def __init__(self, input_size: int, sememe_size: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.sememe_cell = nn.Linear(sememe_size, 3 * size)  # u, i, o of the second cell
        self.input = nn.Linear(input_size, 5 * size)  # u, f, i, o, f_s
        self.recurrent = nn.Linear(size, 4 * size)  # u, f, i, o
        self.sememes = nn.Linear(size, 4 * size)  # i, o, f_s, u, from h_s

    def forward(self, x: Tensor, pi: Pi, state: State) -> State:
        size = self.size
        hidden, cell = state
        own_NG = self.sememe_cell(pi.rows)
        sememe_cell_NH = torch.tanh(own_NG[..., :size]) * torch.sigmoid(own_NG[..., size : 2 * size])
        sememe_hidden_NH = torch.sigmoid(own_NG[..., 2 * size :]) * torch.tanh(sememe_cell_NH)
        from_input_TBG = self.input(x)
        from_sememes_TBG = pi.to_positions(self.sememes(sememe_hidden_NH))
        ready_TBG = from_input_TBG[..., : 4 * size] + self.recurrent.bias
        ready_TBG[..., 2 * size :] += from_sememes_TBG[..., : 2 * size]
        ready_TBG[..., :size] += from_sememes_TBG[..., 3 * size :]
        forget_TBH = torch.sigmoid(from_input_TBG[..., 4 * size :] + from_sememes_TBG[..., 2 * size : 3 * size])
        return lstm_scan(ready_TBG, self.recurrent.weight, hidden, cell, added=forget_TBH * pi.to_positions(sememe_cell_NH))
