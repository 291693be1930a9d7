"""What the LSTMs inside chunks share, those of the sub-model and of the composition."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sememekit.layers import shared_dropout


@dataclass(frozen=True)
class Inner:
    """Settings of these LSTMs.

    Attributes:
        layers: of each.
        coupled: input gate 1 - f in place of one of its own, as ``LatticeLSTM``.
        dropout: rate on what each layer reads, on its previous output, and on what comes out of the sub-model. Masks last for a
            sentence in the sub-model; in the composition for all windows of a batch that begin (backward: end) with a token.
    """

    layers: int = 1
    coupled: bool = False
    dropout: float = 0.0

    def map(self, size_in: int, size: int, bias: bool = True) -> nn.Linear:
        """A map to the gates of an LSTM, uniform in +-1 / sqrt(size)."""
        layer = nn.Linear(size_in, (3 if self.coupled else 4) * size, bias=bias)
        for parameter in layer.parameters():
            nn.init.uniform_(parameter, -(size**-0.5), size**-0.5)
        return layer

    def gates(self, given: Tensor, axis: int = -1) -> Tensor:
        """[u, f, i, o] where gates are coupled and [u, f, o] are given: 1 - sigmoid(z) = sigmoid(-z)."""
        if not self.coupled:
            return given
        u, f, o = given.chunk(3, dim=axis)
        return torch.cat([u, f, -f, o], dim=axis)

    def masks(self, like: Tensor, rows: int, *sizes: int) -> list[Tensor]:
        return [shared_dropout(like.new_ones(rows, size), self.dropout, True, ()) for size in sizes]


class UpperLayer(nn.Module):
    """A layer above the first: from the outputs of the one below. Windows of one token have nothing recurrent."""

    def __init__(self, size: int, inner: Inner, recurrent: bool) -> None:
        super().__init__()
        self.input = inner.map(size, size)
        self.recurrent = inner.map(size, size, bias=False) if recurrent else None
