"""The AWD-LSTM stack of Merity et al. 2018: dropped recurrent weights, and dropout masks that are constant over time."""

from itertools import pairwise
from typing import final

import torch
from pydantic import Field
from torch import Tensor, nn

from sememekit import config
from sememekit.encoders.base import Encoded, Encoder, EncoderResources, State
from sememekit.encoders.stack import run_layer
from sememekit.layers import WeightDropped, product_dtype, shared_dropout


@final
class AWDLSTM(Encoder):
    """LSTM layers with weight drop inside and locked dropout in between (Merity et al. 2018).

    >>> encoder = AWDLSTM(AWDLSTM.Settings(hidden_size=16, weight_drop=0.5), EncoderResources(input_size=8, vocabulary=words))
    >>> encoder(vectors_TBE, target_TB, encoder.start(batch_size=2)).hidden.shape
    torch.Size([5, 2, 8])

    Inside a layer, elements of the hidden-to-hidden matrix are dropped: one mask for each call of ``forward``, the same for all
    steps. Between layers there is one mask for each sequence and coordinate, the same for all steps. Evaluation has no dropout.
    Dropout of the input, of the output and of whole words, and the penalties on activations belong to the task, which sees
    words and losses. Weights start as torch's: uniform in +-1 / sqrt(H).

    State: (h_1, c_1, h_2, c_2, ...), each (B, H_l)."""

    class Settings(config.Settings):
        """Settings of the AWD-LSTM. Default sizes: Penn Treebank in the public code; default rates: 0.

        The published rates belong together with the published rates of the task: see the recipe ``mixture/ptb-awd``."""

        hidden_size: int = Field(default=1150, ge=1)
        """Size of each layer but the last."""
        num_layers: int = Field(default=3, ge=1)
        """Number of layers on top of each other."""
        output_size: int | None = Field(default=None, ge=1)
        """Size of the last layer (default: of the word vectors, which a tied output layer needs)."""
        dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate between layers (``dropouth`` of the public code), one mask for all steps; 0.25 there."""
        weight_drop: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the elements of each hidden-to-hidden matrix (``wdrop`` of the public code, 0.5 there)."""

    def __init__(self, settings: Settings, resources: EncoderResources) -> None:
        super().__init__(settings, resources)
        self.dropout, self.weight_drop = settings.dropout, settings.weight_drop
        self.output_size = settings.output_size or resources.input_size
        sizes = [resources.input_size, *[settings.hidden_size] * (settings.num_layers - 1), self.output_size]
        self._layers = [nn.LSTM(size_in, size_out) for size_in, size_out in pairwise(sizes)]
        self.stack = nn.ModuleList(self._layers)
        self.state_sizes = [size for size in sizes[1:] for _ in range(2)]

    def forward(self, x: Tensor, tokens: Tensor, state: State, lengths: Tensor | None = None) -> Encoded:
        layers: list[Tensor] = []  # (T, B, H_l) each
        new_state: list[Tensor] = []
        drops = self.training and self.weight_drop > 0.0
        weight = next(self.parameters())
        dtype = product_dtype(weight)
        for number, lstm in enumerate(self._layers):
            if number:
                x = shared_dropout(x, self.dropout, self.training, shared=(0,))
            own = state[2 * number : 2 * number + 2]
            with torch.autocast(x.device.type, enabled=False):
                x = x.to(weight.dtype)  # autocast may have lowered it
                layer = WeightDropped(lstm, self.weight_drop) if drops else lstm
                x, after = run_layer(layer, x, own, lengths, dtype)
            new_state += after
            layers.append(x)
        return Encoded(hidden=x, state=tuple(new_state), layers=tuple(layers))
