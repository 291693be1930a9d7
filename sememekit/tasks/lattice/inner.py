"""The vectors of words and windows in a batch of lattices, partly composed from token vectors.

``Inner`` and ``UpperLayer`` are shared by all LSTMs inside chunks."""

from collections.abc import Sequence
from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from sememekit.layers import four_gates, lstm_cell, shared_dropout
from sememekit.tasks.lattice.batch import LatticeBatch, Windows


class Inner(NamedTuple):
    """Settings of the LSTMs inside chunks."""

    layers: int = 1  # number of layers
    coupled: bool = False  # input gate 1 - f instead of a separate gate, as in ``LatticeLSTM``
    # rate on each layer's input and previous output, and on the output of the sub-model. The sub-model has one mask per
    # sentence; the composition has one mask for all windows with the same first (backward: last) token
    dropout: float = 0.0

    def map(self, size_in: int, size: int, bias: bool = True) -> nn.Linear:
        """A map to the gates of an LSTM, uniform in +-1 / sqrt(size)."""
        layer = nn.Linear(size_in, (3 if self.coupled else 4) * size, bias=bias)
        for parameter in layer.parameters():
            nn.init.uniform_(parameter, -(size**-0.5), size**-0.5)
        return layer

    def gates(self, given: Tensor, axis: int = -1) -> Tensor:
        return four_gates(given, self.coupled, axis)

    def masks(self, like: Tensor, rows: int, *sizes: int) -> list[Tensor]:
        return [shared_dropout(like.new_ones(rows, size), self.dropout, True, ()) for size in sizes]


class UpperLayer(nn.Module):
    """A layer above the first, which reads the outputs of the layer below; windows of one token need no recurrence."""

    def __init__(self, size: int, inner: Inner, recurrent: bool) -> None:
        super().__init__()
        self.input = inner.map(size, size)
        self.recurrent = inner.map(size, size, bias=False) if recurrent else None


@final
class Composition(nn.Module):
    """Vectors of windows from the vectors of their tokens: the two ends of a bidirectional LSTM (Sec. 4.1.3).

    A window of l tokens extends the forward state of its first l - 1 tokens and the backward state of its last l - 1. So each
    distinct window needs one step in each direction. Each direction is a stack of layers, whose top layer gives the vector. The
    even ``size`` is of both directions together; with L = 1 (``longest``) nothing is recurrent."""

    def __init__(self, size_in: int, size: int, longest: int, inner: Inner) -> None:
        super().__init__()
        self.size, self.inner = size // 2, inner
        self.forward_input, self.backward_input = (inner.map(size_in, self.size) for _ in range(2))
        self.forward_recurrent = inner.map(self.size, self.size, bias=False) if longest > 1 else None
        self.backward_recurrent = inner.map(self.size, self.size, bias=False) if longest > 1 else None
        self.forward_above = nn.ModuleList(UpperLayer(self.size, inner, longest > 1) for _ in range(inner.layers - 1))
        self.backward_above = nn.ModuleList(UpperLayer(self.size, inner, longest > 1) for _ in range(inner.layers - 1))

    def forward(self, tokens_WE: Tensor, windows: Windows) -> Tensor:
        """(D, size) vectors of the windows, from the vectors of the distinct tokens."""
        onward = self._direction("forward", tokens_WE, windows.prefix, windows.last, windows.first)
        back = self._direction("backward", tokens_WE, windows.suffix, windows.first, windows.last)
        return torch.cat([onward, back], dim=1)

    def _direction(self, name: str, tokens_WE: Tensor, shorter: Sequence[Tensor], added: Tensor, anchor: Tensor) -> Tensor:
        """Return the outputs (D, size / 2) of the top layer, computed layer by layer for all windows. ``shorter``: for l = 2 ..
        L the windows that windows of l tokens extend. ``added`` (D,): the token that each window adds. ``anchor`` (D,): the
        first token of each window (and of its predecessors), which selects the dropout mask."""
        inner, rows = self.inner, [len(tokens_WE), *map(len, shorter)]
        layers = [(getattr(self, f"{name}_input"), getattr(self, f"{name}_recurrent"))]
        layers += [(layer.input, layer.recurrent) for layer in getattr(self, f"{name}_above")]
        below: list[Tensor] = []
        again: list[Tensor] = []
        if self.training and inner.dropout:
            masks = inner.masks(tokens_WE, len(tokens_WE), tokens_WE.shape[1], *[self.size] * (2 * inner.layers - 1))
            below, again = ([mask[anchor] for mask in part] for part in (masks[: inner.layers], masks[inner.layers :]))
        outputs = tokens_WE
        for number, (into, recurrent) in enumerate(layers):
            if number == 0 and not below:
                gates = inner.gates(into(tokens_WE))[added]
            else:
                read = outputs if number else tokens_WE[added]
                gates = inner.gates(into(read * below[number] if below else read))
            first, *longer = gates.split(rows)
            hidden, cell = lstm_cell(first, torch.zeros_like(first[:1]), first.new_zeros(1, self.size))
            found = [hidden]
            if longer:
                matrix = inner.gates(recurrent.weight, 0)
                masks_again = again[number].split(rows) if again else [None] * len(rows)
                for added_gates, before, mask in zip(longer, shorter, masks_again[:-1], strict=True):
                    seen = hidden if mask is None else hidden * mask
                    hidden, cell = lstm_cell(added_gates, functional.linear(seen, matrix)[before], cell[before])
                    found.append(hidden)
            outputs = torch.cat(found)
        return outputs


class BatchVectors(NamedTuple):
    """Vectors of a batch: (W, E) of its distinct words, (V, E) of all words if a sub-model predicts them, and (D, C, I) of its
    distinct windows in each copy, windows of one token first."""

    words: Tensor
    every: Tensor | None
    windows: Tensor


def batch_vectors(
    batch: LatticeBatch,
    rows: Tensor,
    word_rows_VC: Tensor,
    has_copy_VC: Tensor,
    tokens: nn.Embedding | None,
    composition: Composition | None,
    *,
    every: bool,
) -> BatchVectors:
    """Look up all vectors at once, with one gradient of the table. ``word_rows_VC`` and ``has_copy_VC`` are the rows of the
    copies of each word, and the mask of existing copies. Without ``tokens``, a separate table, token vectors are means of the
    copies. ``composition`` computes vectors of windows from vectors of tokens, if given."""
    indices = [] if tokens is not None else [word_rows_VC[batch.words], *([word_rows_VC] if every else [])]
    if batch.windows is not None:
        indices.append(batch.windows.rows)
    # One look-up, since each has a gradient as large as the table.
    looked_up = functional.embedding(torch.cat([index.flatten() for index in indices]), rows) if indices else rows[:0]
    parts = looked_up.split([index.numel() for index in indices])
    found = (part.view(*index.shape, -1) for part, index in zip(parts, indices, strict=True))
    if tokens is not None:
        words, all_words = tokens(batch.words), tokens.weight if every else None
    else:
        words = _mean(next(found), has_copy_VC[batch.words])
        all_words = _mean(next(found), has_copy_VC) if every else None
    if batch.windows is None:
        return BatchVectors(words, all_words, words.unsqueeze(1))
    windows = next(found)
    if composition is not None:
        composed = composition(words, batch.windows)
        windows = torch.cat([windows, composed.unsqueeze(1).expand(-1, windows.shape[1], -1)], dim=2)
    return BatchVectors(words, all_words, windows)


def _mean(rows_VCE: Tensor, there_VC: Tensor) -> Tensor:
    """Return (V, E) the mean vector over the existing copies of each word."""
    if rows_VCE.shape[1] == 1:
        return rows_VCE.squeeze(1)
    return (rows_VCE * there_VC.unsqueeze(2)).sum(1) / there_VC.sum(1, keepdim=True)
