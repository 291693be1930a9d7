"""The Mogrifier LSTM: input and previous output gate each other alternately before each step."""

from collections.abc import Mapping
from itertools import count
from typing import Any, ClassVar, Literal, final

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit.config import OnlyWith
from sememekit.encoders.base import EncoderResources, State
from sememekit.encoders.sememe_sum import CustomRecurrentLayer
from sememekit.encoders.stack import RecurrentStack
from sememekit.errors import ConfigError
from sememekit.layers import shared_dropout
from sememekit.layers.mogrifier_scan import GateMap, mogrifier_scan


@final
class MogrifierLayer(CustomRecurrentLayer):
    """One layer (Eq. (1), (2), Melis et al. 2020).

    x^i = 2 sigmoid(Q^i h^(i-1) + b^i) x^(i-2) for i = 1, 3, ..; h^i = 2 sigmoid(R^i x^(i-1) + b^i) h^(i-2) for i = 2, 4, ..;
    up to ``num_rounds``, with x^-1 the input and h^0 the previous output. The last x and the last h are the input and the
    previous output of an LSTM; without rounds it is an LSTM. Q and R are products of two maps where there is a ``rank``. The
    equations have no b; the public code has.

    >>> layer = MogrifierLayer(size_in=8, size=16, num_rounds=5, rank=4, recurrent_dropout=0.0, weight_drop=0.0)
    >>> hidden_TBH, cell_TBH = layer(x_TBE, None, (h_BH, c_BH))"""

    def __init__(
        self, size_in: int, size: int, num_rounds: int, rank: int | None, recurrent_dropout: float, weight_drop: float
    ) -> None:
        super().__init__()
        self.size, self.recurrent_dropout, self.weight_drop = size, recurrent_dropout, weight_drop
        self.input = nn.Linear(size_in, 4 * size)
        """The map from the input to u, f, i, o."""
        self.recurrent = nn.Linear(size, 4 * size, bias=False)
        """The map from the previous output to u, f, i, o."""
        sizes = [(size, size_in) if number % 2 else (size_in, size) for number in range(1, num_rounds + 1)]
        self.ups = nn.ModuleList(nn.Linear(rank or source, target) for source, target in sizes)
        """Q^1, R^2, Q^3, .., or their left factors, with their biases."""
        self.downs = nn.ModuleList(nn.Linear(source, rank, bias=False) for source, _ in sizes if rank)
        """The right factors."""

    def start_low_ranks(self) -> None:
        """Draw the factors so that products have the variance 1 / fan-in, as in the public code; set biases to 0.

        The initialisation of the other maps, applied to each factor, would make the products near 0 and the layer an LSTM."""
        for up, down in zip(self.ups, self.downs, strict=False):
            assert isinstance(up, nn.Linear)
            assert isinstance(down, nn.Linear)
            deviation = (down.in_features * down.out_features) ** -0.25
            nn.init.normal_(up.weight, 0.0, deviation)
            nn.init.normal_(down.weight, 0.0, deviation)
            nn.init.zeros_(up.bias)

    def draw_mask(self, batch_size: int) -> Tensor | None:
        """(B, H) mask of the previous output; None where nothing is dropped."""
        ones = self.recurrent.weight.new_ones(batch_size, self.size)
        return shared_dropout(ones, self.recurrent_dropout, True, ()) if self.training and self.recurrent_dropout else None

    def forward(self, x: Tensor, pi: None, state: State) -> State:
        hidden, cell = state
        weights = self.input.weight, self._recurrent(), self.input.bias
        return mogrifier_scan(x, *weights, self._rounds(), hidden, cell, self.draw_mask(x.shape[1]))

    def first_gate(self, hidden: Tensor) -> Tensor:
        """Return (..., E) 2 sigmoid(Q^1 h + b^1), the gate of the input by the state; ones without rounds."""
        rounds = self._rounds()
        return 2.0 * _sums(rounds[0], hidden).sigmoid() if rounds else hidden.new_ones(1)

    def step(self, x: Tensor, first_gate: Tensor, hidden: Tensor, cell: Tensor) -> State:
        """Return output and cell state (..., H) after a step on x (..., E) from h, c (..., H), which may broadcast."""
        pair = [x * first_gate, hidden]
        for number, each in zip(count(1), self._rounds()[1:], strict=False):
            target = number % 2
            pair[target] = 2.0 * _sums(each, pair[1 - target]).sigmoid() * pair[target]
        u, f, i, o = (self.input(pair[0]) + functional.linear(pair[1], self._recurrent())).split(self.size, dim=-1)
        new_cell = f.sigmoid() * cell + i.sigmoid() * u.tanh()
        return o.sigmoid() * new_cell.tanh(), new_cell

    def _recurrent(self) -> Tensor:
        return functional.dropout(self.recurrent.weight, self.weight_drop, self.training)

    def _rounds(self) -> list[GateMap]:
        downs: list[Any] = list(self.downs) or [None] * len(self.ups)
        ups: list[Any] = list(self.ups)
        return [GateMap(up.bias, up.weight, down and down.weight) for up, down in zip(ups, downs, strict=True)]


def _sums(each: GateMap, source: Tensor) -> Tensor:
    return functional.linear(source if each.down is None else functional.linear(source, each.down), each.up, each.bias)


@final
class Mogrifier(RecurrentStack):
    """LSTM layers in which input and previous output gate each other (Melis et al. 2020, "Mogrifier LSTM").

    >>> encoder = Mogrifier(Mogrifier.Settings(hidden_size=16), EncoderResources(input_size=8, vocabulary=words))
    >>> encoded = encoder(vectors_TBE, target_TB, encoder.start(batch_size=2))
    >>> hidden, state = encoded.hidden, encoded.state

    See ``MogrifierLayer``. Its dropout follows the public code: ``recurrent_dropout`` on the previous output before the
    rounds, one mask for all steps of a segment, and ``dropout`` between layers, drawn for each step. Sememes may stand beside
    the input (injection "concat"). The published best models also cap the input gate at 1 - f and sum the outputs of all
    layers; both are not implemented.

    In a lattice, Q^1 h is computed once for each state, and all else for each edge, since later rounds depend on state and
    edge. State: (h_1, c_1, h_2, c_2, ...), each (B, H_l)."""

    class Settings(RecurrentStack.Settings):
        rounds: int = Field(default=5, ge=0)
        """Number of gatings, the input first; 5 in the public model of Penn Treebank, 0 is an LSTM."""
        rank: int | None = Field(default=None, ge=1)
        """Rank of the gating maps, as products of two; unset, the maps are full. 84 in the public code on Penn Treebank."""
        recurrent_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the previous output of each layer before it is gated, one mask for all steps of a segment."""
        weight_drop: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the elements of each hidden-to-hidden matrix, as in ``awd_lstm``; one mask for each call."""
        injection: Literal["none", "concat"] = "none"
        """Injection of sememes into the first layer: "none", or "concat", which needs a graph."""

        only_with: ClassVar[Mapping[str, OnlyWith]] = {"rank": OnlyWith("rounds", other_than=(0,))}

    def __init__(self, settings: Settings, resources: EncoderResources) -> None:
        super().__init__(settings, resources)
        for layer in self._layers():
            layer.start_low_ranks()

    @staticmethod
    def plain_layer(settings: Settings, size_in: int, size_out: int) -> nn.Module:
        rates = settings.recurrent_dropout, settings.weight_drop
        return MogrifierLayer(size_in, size_out, settings.rounds, settings.rank, *rates)

    @staticmethod
    def sememe_layer(settings: Settings, size_in: int, sememe_size: int, size_out: int) -> CustomRecurrentLayer:
        raise ConfigError(f"encoder 'mogrifier': unknown injection {settings.injection!r}; allowed: none, concat")

    def draw_masks(self, batch_size: int) -> State:
        """A mask (B, H_l) on the previous output of each layer."""
        masks = [layer.draw_mask(batch_size) for layer in self._layers()]
        return tuple(mask for mask in masks if mask is not None)

    def state_part(self, state: State, masks: State = ()) -> State:
        """Return for each layer its previous output (B, H_l), the gate of the first round, and the cell state."""
        part: list[Tensor] = []
        for number, layer in enumerate(self._layers()):
            hidden = state[2 * number] * masks[number] if masks else state[2 * number]
            part += [layer.first_gate(hidden), hidden, state[2 * number + 1]]
        return tuple(part)

    def combine(self, input_part: Tensor, tokens: Tensor, state_part: State, masks: State = ()) -> tuple[Tensor, State]:
        hidden, state = input_part, list[Tensor]()
        if self.injection == "concat":
            pi = self.sum_sememes(tokens)
            assert pi is not None
            hidden = torch.cat([hidden, pi.to_positions(pi.rows)], dim=-1)
        for number, layer in enumerate(self._layers()):
            if number:
                hidden = functional.dropout(hidden, self.dropout, self.training)
            hidden, cell = layer.step(hidden, *state_part[3 * number : 3 * number + 3])
            state += [hidden, cell]
        return hidden, tuple(state)

    def _layers(self) -> list[MogrifierLayer]:
        return [layer for layer in self.stack if isinstance(layer, MogrifierLayer)]
