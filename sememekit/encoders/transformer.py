"""A causal transformer; its state is the keys and values of previous words."""

from typing import Any, ClassVar, final

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit import config
from sememekit.encoders.base import Encoded, Encoder, EncoderResources, State, zero_padding
from sememekit.errors import ConfigError


@final
class TransformerBlock(nn.Module):
    """y = x + A(norm(x)), then y + F(norm(y)): attention to previous words, and two maps with a GELU between (pre-norm).

    The last maps of each branch are scaled by 1 / sqrt(2 layers) at the start, so that the sum of branches does not grow with
    depth (Radford et al. 2019). Queries, keys and values have no biases.

    Shapes: T steps, B batch, C past positions, H size, S = C + T."""

    def __init__(self, settings: "Transformer.Settings") -> None:
        super().__init__()
        size = settings.hidden_size
        self.num_heads, self.dropout = settings.num_heads, settings.dropout
        self.attention_norm, self.feedforward_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention_in = nn.Linear(size, 3 * size, bias=False)
        """To queries, keys, values."""
        self.attention_out = nn.Linear(size, size)
        self.feedforward_in = nn.Linear(size, settings.feedforward_size or 4 * size)
        self.feedforward_out = nn.Linear(self.feedforward_in.out_features, size)
        for end in (self.attention_out, self.feedforward_out):
            nn.init.zeros_(end.bias)
            end.weight.data *= (2 * settings.num_layers) ** -0.5

    def forward(self, x_BTH: Tensor, past: State, bias: Tensor, turns: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """One block. ``past``: keys and values (B, C, H) of previous positions, keys before rotation; ``bias`` (B, 1, T, S) is
        added to the scores of attention; ``turns`` are the ``rotation`` of S positions. Returns (B, T, H) outputs; keys and
        values (B, S, H), the past included."""
        length = x_BTH.shape[1]
        queries, keys, values = self.attention_in(self.attention_norm(x_BTH)).chunk(3, dim=-1)
        keys, values = torch.cat([past[0], keys], dim=1), torch.cat([past[1], values], dim=1)
        q_BNTD = rotate(self._heads(queries), turns[0][-length:], turns[1][-length:])
        k_BNSD = rotate(self._heads(keys), *turns)
        attended = functional.scaled_dot_product_attention(q_BNTD, k_BNSD, self._heads(values), attn_mask=bias)
        added = self.attention_out(attended.transpose(1, 2).flatten(2))
        y_BTH = x_BTH + functional.dropout(added, self.dropout, self.training)
        added = self.feedforward_out(functional.gelu(self.feedforward_in(self.feedforward_norm(y_BTH))))
        return y_BTH + functional.dropout(added, self.dropout, self.training), keys, values

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


def rotation(num_positions: int, size: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return cosines and sines (P, D / 2) of p / 10000^(2 i / D), the angle of pair i of D numbers at position p.

    The score of a rotated query and key depends on their distance alone (Su et al. 2021, "RoFormer")."""
    exponents = torch.arange(0, size, 2, device=like.device, dtype=like.dtype) / size
    positions = torch.arange(num_positions, device=like.device, dtype=like.dtype)
    angles = positions[:, None] * 10_000.0**-exponents
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotate ``x`` (..., P, D), number i with number i + D / 2, by the result of ``rotation``."""
    one, other = x.chunk(2, dim=-1)
    return torch.cat([one * cosines - other * sines, one * sines + other * cosines], dim=-1)


@final
class Transformer(Encoder):
    """Blocks of self-attention that read from left to right: pre-norm, rotary positions, a window of past positions.

    >>> encoder = Transformer(Transformer.Settings(hidden_size=16), EncoderResources(input_size=8, vocabulary=words))
    >>> encoded = encoder(vectors_TBE, target_TB, encoder.start(batch_size=2))
    >>> hidden, state = encoded.hidden, encoded.state

    In every layer a word attends to itself and to the previous ``context`` positions, also across segments, so a text may be
    cut anywhere; L layers reach L x ``context`` words back. Positions are relative, so a text may have any length. Gradients
    stop where the state was detached. Word vectors are mapped to the width if needed, and normalised, so that their initial
    scale does not matter. A last norm gives the contexts.

    State: presence (B, C), then for each layer the keys and values of the last C = ``context`` positions, (B, C H) each, the
    latest at the end. Keys are stored without rotation and rotated by their place in the window, so no position is stored.
    Presence is 1 for a word and 0 for none (at the start of a text), and multiplies the attention weights before normalisation.

    In a lattice, presence, keys and values merge like any state, aligned at the latest step. With ``segmental`` and rules that
    keep the state of one edge (``monte_carlo``) this is attention to one sequence of words. ``marginal`` and ``gumbel`` average
    the keys and values of steps equally far back, and ``direct`` adds them; this is not attention to all steps. Each edge
    copies its state, 2 C H numbers a layer: keep ``context`` small."""

    unit_contexts: ClassVar[bool] = True

    class Settings(config.Settings):
        hidden_size: int = Field(default=256, ge=2)
        """H, the size of each layer; a multiple of twice ``num_heads``."""
        num_layers: int = Field(default=4, ge=1)
        """Number of blocks."""
        num_heads: int = Field(default=4, ge=1)
        """Heads of attention, each of ``hidden_size / num_heads`` numbers."""
        context: int = Field(default=128, ge=1)
        """C, previous positions that a word attends to in each layer, which are the state."""
        feedforward_size: int | None = Field(default=None, ge=1)
        """Size between the two maps of a block; unset: four times ``hidden_size``."""
        dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the outputs of attention and of the two maps (the task has input and output dropout)."""

    def __init__(self, settings: Settings, resources: EncoderResources) -> None:
        super().__init__(settings, resources)
        size, heads = settings.hidden_size, settings.num_heads
        if size % (2 * heads):
            fitting = max(1, round(size / (2 * heads))) * 2 * heads
            raise ConfigError(
                f"encoder 'transformer': hidden_size ({size}) must be a multiple of twice num_heads ({heads}), as each head "
                f"turns its numbers in pairs; set encoder.hidden_size={fitting} or another encoder.num_heads"
            )
        self.output_size, self.context, self.head_size = size, settings.context, size // heads
        self.state_sizes = [self.context * width for width in (1, *[size] * (2 * settings.num_layers))]
        self.input = nn.Linear(resources.input_size, size) if resources.input_size != size else nn.Identity()
        self.input_norm, self.output_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.blocks = nn.ModuleList(TransformerBlock(settings) for _ in range(settings.num_layers))

    def forward(self, x: Tensor, tokens: Tensor, state: State, lengths: Tensor | None = None) -> Encoded:
        layers: list[Tensor] = []
        with torch.autocast(x.device.type, enabled=False):
            x = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
            steps, batch, _ = x.shape
            present_BS = torch.cat([state[0], state[0].new_ones(batch, steps)], dim=1)
            bias, turns = self._bias(present_BS), rotation(self.context + steps, self.head_size, x)
            after = [self._last(present_BS, lengths)]
            y_BTH = self.input_norm(self.input(x)).transpose(0, 1)
            for number, block in enumerate(self.blocks, start=1):
                past = tuple(part.unflatten(1, (self.context, -1)) for part in state[2 * number - 1 : 2 * number + 1])
                y_BTH, *seen = block(y_BTH, past, bias, turns)
                after += [self._last(part, lengths).flatten(1) for part in seen]
                ended = self.output_norm(y_BTH) if number == len(self.blocks) else y_BTH
                layers.append(zero_padding(ended.transpose(0, 1), lengths))
        return Encoded(hidden=layers[-1], state=tuple(after), layers=tuple(layers))

    def _bias(self, present_BS: Tensor) -> Tensor:
        """Return (B, 1, T, S) logarithms of presence; -inf for positions that are too far back, later, or absent."""
        places = torch.arange(present_BS.shape[1], device=present_BS.device)
        back_TS = places[self.context :, None] - places
        reach_TS = (back_TS >= 0) & (back_TS <= self.context)
        weights = present_BS.clamp(min=torch.finfo(present_BS.dtype).tiny).log().masked_fill(present_BS <= 0, -torch.inf)
        return torch.where(reach_TS, weights[:, None, None, :], -torch.inf)

    def _last(self, part: Tensor, lengths: Tensor | None) -> Tensor:
        """The last C real positions of (B, S, ...), where S = C + T."""
        if lengths is None:
            return part[:, -self.context :]
        places = lengths.to(part.device)[:, None] + torch.arange(self.context, device=part.device)
        rows: Any = torch.arange(len(part), device=part.device)[:, None]
        return part[rows, places]
