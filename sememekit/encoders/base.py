"""What every encoder promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from sememekit.config import Settings
from sememekit.encoders.lengths import at_the_end
from sememekit.errors import ConfigError
from sememekit.sememes import SememeGraph
from sememekit.text.vocabulary import Vocabulary

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

    >>> encoder = LSTM(LSTM.Settings(hidden_size=16), EncoderResources(input_size=8, vocabulary=words))
    >>> encoded = encoder(vectors_TBE, target_TB, encoder.start(batch_size=2))
    >>> hidden, state = encoded.hidden, encoded.state

    A subclass nests a frozen ``Settings`` and takes ``(settings, resources)``. Promises, without dropout: ``forward`` equals
    scanning ``step``; two halves with the state carried equal the whole; selecting rows of the state commutes with stepping; a
    batch equals its rows one by one, rows of different lengths included. An encoder that ``reads_ahead`` keeps only the last.
    """

    Settings: type[Settings]
    output_size: int
    """H, the size of the contexts that come out."""
    reads_ahead: ClassVar[bool] = False
    """Whether contexts depend on words to the right: fit for whole sentences, never for predicting the next word."""

    @classmethod
    def needs(cls, settings: Any) -> frozenset[str]:
        """Which optional fields of ``EncoderResources`` these settings ask for: "graph" or nothing."""
        return frozenset()

    def __init__(self, settings: Any, resources: EncoderResources) -> None:
        super().__init__()
        if "graph" in self.needs(settings) and resources.graph is None:
            raise ConfigError(
                f"encoder {type(self).__name__!r} with these settings needs a sememe graph; build one with "
                "'sememekit build-sememe-graph' and give it with --graph FILE"
            )

    @abstractmethod
    def start(self, batch_size: int) -> State:
        """The state before the first word: zeros on the device of the parameters."""

    @abstractmethod
    def forward(self, x: Tensor, tokens: Tensor, state: State, lengths: Tensor | None = None) -> Encoded:
        """Read a sequence.

        Args:
            x: (T, B, E) word vectors.
            tokens: (T, B) word ids, for encoders that look words up themselves (sememes); reordered and cut as ``x`` is.
            state: from ``start``, or of what came before.
            lengths: (B,) int64 on the CPU, how many steps of each row are real, 1 to T; None when all are. Outputs beyond
                the length are zero and the new state is that of the last real step: padding, whatever ids and vectors it
                has, changes nothing.
        """

    def step(self, x: Tensor, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one word. ``x``: (B, E); ``tokens``: (B,). Returns ((B, H), state)."""
        encoded = self(x.unsqueeze(0), tokens.unsqueeze(0), state)
        return encoded.hidden[0], encoded.state

    rehearses: ClassVar[bool] = False
    """Whether nothing in ``project``, ``settle`` and ``read`` is random but the masks that they are given."""
    merges_gates: ClassVar[bool] = False
    """Whether the encoder can step out of a bundle of states, a forget gate for each: ``settle_bundle``, ``read_bundle``."""

    def draw_masks(self, batch_size: int) -> State:
        """Dropout masks (B, ...) that stay the same for whole texts, for ``settle`` and ``read``; none where there are none."""
        return ()

    def project(self, x: Tensor) -> Tensor:
        """All that input vectors (..., E) add whatever the state is: (..., R). The vectors themselves, unless overridden."""
        return x

    def settle(self, state: State, masks: State = ()) -> State:
        """What steps out of a state (B, ...) need, as far as it does not depend on the input. The state, unless overridden."""
        return state

    def read(self, ready: Tensor, tokens: Tensor, settled: State, masks: State = ()) -> tuple[Tensor, State]:
        """Steps out of settled states.

        Args:
            ready: (..., B, R) from ``project``.
            tokens: (..., B) word ids.
            settled: from ``settle``, (..., B, ...) each, with axes of size 1 where many steps leave one state.
            masks: from ``draw_masks``.

        Returns:
            (..., B, H) outputs and the states after, (..., B, ...) each.
        """
        lead = ready.shape[:-1]
        flat = tuple(part.expand(*lead, part.shape[-1]).reshape(-1, part.shape[-1]) for part in settled)
        hidden, state = self.step(ready.reshape(-1, ready.shape[-1]), tokens.reshape(-1), flat)
        return hidden.view(*lead, -1), tuple(part.view(*lead, part.shape[-1]) for part in state)

    def settle_bundle(self, states: State, weights: Tensor, masks: State = ()) -> State:
        """``settle`` for a bundle of states (K, B, ...) with weights (K, B) that sum to one."""
        raise self._no_bundles()

    def read_bundle(self, ready: Tensor, settled: State, masks: State = ()) -> tuple[Tensor, State]:
        """``read`` out of bundles."""
        raise self._no_bundles()

    def _no_bundles(self) -> ConfigError:
        return ConfigError(
            f"encoder {type(self).__name__!r} has no forget gate for each of several states; use --encoder lattice_lstm, or "
            "another way of merging (--set task.state=marginal)"
        )

    def last(self, encoded: Encoded, lengths: Tensor | None = None) -> Tensor:
        """(B, H) the context at which reading ended: of the last real step; with two directions, of the end of each."""
        return at_the_end(encoded.hidden, lengths)
