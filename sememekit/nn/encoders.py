"""Recurrent encoders, some of which read sememes, as modules like ``torch.nn.LSTM``."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from sememekit.config import read_settings
from sememekit.encoders import awd_lstm
from sememekit.encoders.base import Encoder, EncoderResources, State
from sememekit.encoders.bidirectional import Bidirectional, BiGRU, BiLSTM
from sememekit.encoders.gru import GRU
from sememekit.encoders.lstm import LSTM
from sememekit.encoders.mogrifier import Mogrifier
from sememekit.encoders.sememe_sum import Pi, SememeSum
from sememekit.encoders.stack import RecurrentStack
from sememekit.errors import ConfigError
from sememekit.nn.checks import check_arguments, check_range, check_shapes, whole_numbers
from sememekit.nn.senses import Nested, Senses, Words, as_senses
from sememekit.sememes import SememeGraph
from sememekit.sememes.special_tokens import UNKNOWN
from sememekit.text.vocabulary import Vocabulary

LSTMState = tuple[Tensor, Tensor]

_MOST_GAPS: Final = 100  # most vectors for each used sememe; more mean that the numbers are not indices of a table

_NO_WORDS: Final = cast(Vocabulary, Words((), np.zeros(0, dtype=np.int64)))


class _Recurrent(nn.Module):
    """A recurrent encoder with the interface of ``torch.nn.LSTM``, and optional sememes."""

    kinds: ClassVar[Mapping[bool, type[Encoder]]]
    """Bidirectional or not -> the class."""
    usual_injection: ClassVar[str] = "none"
    states_per_layer: ClassVar[int] = 2
    encoder: RecurrentStack | Bidirectional

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        senses: Senses | SememeGraph | Nested | None = None,
        *,
        num_sememes: int | None = None,
        num_layers: int = 1,
        bidirectional: bool = False,
        batch_first: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **settings: Any,
    ) -> None:
        """Build the encoder.

        Args:
            input_size, hidden_size: E, and H of each layer.
            senses: for each word its senses, for each sense its sememes, to look up sememes by words; the senses of a word are
                pooled.
            num_sememes: K, if calls give sememes as numbers 0 to K - 1; without ``senses``, or with senses that lack some.
            num_layers: number of layers; the first reads sememes.
            bidirectional: a second stack reads backwards, with the same sememes; outputs are 2 H wide.
            batch_first: inputs and outputs are (B, T, ...), as in torch; states are not.
            device, dtype: of the encoder.
            settings: further settings of the encoder, see the class.

        Raises ConfigError: a setting is unknown or out of range, or a sememe is not a number below ``num_sememes``."""
        super().__init__()
        name = type(self).__name__
        flags = {"bidirectional": bidirectional, "batch_first": batch_first}
        check_arguments(name, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers, **flags)
        check_arguments(name, device=device, dtype=dtype, **({} if num_sememes is None else {"num_sememes": num_sememes}))
        if bidirectional not in self.kinds:
            raise ConfigError(f"{name} reads in one direction; leave bidirectional out")
        if "output_size" in settings:
            raise ConfigError(f"{name}: all layers have hidden_size, so that states are one tensor; leave output_size out")
        senses = None if senses is None else as_senses(senses)
        found = _senses_of(senses, num_sememes)
        given = {"hidden_size": hidden_size, "num_layers": num_layers, **settings}
        given.setdefault("injection", self.usual_injection if found is not None else "none")
        if found is None and given["injection"] != "none":
            raise ConfigError(f"{name}: injection={given['injection']!r} reads sememes; give senses, or num_sememes")
        kind = self.kinds[bidirectional]
        graph = None if found is None else found.graph
        self.input_size, self.hidden_size, self.num_layers, self.batch_first = input_size, hidden_size, num_layers, batch_first
        self._looks_up = senses is not None
        self.num_words = 0 if senses is None else senses.num_words
        self.sememes = () if found is None else found.sememes
        if self.sememes[-1:] == (UNKNOWN,):
            self.sememes = self.sememes[:-1]
        beside = ("senses", *(_Recurrent.__init__.__kwdefaults__ or ()))
        read = read_settings(kind.Settings, given, name, beside=beside, taken=("output_size",))
        self.encoder = cast("RecurrentStack | Bidirectional", kind(read, EncoderResources(input_size, _NO_WORDS, graph)))
        self.to(device=device, dtype=dtype)

    def forward(
        self,
        x: Tensor,
        words: Tensor | None = None,
        state: Tensor | LSTMState | None = None,
        *,
        sememes: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, Any]:
        """Read a batch of sequences.

        Args:
            x: (T, B, E) input vectors, or (B, T, E) with ``batch_first``.
            words: (T, B) ids of words whose sememes are looked up, whole numbers of any dtype.
            state: the state returned for the previous text (default: zeros).
            sememes: instead of ``words``: (T, B, K) bools or weights in the order of the attribute ``sememes``, or (T, B, M)
                indices of sememes, padded with -1.
            lengths: (B,) real steps of each row, 1 to T, as a tensor; later outputs are 0; the state is after the last.

        Returns outputs (T, B, H D), and the state: h, c (L D, B, H) each for an LSTM, h for a GRU; with two directions (D =
        2) the layers that read forwards come first. Raises TypeError: words or lengths that are not integers, or a state of
        another kind of encoder. Raises ValueError: shapes that do not fit, or (on a CPU) numbers out of range. A GPU stops at
        bad words and sememes with an assertion, and a compiled graph does not check them."""
        if words is not None:
            words = whole_numbers(words, f"{type(self).__name__}: words")
            if self._looks_up:
                check_range(words, 0, self.num_words - 1, f"{type(self).__name__}: words")
        x, lengths = _checked(self, x, lengths)
        if self.batch_first:
            words, sememes = (None if part is None else part.transpose(0, 1) for part in (words, sememes))
        pi = self._pi(x, words, sememes)
        if words is None:
            words = x.new_zeros(x.shape[:2], dtype=torch.int64)
        start = self.encoder.start(x.shape[1]) if state is None else self._unpacked(state, x.shape[1])
        encoded = self.encoder(x, words, start, lengths, pi)
        return (encoded.hidden.transpose(0, 1) if self.batch_first else encoded.hidden), self._packed(encoded.state)

    if TYPE_CHECKING:
        __call__ = forward

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"

    def _pi(self, x: Tensor, words: Tensor | None, sememes: Tensor | None) -> Pi | None:
        """Return the sums of the given sememes; None if they are looked up or not read."""
        stack = self.encoder.forth if isinstance(self.encoder, Bidirectional) else self.encoder
        name, reader = type(self).__name__, stack.sememes
        if reader is None:
            if sememes is not None:
                raise ValueError(f"{name} was built without sememes; give senses or num_sememes to its constructor")
            return None
        if words is not None and not self._looks_up:
            raise ValueError(f"{name} knows the sememes of no word, as it was built without senses; give sememes=")
        if (words is None) == (sememes is None):
            raise ValueError(f"{name}: give words (T, B), or sememes= (T, B, K) or (T, B, M)")
        for what, given in (("words", words), ("sememes", sememes)):
            if given is not None and given.shape[:2] != x.shape[:2]:
                raise ValueError(f"{name}: {what} of shape {tuple(given.shape)} for inputs {tuple(x.shape)}, time first")
        if sememes is None:
            return None
        if isinstance(self.encoder, Bidirectional) and not self.encoder.shared_sememes:
            raise ValueError(f"{name}: sememes= needs shared_sememes=True; look them up by words instead")
        with torch.autocast(x.device.type, enabled=False):
            return self._given(reader, sememes)

    def _given(self, reader: SememeSum, sememes: Tensor) -> Pi:
        name, num_sememes = type(self).__name__, len(reader.vectors)
        if sememes.dtype.is_floating_point or sememes.dtype == torch.bool:
            if sememes.shape[-1] != len(self.sememes):
                raise ValueError(f"{name}: weights of {sememes.shape[-1]} sememes where there are {len(self.sememes)}")
            return reader.of_weights(nn.functional.pad(sememes, (0, num_sememes - sememes.shape[-1])))
        sememes = sememes.long()
        check_range(sememes, 0, len(self.sememes) - 1, f"{name}: numbers of sememes", spared=-1, hint="; -1 is padding")
        return reader.of_lists(sememes.where(sememes >= 0, num_sememes))

    def _packed(self, state: State) -> Tensor | LSTMState:
        parts = tuple(torch.stack(state[first :: self.states_per_layer]) for first in range(self.states_per_layer))
        return parts[0] if len(parts) == 1 else (parts[0], parts[1])

    def _unpacked(self, state: Tensor | LSTMState, batch: int) -> State:
        name, directions = type(self).__name__, 2 if isinstance(self.encoder, Bidirectional) else 1
        parts = (state,) if isinstance(state, Tensor) else tuple(state)
        shape = (self.num_layers * directions, batch, self.hidden_size)
        wanted = f"h {shape}" if self.states_per_layer == 1 else f"h and c, {shape} each"
        if len(parts) != self.states_per_layer or isinstance(state, Tensor) != (self.states_per_layer == 1):
            given = "one tensor" if isinstance(state, Tensor) else f"{len(parts)} of them"
            raise TypeError(f"{name}: the state must be {wanted}, given {given}")
        check_shapes(parts, [shape] * len(parts), f"{name}: the state must be {wanted}")
        return tuple(part for layer in zip(*(each.unbind(0) for each in parts), strict=True) for part in layer)


@final
class SememeLSTM(_Recurrent):
    """An LSTM whose first layer reads the sememes of each word (Qin et al. 2020).

    >>> encoder = SememeLSTM(8, 16, senses)
    >>> output_TBH, (h, c) = encoder(vectors_TBE, target_TB)
    >>> output_TBH, state = encoder(vectors_TBE, sememes=torch.zeros(5, 2, len(encoder.sememes)))

    pi is the sum of the vectors of the sememes of a word, all its senses pooled; 0 for a word without sememes (Eq. 4).
    ``injection``: "cell" is a second LSTM cell on pi, whose cell state enters through a forget gate (Eq. 7); "gate" is an
    output gate for tanh(W pi + b) (Eq. 5); "concat" concatenates pi to the input. Settings: ``injection`` ("cell"), ``dropout``
    between layers, ``sememe_size``, ``sememe_dropout``, ``sememe_deviation``, ``initialisation`` (``encoders.stack``). Without
    senses it is a plain LSTM."""

    kinds: ClassVar[Mapping[bool, type[Encoder]]] = {False: LSTM, True: BiLSTM}
    usual_injection: ClassVar[str] = "cell"


@final
class SememeGRU(_Recurrent):
    """A GRU whose first layer reads the sememes of each word (Qin et al. 2020).

    >>> encoder = SememeGRU(8, 16, senses, bidirectional=True)
    >>> output_TBH, h = encoder(vectors_TBE, target_TB)
    >>> output_TBH.shape
    torch.Size([5, 2, 32])

    It works like ``SememeLSTM``; "cell" is a second GRU cell (Eq. 8), "gate" an output gate (Eq. 6). Further settings:
    ``reset``, ``gate_output``, ``candidate`` (``encoders.gru``)."""

    kinds: ClassVar[Mapping[bool, type[Encoder]]] = {False: GRU, True: BiGRU}
    usual_injection: ClassVar[str] = "cell"
    states_per_layer: ClassVar[int] = 1


@final
class MogrifierLSTM(_Recurrent):
    """An LSTM whose input and previous output gate each other alternately before each step (Melis et al. 2020).

    >>> encoder = MogrifierLSTM(8, 16, rounds=5, rank=4)
    >>> output_TBH, (h, c) = encoder(vectors_TBE)
    >>> output_TBH, (h, c) = encoder(vectors_TBE, state=(h, c))

    x^i = 2 sigmoid(Q^i h^(i-1) + b^i) x^(i-2) for odd i, h^i alike for even i (Eq. 1, 2). With senses, the sum of sememe
    vectors is concatenated to the input. Settings: ``rounds`` (5), ``rank``, ``dropout``, ``recurrent_dropout``,
    ``weight_drop`` (``encoders.mogrifier``)."""

    kinds: ClassVar[Mapping[bool, type[Encoder]]] = {False: Mogrifier}
    usual_injection: ClassVar[str] = "concat"


@final
class AWDLSTM(nn.Module):
    """LSTM layers with dropped recurrent weights inside and locked dropout in between (Merity et al. 2018).

    >>> encoder = AWDLSTM(8, 16, num_layers=3, weight_drop=0.5, dropout=0.25)
    >>> output_TBE, state = encoder(vectors_TBE)
    >>> output_TBE, state = encoder(vectors_TBE, state)

    The hidden-to-hidden matrix of a layer has one mask for all steps of a call; outputs between layers have one mask for each
    sequence. Evaluation has no masks. The last layer has ``output_size``, or E for a tied output layer. The surrounding model
    does dropout of input, output and words, and penalties on activations. Settings as in ``encoders.awd_lstm``. It runs on the
    kernel of ``torch.nn.LSTM`` and, like it, compiles with ``torch._dynamo.config.allow_rnn``."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int = 1150,
        *,
        num_layers: int = 3,
        batch_first: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **settings: Any,
    ) -> None:
        """Build the layers.

        Args:
            input_size, hidden_size: E, and the size of each layer but the last.
            batch_first: inputs and outputs are (B, T, ...).
            device, dtype: of the layers.
            settings: ``output_size`` (default: E), ``dropout``, ``weight_drop``.

        Raises ConfigError: a setting is unknown or out of range."""
        super().__init__()
        sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
        check_arguments(type(self).__name__, **sizes, batch_first=batch_first, device=device, dtype=dtype)
        given = {"hidden_size": hidden_size, "num_layers": num_layers, **settings}
        self.input_size, self.batch_first = input_size, batch_first
        read = read_settings(awd_lstm.AWDLSTM.Settings, given, type(self).__name__, beside=("batch_first", "device", "dtype"))
        self.encoder = awd_lstm.AWDLSTM(read, EncoderResources(input_size, _NO_WORDS))
        self.to(device=device, dtype=dtype)

    def forward(
        self, x: Tensor, state: list[LSTMState] | None = None, *, lengths: Tensor | None = None
    ) -> tuple[Tensor, list[LSTMState]]:
        """Read a batch of sequences.

        ``x``: (T, B, E), or (B, T, E) with ``batch_first``; ``state``: of the previous text (default: zeros); ``lengths``: (B,)
        real steps of each row, 1 to T, as a tensor.

        Returns outputs (T, B, H) of the last layer, and h, c (1, B, H_l) of each layer, as in the public code. Raises
        TypeError: lengths that are not integers. Raises ValueError: shapes that do not fit, or bad lengths."""
        x, lengths = _checked(self, x, lengths)
        start = usual = self.encoder.start(x.shape[1])
        if state is not None:
            parts = [part for layer in state for part in layer]
            shapes = [(1, *part.shape) for part in usual]
            wanted = f"(h, c) of {len(usual) // 2} layers, of shapes {shapes[::2]}"
            check_shapes(parts, shapes, f"AWDLSTM: the state must be {wanted}")
            start = tuple(part[0] for part in parts)
        encoded = self.encoder(x, x.new_zeros(x.shape[:2], dtype=torch.int64), start, lengths)
        after = [part.unsqueeze(0) for part in encoded.state]
        hidden = encoded.hidden.transpose(0, 1) if self.batch_first else encoded.hidden
        return hidden, list(zip(after[::2], after[1::2], strict=True))

    if TYPE_CHECKING:
        __call__ = forward


def _checked(encoder: _Recurrent | AWDLSTM, x: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Return inputs with time first, and lengths on the CPU; refuse inputs and lengths that do not fit the encoder."""
    name, order = type(encoder).__name__, "(B, T, E)" if encoder.batch_first else "(T, B, E)"
    if isinstance(x, PackedSequence):
        raise TypeError(
            f"{name}: packed sequences are not supported; give the padded batch {order}, and lengths= (B,) for its rows"
        )
    if x.ndim != 3 or x.shape[-1] != encoder.input_size:
        raise ValueError(f"{name}: inputs must be {order} with E = {encoder.input_size}, given {tuple(x.shape)}")
    shape, x = tuple(x.shape), x.transpose(0, 1) if encoder.batch_first else x
    if not len(x):
        raise ValueError(f"{name}: inputs {order} need one step or more, given {shape}; leave out texts without words")
    if lengths is not None:
        lengths = whole_numbers(lengths, f"{name}: lengths", x.shape[1:2], f"inputs {order} of {shape}").cpu()
        check_range(lengths, 1, len(x), f"{name}: lengths")
    return x, lengths


def _senses_of(senses: Senses | None, num_sememes: int | None) -> Senses | None:
    """Return the words and sememes of an encoder: all numbers up to the largest, used or not."""
    if senses is None:
        if num_sememes is None:
            return None
        return Senses([[[number]] for number in range(num_sememes)])
    numbers = [sememe for sememe in senses.sememes if not isinstance(sememe, str)]
    if num_sememes is None and not numbers:
        return senses
    count = max(numbers) + 1 if num_sememes is None else num_sememes
    if num_sememes is None and count > _MOST_GAPS * len(numbers) + _MOST_GAPS:
        raise ConfigError(
            f"an encoder has a vector for every number of a sememe up to the largest, here {count:,} for {len(numbers):,} "
            "sememes; number them 0, 1, 2, ... or give names"
        )
    return senses.with_sememes(count)
