"""The base class of encoders and its contract; padding of a batch with rows of different lengths."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from sememekit.config import Settings, name_of
from sememekit.data.prepared import PreparedData
from sememekit.encoders import ENCODERS
from sememekit.errors import ConfigError
from sememekit.sememes import SememeGraph
from sememekit.text.vocabulary import Vocabulary

State = tuple[Tensor, ...]  # recurrent state: tensors with the batch as first axis, so that beams and lattices can index them


@dataclass(frozen=True)
class Encoded:
    """The output of an encoder for a sequence."""

    hidden: Tensor
    """(T, B, H) outputs of the last layer."""
    state: State
    """The state after the last step."""
    layers: tuple[Tensor, ...]
    """Outputs (T, B, H_l) of each layer before dropout, the last one included."""


class EncoderResources(NamedTuple):
    """Resources of an encoder: E, the size of the input vectors; the words; the graph, if any; and the bytes, if any, that
    ``FromFiles.keep`` returned when the run began."""

    input_size: int
    vocabulary: Vocabulary
    graph: SememeGraph | None = None
    kept: bytes | None = None


class Encoder(nn.Module, ABC):
    """A recurrent reader of word vectors and words, from left to right.

    >>> encoder = LSTM(LSTM.Settings(hidden_size=16), EncoderResources(input_size=8, vocabulary=words))
    >>> encoded = encoder(vectors_TBE, target_TB, encoder.start(batch_size=2))
    >>> hidden, state = encoded.hidden, encoded.state

    A subclass nests a frozen ``Settings`` and takes ``(settings, resources)``. Contract, without dropout: ``forward`` equals
    scanning ``step``; two halves with the state carried equal the whole; selecting rows of the state commutes with stepping; a
    batch equals its rows one by one, also with different lengths. An encoder that ``reads_ahead`` fulfils only the last."""

    Settings: type[Settings]
    output_size: int
    """H, the size of the hidden states."""
    state_sizes: Sequence[int]
    """Sizes of the tensors of the state, for ``start``."""
    reads_ahead: ClassVar[bool] = False
    """True if hidden states depend on words to the right, which excludes predicting the next word."""
    unit_contexts: ClassVar[bool] = False
    """True if hidden states are normalised to variance one; if so, word vectors of tied layers start shorter."""

    @classmethod
    def needs(cls, settings: Any) -> frozenset[str]:
        """Optional fields of ``EncoderResources`` that these settings require: "graph" or nothing."""
        return frozenset()

    def __init__(self, settings: Any, resources: EncoderResources) -> None:
        super().__init__()
        if "graph" in self.needs(settings) and resources.graph is None:
            raise ConfigError(
                f"encoder {type(self).__name__!r} with these settings needs a sememe graph; build one with "
                "'sememekit build-sememe-graph' and give it with --graph FILE"
            )

    def start(self, batch_size: int) -> State:
        """The state before the first word: zeros on the device of the parameters."""
        like = next(self.parameters())
        return tuple(like.new_zeros(batch_size, size) for size in self.state_sizes)

    @abstractmethod
    def forward(self, x: Tensor, tokens: Tensor, state: State, lengths: Tensor | None = None) -> Encoded:
        """Read a sequence.

        ``x``: (T, B, E) word vectors; ``tokens``: (T, B) their word ids, for encoders that look words up (sememes); ``state``:
        from ``start``, or after the previous text; ``lengths``: (B,) int64 on the CPU, real steps of each row, 1 to T; None if
        all are. Outputs beyond the length are zero and the new state follows the last real step: padding changes nothing."""

    def step(self, x: Tensor, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one word. ``x``: (B, E); ``tokens``: (B,). Returns ((B, H), state)."""
        encoded = self(x.unsqueeze(0), tokens.unsqueeze(0), state)
        return encoded.hidden[0], encoded.state

    def draw_masks(self, batch_size: int) -> State:
        """Draw dropout masks (B, ...) for whole texts, for the methods below (default: none)."""
        return ()

    def input_part(self, x: Tensor) -> Tensor:
        """Return the state-independent part (..., R) of a step from input vectors (..., E) (default: the vectors)."""
        return x

    def state_part(self, state: State, masks: State = ()) -> State:
        """Return the input-independent part of a step from a state (B, ...) (default: the state)."""
        return state

    def combine(self, input_part: Tensor, tokens: Tensor, state_part: State, masks: State = ()) -> tuple[Tensor, State]:
        """Combine the two parts: ``combine(input_part(x), tokens, state_part(state))`` is ``step(x, tokens, state)``.

        ``input_part`` is (..., B, R) and ``tokens`` (..., B); ``state_part`` has tensors (..., B, ...), with axes of size 1 if
        many steps start from one state; ``masks`` are of ``draw_masks``. Returns outputs (..., B, H), states (..., B, ...)."""
        lead = input_part.shape[:-1]
        flat = tuple(part.expand(*lead, part.shape[-1]).reshape(-1, part.shape[-1]) for part in state_part)
        hidden, state = self.step(input_part.reshape(-1, input_part.shape[-1]), tokens.reshape(-1), flat)
        return hidden.view(*lead, -1), tuple(part.view(*lead, part.shape[-1]) for part in state)

    def last(self, encoded: Encoded, lengths: Tensor | None = None) -> Tensor:
        """Return the hidden state (B, H) after the last real step; with two directions, at the end of each."""
        return last_real_step(encoded.hidden, lengths)


class FromFiles(Encoder):
    """An encoder that starts from the weights of a pretrained model."""

    @classmethod
    @abstractmethod
    def vector_size(cls, settings: Any) -> int:
        """Return the required width of word vectors, the default of ``task.embedding_size``."""

    @classmethod
    @abstractmethod
    def keep(cls, settings: Any, data: PreparedData) -> bytes:
        """Return bytes that a run on ``data`` stores for its encoder as ``encoder.json``.

        Called once, before a fresh run is built; every model of the run gets it as ``EncoderResources.kept``."""

    @abstractmethod
    def read_weights(self) -> None:
        """Read initial weights; called once, on the CPU, before a fresh run is trained."""

    @abstractmethod
    def word_vectors(self) -> Tensor | None:
        """Return (V, H) initial word vectors, once after ``read_weights``."""


class ChildSum(Encoder):
    """An encoder that can step from several states at once, with a forget gate for each state (child-sum tree LSTM)."""

    @abstractmethod
    def child_sum_part(self, states: State, weights: Tensor, masks: State = ()) -> State:
        """``state_part`` of K states (K, B, ...) together, with weights (K, B)."""

    @abstractmethod
    def child_sum_combine(self, input_part: Tensor, state_part: State, masks: State = ()) -> tuple[Tensor, State]:
        """``combine`` for the result of ``child_sum_part``."""


def zero_padding(sequence: Tensor, lengths: Tensor | None) -> Tensor:
    """``sequence`` (T, B, H) with zeros beyond the lengths, without gradient."""
    if lengths is None:
        return sequence
    steps = torch.arange(len(sequence), device=sequence.device)
    return sequence.masked_fill((steps[:, None] >= lengths.to(sequence.device))[..., None], 0.0)


def last_real_step(sequence: Tensor, lengths: Tensor | None) -> Tensor:
    """(B, H) the last real step of each row of ``sequence`` (T, B, H)."""
    if lengths is None:
        return sequence[-1]
    return sequence[lengths.to(sequence.device) - 1, torch.arange(sequence.shape[1], device=sequence.device)]


def reversal(length_of_batch: int, lengths: Tensor | None, batch_size: int, device: torch.device) -> Tensor:
    """Return an order (T, B): for each row the real steps reversed, then the padding unmoved; it is its own inverse."""
    steps = torch.arange(length_of_batch, device=device)[:, None]
    if lengths is None:
        return (length_of_batch - 1 - steps).expand(-1, batch_size)
    own = lengths.to(device)[None, :]
    return torch.where(steps < own, own - 1 - steps, steps)


def reorder(sequence: Tensor, order: Tensor) -> Tensor:
    """Put the steps of each row of ``sequence`` (T, B) or (T, B, H) into the ``order`` (T, B) of this row."""
    return sequence[order, torch.arange(sequence.shape[1], device=sequence.device)]


def spelled_encoder(encoder: Encoder) -> str:
    """Return the name of an encoder on the command line: a name, or ``package.module:Class``."""
    return name_of(type(encoder), ENCODERS)
