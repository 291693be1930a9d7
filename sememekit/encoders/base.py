"""What every encoder promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor, nn

from sememekit.config import Settings
from sememekit.sememes import SememeGraph
from sememekit.text import Vocabulary

State = tuple[Tensor, ...]
"""Recurrent state: tensors whose first axis is the batch, so that beams and lattices can index and select them."""


@dataclass(frozen=True)
class Encoded:
    """What an encoder makes of a sequence.

    Attributes:
        hidden: (T, B, H) outputs of the last layer.
        state: the state after the last step.
        layers: outputs (T, B, H_l) of each layer before dropout, the last one included.
    """

    hidden: Tensor
    state: State
    layers: tuple[Tensor, ...]


@dataclass(frozen=True)
class EncoderResources:
    """What an encoder may be built from: E, the size of the input vectors; the words; and the graph, where there is one."""

    input_size: int
    vocabulary: Vocabulary
    graph: SememeGraph | None = None


class Encoder(nn.Module, ABC):
    """Reads word vectors, and the words themselves, from left to right.

    A subclass nests a frozen ``Settings`` and takes ``(settings, resources)``. Promises, without dropout: ``forward`` equals
    scanning ``step``; two halves with the state carried equal the whole; selecting rows of the state commutes with stepping; a
    batch equals its rows one by one.
    """

    Settings: type[Settings]
    output_size: int
    """H, the size of the contexts that come out."""

    @abstractmethod
    def start(self, batch_size: int) -> State:
        """The state before the first word: zeros on the device of the parameters."""

    @abstractmethod
    def forward(self, x: Tensor, tokens: Tensor, state: State) -> Encoded:
        """Read a sequence: ``x`` (T, B, E) word vectors, ``tokens`` (T, B) word ids, ``state`` from ``start`` or before."""

    def step(self, x: Tensor, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one word. ``x``: (B, E); ``tokens``: (B,). Returns ((B, H), state)."""
        encoded = self(x.unsqueeze(0), tokens.unsqueeze(0), state)
        return encoded.hidden[0], encoded.state
