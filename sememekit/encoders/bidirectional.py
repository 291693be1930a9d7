"""Two encoders of one kind, one from left to right and one from right to left."""

from __future__ import annotations

from typing import Any, ClassVar, final

import torch
from torch import Tensor

from sememekit.encoders.base import Encoded, Encoder, EncoderResources, State
from sememekit.encoders.gru import GRU
from sememekit.encoders.lengths import at_the_end, reorder, reversal
from sememekit.encoders.lstm import LSTM
from sememekit.errors import ConfigError


class Bidirectional(Encoder):
    """[outputs of a stack that reads forward; outputs of one that reads backward] (Eq. (3), Qin et al. 2020).

    The backward stack is given each row from its last real step to its first: vectors and words in the same order. Both are
    whole stacks; they meet above the last layer only. Settings are those of one stack, and contexts are twice as wide.
    State: that of the forward stack, then that of the backward one.
    """

    one_way: ClassVar[type[Encoder]]
    reads_ahead: ClassVar[bool] = True

    @classmethod
    def needs(cls, settings: Any) -> frozenset[str]:
        """See ``Encoder.needs``."""
        return cls.one_way.needs(settings)

    def __init__(self, settings: Any, resources: EncoderResources) -> None:
        super().__init__(settings, resources)
        self.forth = self.one_way(settings, resources)
        self.back = self.one_way(settings, resources)
        self.output_size = 2 * self.forth.output_size

    def start(self, batch_size: int) -> State:
        """See ``Encoder.start``."""
        return (*self.forth.start(batch_size), *self.back.start(batch_size))

    def forward(self, x: Tensor, tokens: Tensor, state: State, lengths: Tensor | None = None) -> Encoded:
        """See ``Encoder.forward``. The backward half of ``state`` is where reading begins at the right end."""
        order = reversal(len(x), lengths, x.shape[1], x.device)
        half = len(state) // 2
        forth = self.forth(x, tokens, state[:half], lengths)
        back = self.back(reorder(x, order), reorder(tokens, order), state[half:], lengths)
        layers = [torch.cat([one, reorder(other, order)], dim=-1) for one, other in zip(forth.layers, back.layers, strict=True)]
        return Encoded(hidden=layers[-1], state=(*forth.state, *back.state), layers=tuple(layers))

    def step(self, x: Tensor, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """There is none.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"encoder {type(self).__name__!r} reads whole sentences and cannot go word by word")

    def last(self, encoded: Encoded, lengths: Tensor | None = None) -> Tensor:
        """See ``Encoder.last``: the last output of the forward stack beside that of the backward one, at the first word."""
        half = self.output_size // 2
        return torch.cat([at_the_end(encoded.hidden[..., :half], lengths), encoded.hidden[0, :, half:]], dim=-1)


@final
class BiLSTM(Bidirectional):
    """See ``Bidirectional`` and ``LSTM``."""

    one_way: ClassVar[type[Encoder]] = LSTM

    class Settings(LSTM.Settings):
        """Settings of each LSTM stack."""


@final
class BiGRU(Bidirectional):
    """See ``Bidirectional`` and ``GRU``."""

    one_way: ClassVar[type[Encoder]] = GRU

    class Settings(GRU.Settings):
        """Settings of each GRU stack."""
