"""A stack of recurrent layers of one kind with dropout in between."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit import config
from sememekit.encoders.base import Encoded, Encoder, EncoderResources, State


class RecurrentStack(Encoder):
    """Layers of torch's own recurrent kernel, one module a layer, so that dropout between layers is ours and repeatable.

    The state holds the tensors of the first layer, then those of the second, and so on, each (B, H_l).
    """

    kernel: ClassVar[type[nn.LSTM] | type[nn.GRU]]
    states_per_layer: ClassVar[int]

    class Settings(config.Settings):
        """Settings of a recurrent stack."""

        hidden_size: int = Field(default=650, ge=1)
        """Size of each layer; 650 is the "medium" and 1500 the "large" model of the word language-model tradition."""
        num_layers: int = Field(default=2, ge=1)
        """How many layers."""
        output_size: int | None = Field(default=None, ge=1)
        """Size of the last layer, where it differs from ``hidden_size``: a tied output layer wants the embedding's."""
        dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate between layers (not on the input, not on the output: those belong to the task)."""

    def __init__(self, settings: Settings, resources: EncoderResources) -> None:
        super().__init__(settings, resources)
        self.dropout = settings.dropout
        self.output_size = settings.output_size or settings.hidden_size
        sizes = [resources.input_size, *[settings.hidden_size] * (settings.num_layers - 1), self.output_size]
        self.stack = nn.ModuleList(self.kernel(size_in, size_out) for size_in, size_out in pairwise(sizes))
        self._sizes = sizes[1:]

    def start(self, batch_size: int) -> State:
        """See ``Encoder.start``."""
        like = next(self.parameters())
        return tuple(like.new_zeros(batch_size, size) for size in self._sizes for _ in range(self.states_per_layer))

    def forward(self, x: Tensor, tokens: Tensor, state: State, lengths: Tensor | None = None) -> Encoded:
        """See ``Encoder.forward``; the words themselves are not looked at."""
        layers: list[Tensor] = []
        new_state: list[Tensor] = []
        for number, layer in enumerate(self.stack):
            if number:
                x = functional.dropout(x, self.dropout, self.training)
            own = state[number * self.states_per_layer : (number + 1) * self.states_per_layer]
            with torch.autocast(x.device.type, enabled=False):
                x, after = run_kernel(layer, x.float() if x.dtype in (torch.bfloat16, torch.float16) else x, own, lengths)
            new_state += after
            layers.append(x)
        return Encoded(hidden=x, state=tuple(new_state), layers=tuple(layers))


def run_kernel(layer: nn.Module, x: Tensor, own: State, lengths: Tensor | None) -> tuple[Tensor, State]:
    """Run one of torch's recurrent modules over ``x`` (T, B, E): its outputs (T, B, H), and its state as tensors (B, H)."""
    with_layer_axis = tuple(part.unsqueeze(0) for part in own)
    before = with_layer_axis if len(own) > 1 else with_layer_axis[0]
    if lengths is None:
        hidden, after = layer(x, before)
    else:
        packed, after = layer(nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), enforce_sorted=False), before)
        hidden, _ = nn.utils.rnn.pad_packed_sequence(packed, total_length=len(x))
    return hidden, tuple(part.squeeze(0) for part in (after if isinstance(after, tuple) else (after,)))
