"""An LSTM for texts and for the edges of lattices."""

from typing import final

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit import config
from sememekit.encoders.base import ChildSum, Encoded, EncoderResources, State, last_real_step, zero_padding
from sememekit.layers import four_gates, lstm_cell, lstm_scan, shared_dropout, weighted_sum


@final
class LatticeLSTM(ChildSum):
    """Gates i, f, o = sigmoid, u = tanh of linear maps of input and previous output; c = f c + i u; h = o tanh(c).

    >>> encoder = LatticeLSTM(LatticeLSTM.Settings(hidden_size=16), EncoderResources(input_size=8, vocabulary=words))
    >>> part = encoder.state_part(encoder.start(batch_size=2))  # once for all edges that leave a state
    >>> hidden_BH, state = encoder.combine(encoder.input_part(vectors_TBE[0]), target_TB[0], part)

    With ``coupled`` gates i = 1 - f (Greff et al. 2016, as Buckman and Neubig 2018 use them). Since 1 - sigmoid(z) =
    sigmoid(-z), this is the ordinary cell with one matrix for two gates, negated once. Dropout is variational (Gal and
    Ghahramani 2016): one mask a text between layers and one on each layer's previous output, at every step and on every edge.

    Steps from one state share the product of its output with the recurrent matrices (``state_part``), edges the product of
    their vectors with the input matrix (``input_part``). Steps from several states h_k, c_k with weights M_k follow the
    child-sum tree LSTM (Tai et al. 2015) of the released lattice code: gates from h = sum_k M_k h_k, a forget gate for each
    source from its own h_k, c = sum_k M_k f_k c_k + i u, where coupled i is 1 - sum_k M_k f_k.

    State: (h_1, c_1, h_2, c_2, ...), each (B, H)."""

    class Settings(config.Settings):
        hidden_size: int = Field(default=200, ge=1)
        """H, the size of each layer (Section 5.2, Buckman and Neubig 2018)."""
        num_layers: int = Field(default=2, ge=1)
        """Number of layers on top of each other."""
        coupled: bool = False
        """Use 1 - f as the input gate instead of a separate gate."""
        dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate between layers, one mask a text (not on the input, not on the output: those belong to the task)."""
        recurrent_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the previous output of each layer, one mask a text."""

    def __init__(self, settings: Settings, resources: EncoderResources) -> None:
        super().__init__(settings, resources)
        self.settings = settings
        self.output_size = size = settings.hidden_size
        self.state_sizes = [size] * (2 * settings.num_layers)
        gates = 3 if settings.coupled else 4
        sizes = [resources.input_size, *[size] * (settings.num_layers - 1)]
        self.inputs = nn.ModuleList(nn.Linear(size_in, gates * size) for size_in in sizes)
        self.recurrents = nn.ModuleList(nn.Linear(size, gates * size, bias=False) for _ in sizes)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(size**-0.5), size**-0.5)

    def forward(self, x: Tensor, tokens: Tensor, state: State, lengths: Tensor | None = None) -> Encoded:
        layers: list[Tensor] = []
        after: list[Tensor] = []
        masks = self.draw_masks(x.shape[1])
        with torch.autocast(x.device.type, enabled=False):
            x = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
            for number in range(len(self.inputs)):
                if number:
                    x = self._between(x, number, masks)
                before, cell = state[2 * number : 2 * number + 2]
                mask = masks[number] if masks else None
                scanned = lstm_scan(self._input(x, number), self._recurrent(number), before, cell, mask=mask)
                x = zero_padding(scanned[0], lengths)
                after += [last_real_step(part, lengths) for part in scanned]
                layers.append(x)
        return Encoded(hidden=x, state=tuple(after), layers=tuple(layers))

    def draw_masks(self, batch_size: int) -> State:
        """Draw a mask (B, H) on the previous output of each layer, then a mask below each layer but the first."""
        if not self.training or not (self.settings.dropout or self.settings.recurrent_dropout):
            return ()
        ones = next(self.parameters()).new_ones(batch_size, self.output_size)
        layers = len(self.inputs)
        rates = [self.settings.recurrent_dropout] * layers + [self.settings.dropout] * (layers - 1)
        return tuple(shared_dropout(ones, rate, True, ()) for rate in rates)

    def input_part(self, x: Tensor) -> Tensor:
        """Return (..., 4 H) the contribution of the vectors to the gates of the first layer."""
        return self._input(x, 0)

    def state_part(self, state: State, masks: State = ()) -> State:
        """Return for each layer the contribution of its output to the gates (B, 4 H), and its cell state (B, H)."""
        part: list[Tensor] = []
        for number in range(len(self.inputs)):
            part += [self._from_output(state[2 * number], number, masks), state[2 * number + 1]]
        return tuple(part)

    def combine(self, input_part: Tensor, tokens: Tensor, state_part: State, masks: State = ()) -> tuple[Tensor, State]:
        state: list[Tensor] = []
        hidden = input_part
        for number in range(len(self.inputs)):
            added = self._input(self._between(hidden, number, masks), number) if number else input_part
            hidden, cell = lstm_cell(added, *state_part[2 * number : 2 * number + 2])
            state += [hidden, cell]
        return hidden, tuple(state)

    def child_sum_part(self, states: State, weights: Tensor, masks: State = ()) -> State:
        """Return for each layer the contributions of the mean output to the gates (B, 4 H) and of each output to its forget
        gate (B, K H), and the weighted cell states (B, K H); last the weights (B, K)."""
        part: list[Tensor] = []
        size = self.output_size
        for number in range(len(self.inputs)):
            hidden, cell = states[2 * number : 2 * number + 2]
            mean = weighted_sum(weights.unsqueeze(0), hidden)
            seen = hidden * masks[number] if masks else hidden
            forget = functional.linear(seen, self._recurrent(number)[size : 2 * size])
            part += [
                self._from_output(mean, number, masks),
                forget.transpose(0, 1).flatten(1),
                (weights.unsqueeze(-1) * cell).transpose(0, 1).flatten(1),
            ]
        return (*part, weights.transpose(0, 1))

    def child_sum_combine(self, input_part: Tensor, state_part: State, masks: State = ()) -> tuple[Tensor, State]:
        state: list[Tensor] = []
        hidden, size = input_part, self.output_size
        weights = state_part[-1].unsqueeze(-1)
        for number in range(len(self.inputs)):
            added = self._input(self._between(hidden, number, masks), number) if number else input_part
            from_output, forget, cells = state_part[3 * number : 3 * number + 3]
            u, _, i, o = (added + from_output).split(size, dim=-1)
            from_input = added[..., size : 2 * size].unsqueeze(-2)
            forgets = torch.sigmoid(from_input + forget.unflatten(-1, (-1, size)))  # (..., B, K, H)
            kept = (forgets * cells.unflatten(-1, (-1, size))).sum(-2)  # (..., B, H)
            gate = 1 - (weights * forgets).sum(-2) if self.settings.coupled else torch.sigmoid(i)
            cell = kept + gate * torch.tanh(u)
            hidden = torch.sigmoid(o) * torch.tanh(cell)
            state += [hidden, cell]
        return hidden, tuple(state)

    def _input(self, x: Tensor, number: int) -> Tensor:
        layer = self.inputs[number]
        assert isinstance(layer, nn.Linear)
        return four_gates(layer(x), self.settings.coupled)

    def _recurrent(self, number: int) -> Tensor:
        layer = self.recurrents[number]
        assert isinstance(layer, nn.Linear)
        return four_gates(layer.weight, self.settings.coupled, 0)

    def _from_output(self, hidden: Tensor, number: int, masks: State) -> Tensor:
        return functional.linear(hidden * masks[number] if masks else hidden, self._recurrent(number))

    def _between(self, x: Tensor, number: int, masks: State) -> Tensor:
        return x * masks[len(self.inputs) + number - 1] if masks else x
