"""Two stacks of one kind, one from left to right and one from right to left."""

from collections.abc import Mapping
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from sememekit import config
from sememekit.config import OnlyWith
from sememekit.encoders.base import Encoded, Encoder, EncoderResources, State, last_real_step, reorder, reversal
from sememekit.encoders.gru import GRU, GRUCell
from sememekit.encoders.lstm import LSTM, LSTMCell
from sememekit.encoders.sememe_sum import Pi
from sememekit.encoders.stack import RecurrentStack
from sememekit.errors import ConfigError


class SharedSettings(config.Settings):
    """Settings that both directions share."""

    shared_sememes: bool = True
    """True if both directions use the same sememe vectors and, with injection "cell", the same second cell."""

    only_with: ClassVar[Mapping[str, OnlyWith]] = {"shared_sememes": OnlyWith("injection", other_than=("none",))}


class Bidirectional(Encoder):
    """A forward and a backward stack with concatenated outputs (Eq. (3), Qin et al. 2020).

    The backward stack reads the vectors and words of each row from the last real step to the first. The stacks have separate
    recurrent layers and meet above the last layer. They share the sememe vectors and the second cell of injection "cell", as in
    the text and the released code, unless ``shared_sememes=False``. If shared, pi is computed once, with one dropout mask on
    the sememe matrix. Settings describe one stack; hidden states are twice as wide. State: of the forward stack, then of the
    backward stack."""

    direction_class: ClassVar[type[RecurrentStack]]
    reads_ahead: ClassVar[bool] = True

    @classmethod
    def needs(cls, settings: Any) -> frozenset[str]:
        return cls.direction_class.needs(settings)

    def __init__(self, settings: Any, resources: EncoderResources) -> None:
        super().__init__(settings, resources)
        self.forth = self.direction_class(settings, resources)
        self.back = self.direction_class(settings, resources)
        self.output_size = 2 * self.forth.output_size
        self.state_sizes = [*self.forth.state_sizes, *self.back.state_sizes]
        self.shared_sememes = settings.shared_sememes and self.forth.sememes is not None
        if self.shared_sememes:
            self.back.sememes = self.forth.sememes
            first, other = self.forth.stack[0], self.back.stack[0]
            if isinstance(first, LSTMCell | GRUCell):
                other.sememe_cell = first.sememe_cell

    def forward(self, x: Tensor, tokens: Tensor, state: State, lengths: Tensor | None = None, pi: Pi | None = None) -> Encoded:
        """Read a sequence; the backward half of ``state`` starts at the right end. A shared pi of (T, B) may be given."""
        if pi is None and self.shared_sememes:
            pi = self.forth.sum_sememes(tokens)
        order = reversal(len(x), lengths, x.shape[1], x.device)
        half = len(state) // 2
        reordered = None if pi is None else Pi(pi.rows, reorder(pi.where, order))
        forth = self.forth(x, tokens, state[:half], lengths, pi)
        back = self.back(reorder(x, order), reorder(tokens, order), state[half:], lengths, reordered)
        # (T, B, 2 H) of each layer
        layers = [torch.cat([one, reorder(other, order)], dim=-1) for one, other in zip(forth.layers, back.layers, strict=True)]
        return Encoded(hidden=layers[-1], state=(*forth.state, *back.state), layers=tuple(layers))

    def step(self, x: Tensor, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        raise ConfigError(f"encoder {type(self).__name__!r} reads whole sentences and cannot go word by word")

    def last(self, encoded: Encoded, lengths: Tensor | None = None) -> Tensor:
        """Join the output of the forward stack at the last word and the output of the backward stack at the first word."""
        half = self.output_size // 2
        return torch.cat([last_real_step(encoded.hidden[..., :half], lengths), encoded.hidden[0, :, half:]], dim=-1)


@final
class BiLSTM(Bidirectional):
    """A stack of LSTM layers for each direction.

    >>> encoder = BiLSTM(BiLSTM.Settings(hidden_size=16), EncoderResources(input_size=8, vocabulary=words))
    >>> encoder(vectors_TBE, target_TB, encoder.start(batch_size=2)).hidden.shape
    torch.Size([5, 2, 32])"""

    direction_class: ClassVar[type[RecurrentStack]] = LSTM

    class Settings(LSTM.Settings, SharedSettings):
        """Settings of each LSTM stack, and of the shared parts."""


@final
class BiGRU(Bidirectional):
    """A stack of GRU layers for each direction.

    Used in the same way as ``BiLSTM``."""

    direction_class: ClassVar[type[RecurrentStack]] = GRU

    class Settings(GRU.Settings, SharedSettings):
        """Settings of each GRU stack, and of the shared parts."""
