"""A stack of recurrent layers of one kind with dropout in between, the first of which may read sememes.

Plain layers are torch's modules with its kernels, or on a CPU LSTMs with products in bfloat16."""

from abc import abstractmethod
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit import config
from sememekit.encoders.base import Encoded, Encoder, EncoderResources, State, last_real_step, zero_padding
from sememekit.encoders.sememe_sum import CustomRecurrentLayer, Initialisation, Pi, SememeSum, initialise
from sememekit.layers import WeightDropped, lstm_scan, product_dtype


def run_layer(layer: Any, x: Tensor, own: State, lengths: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, State]:
    """Run a recurrent module of torch, or a ``WeightDropped`` one, over ``x`` (T, B, E): outputs (T, B, H), states (B, H).

    Autocast is off inside. If ``dtype`` (``product_dtype``) is lower than the dtype of ``x``, an LSTM on a CPU multiplies in
    ``dtype``; its states, sums and gates, and all else, use the dtype of ``x``. Torch's autocast would round states."""
    if dtype == x.dtype or x.device.type != "cpu" or not isinstance(layer, nn.LSTM | WeightDropped):
        return _run_kernel(layer, x, own, lengths)
    # The rows of torch's weights are of i, f, u, o: ``lstm_scan`` wants u, f, i, o.
    parts = (part.chunk(4) for part in layer.all_weights[0])
    input_GE, recurrent_GH, *biases = (torch.cat([u, f, i, o]) for i, f, u, o in parts)
    ready_TBG = functional.linear(x.to(dtype), input_GE.to(dtype)).to(x.dtype) + sum(biases)
    scanned = lstm_scan(ready_TBG, recurrent_GH.to(dtype), *own)
    return zero_padding(scanned[0], lengths), tuple(last_real_step(part, lengths) for part in scanned)


def _run_kernel(layer: Any, x: Tensor, own: State, lengths: Tensor | None) -> tuple[Tensor, State]:
    before = tuple(part.unsqueeze(0) for part in own)  # (1, B, H) each
    if lengths is None:
        hidden, after = layer(x, before if len(own) > 1 else before[0])
        return hidden, tuple(part.squeeze(0) for part in (after if isinstance(after, tuple) else (after,)))
    # The longest first, by hand: torch's own way of sorting reads the order back from the device.
    falling, order = lengths.cpu().sort(descending=True)
    back, order = (index.to(x.device, non_blocking=True) for index in (order.argsort(), order))
    before = tuple(part.index_select(1, order) for part in before)
    packed = nn.utils.rnn.pack_padded_sequence(x.index_select(1, order), falling)
    packed, after = layer(packed, before if len(own) > 1 else before[0])
    hidden, _ = nn.utils.rnn.pad_packed_sequence(packed, total_length=len(x))
    states = after if isinstance(after, tuple) else (after,)
    return hidden.index_select(1, back), tuple(part.index_select(1, back).squeeze(0) for part in states)


Injection = Literal["none", "concat", "gate", "cell"]


class RecurrentStack(Encoder):
    """Layers of one kind, each a separate module, so that dropout between them is done here and repeatable.

    The first layer may read the sememes of each word (Qin et al. 2020): concatenated to its input (``concat``), through an
    output gate (``gate``), or through a second cell (``cell``). Upper layers are plain. The state has the tensors (B, H_l) of
    each layer in order."""

    states_per_layer: ClassVar[int] = 2

    class Settings(config.Settings):
        hidden_size: int = Field(default=650, ge=1)
        """Size of each layer; 650 is the "medium" and 1500 the "large" model of the word language-model tradition."""
        num_layers: int = Field(default=2, ge=1)
        """Number of layers on top of each other."""
        output_size: int | None = Field(default=None, ge=1)
        """Size of the last layer (default: ``hidden_size``); a tied output layer needs the size of the embedding."""
        dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate between layers (not on the input, not on the output: those belong to the task)."""
        initialisation: Initialisation = "uniform"
        """Initial weights of the layers: "uniform" as torch, or "kaiming" (normal, biases 0) as the released sememe cells."""
        injection: Injection = "none"
        """Injection of sememes into the first layer: "none", "concat", "gate" or "cell"; all but "none" need a graph."""
        sememe_size: int | None = Field(default=None, ge=1)
        """Size of the sememe vectors (default: of the word vectors)."""
        sememe_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the elements of the sememe matrix, the same for every position of a batch."""
        sememe_deviation: float = Field(default=0.2236068, gt=0.0)
        """Standard deviation of the initial sememe vectors: the text says "variance 0.05", the square of this default. The
        released code uses a deviation of 0.05, with which models learn more slowly."""

        only_with: ClassVar[Mapping[str, config.OnlyWith]] = {
            "dropout": config.OnlyWith("num_layers", other_than=(1,)),
            "sememe_size": config.OnlyWith("injection", other_than=("none",)),
            "sememe_dropout": config.OnlyWith("injection", other_than=("none",)),
            "sememe_deviation": config.OnlyWith("injection", other_than=("none",)),
        }

    @classmethod
    def needs(cls, settings: Settings) -> frozenset[str]:
        return frozenset() if settings.injection == "none" else frozenset({"graph"})

    def __init__(self, settings: Settings, resources: EncoderResources) -> None:
        super().__init__(settings, resources)
        self.dropout = settings.dropout
        self.injection = settings.injection
        self.output_size = settings.output_size or settings.hidden_size
        self.sememes = None
        sememe_size = settings.sememe_size or resources.input_size
        if settings.injection != "none":
            assert resources.graph is not None
            self.sememes = SememeSum(resources.graph, sememe_size, settings.sememe_deviation, settings.sememe_dropout)
        input_size = resources.input_size + (sememe_size if settings.injection == "concat" else 0)
        sizes = [input_size, *[settings.hidden_size] * (settings.num_layers - 1), self.output_size]
        self.stack = nn.ModuleList(self.plain_layer(settings, size_in, size_out) for size_in, size_out in pairwise(sizes))
        if settings.injection in ("gate", "cell"):
            self.stack[0] = self.sememe_layer(settings, input_size, sememe_size, sizes[1])
        self.state_sizes = [size for size in sizes[1:] for _ in range(self.states_per_layer)]
        for layer, size in zip(self.stack, sizes[1:], strict=True):
            if isinstance(layer, CustomRecurrentLayer) or settings.initialisation != "uniform":
                initialise(layer, settings.initialisation, size)

    @staticmethod
    @abstractmethod
    def plain_layer(settings: Any, size_in: int, size_out: int) -> nn.Module:
        """One of torch's recurrent modules, or a ``CustomRecurrentLayer`` that does not use pi."""

    @staticmethod
    @abstractmethod
    def sememe_layer(settings: Any, size_in: int, sememe_size: int, size_out: int) -> CustomRecurrentLayer:
        """The first layer for the injections "gate" and "cell"."""

    def sum_sememes(self, tokens: Tensor) -> Pi | None:
        """Return pi of ``tokens`` (T, B); None without injection."""
        if self.sememes is None:
            return None
        with torch.autocast(tokens.device.type, enabled=False):
            return self.sememes(tokens)

    def forward(self, x: Tensor, tokens: Tensor, state: State, lengths: Tensor | None = None, pi: Pi | None = None) -> Encoded:
        """Read a sequence with a given pi of (T, B); None computes it from ``tokens``."""
        layers: list[Tensor] = []  # (T, B, H_l) each
        new_state: list[Tensor] = []
        pi = self.sum_sememes(tokens) if pi is None else pi
        weight = next(self.parameters())
        dtype = product_dtype(weight)
        with torch.autocast(x.device.type, enabled=False):
            x = x.to(weight.dtype)  # autocast may have lowered it
            if self.injection == "concat":
                assert pi is not None
                x = torch.cat([x, pi.to_positions(pi.rows)], dim=-1)  # (T, B, E + P)
            for number, layer in enumerate(self.stack):
                if number:
                    x = functional.dropout(x, self.dropout, self.training)
                own = state[number * self.states_per_layer : (number + 1) * self.states_per_layer]
                if isinstance(layer, CustomRecurrentLayer):
                    scanned = layer(x, pi, own)
                    x, after = zero_padding(scanned[0], lengths), tuple(last_real_step(part, lengths) for part in scanned)
                else:
                    x, after = run_layer(layer, x, own, lengths, dtype)
                new_state += after
                layers.append(x)
        return Encoded(hidden=x, state=tuple(new_state), layers=tuple(layers))
