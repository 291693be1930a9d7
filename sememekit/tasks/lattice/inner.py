"""LSTMs inside chunks: the vectors of windows, composed from token vectors, and a model of the tokens of unlisted chunks."""

from collections.abc import Sequence
from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from sememekit.layers import ChosenLogits, four_gates, lstm_cell, lstm_scan, shared_dropout
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


class SubModelBatch(NamedTuple):
    """Tensors of the sub-model that all nodes of a batch share. T tokens, B sentences, L longest chunk, I size of its LSTM."""

    softmax: ChosenLogits
    # T + L tensors (B, 4 I): the contribution of each token to the gates of the first layer; empty with L = 1
    added: tuple[Tensor, ...]
    # (B, I) dropout masks on the recurrent outputs, on the inputs of upper layers, and on the final output; empty without
    # dropout
    masks: list[Tensor]
    targets: Tensor  # (T, L, B) the tokens from each node on
    # (T, L - 1, B) whether a chunk of 1 .. L - 1 tokens from a node ends with the end mark, which nothing can follow
    closes: Tensor


@final
class SubModel(nn.Module):
    """Probabilities of all chunks of 1 .. L tokens, listed or not, from a state of the main recurrence (Sec. 4.1.3).

    An LSTM reads a map of the state, then the tokens of the chunk. At each step it predicts the next token or, after the first
    token, the end of the chunk. A chunk of L tokens or with the end mark ends without this prediction, so the probabilities of
    all chunks sum to one, also in a padded batch:

    p(x_1 .. x_l) = prod_m p(x_m | before) * p(end of chunk | x_1 .. x_l), the last factor only if the chunk could continue.

    With ``marks`` as released, the softmax of every step has two more entries: the end of a chunk, and a start mark that no
    chunk contains. Their probability is lost where they cannot occur, and the sum is below one (``released_marks``). Token
    vectors of ``size_in`` are also the output vectors; ``longest`` is L, and 1 needs one step and no recurrence."""

    def __init__(
        self, width: int, num_words: int, size_in: int, size: int, longest: int, inner: Inner, *, released_marks: bool = False
    ) -> None:
        super().__init__()
        self.size, self.inner, self.released_marks = size, inner, released_marks
        self.begin = inner.map(width, size)
        self.output = nn.Linear(size, size_in)
        self.bias = nn.Parameter(torch.zeros(num_words))
        if longest > 1:
            self.input, self.recurrent = inner.map(size_in, size), inner.map(size, size, bias=False)
        if longest > 1 or released_marks:
            self.end = nn.Linear(size_in, 1)
        if released_marks:
            self.start = nn.Linear(size_in, 1)
        self.above = nn.ModuleList(UpperLayer(size, inner, longest > 1) for _ in range(inner.layers - 1))

    def prepare(self, every_VE: Tensor, words_WE: Tensor, batch: LatticeBatch) -> SubModelBatch:
        """Compute what all nodes share, from the vectors of all words and of the batch's W distinct words."""
        inner, longest, columns = self.inner, batch.rows.shape[2], batch.tokens.shape[1]
        softmax, dropped = ChosenLogits(every_VE, self.bias), self.training and inner.dropout > 0.0
        masks = inner.masks(words_WE, columns, *[self.size] * (2 * inner.layers)) if dropped else []
        added: tuple[Tensor, ...] = ()
        if longest > 1:
            places = torch.searchsorted(batch.words, batch.tokens)
            if dropped:
                (keep,) = inner.masks(words_WE, columns, words_WE.shape[1])
                gates = inner.gates(self.input(words_WE[places] * keep))
            else:
                gates = inner.gates(self.input(words_WE))[places]
            added = torch.cat([gates, gates.new_zeros(longest, *gates.shape[1:])]).unbind(0)
        depths = torch.arange(longest, device=batch.tokens.device)
        from_node = torch.arange(batch.num_tokens, device=batch.tokens.device)[:, None] + depths
        targets = batch.tokens[from_node.clamp(max=batch.num_tokens - 1)]
        return SubModelBatch(softmax, added, masks, targets, batch.closes[:, :, :-1].transpose(1, 2))

    def forward(self, hidden_NBH: Tensor, first: int, shared: SubModelBatch) -> Tensor:
        """(N, B, L) log-probabilities of the chunks that begin at the nodes ``first`` .. ``first`` + N - 1, from their states;
        arbitrary for chunks that go beyond a sentence."""
        nodes, columns, _ = hidden_NBH.shape
        targets = shared.targets[first : first + nodes]
        longest = targets.shape[1]
        steps = [self.inner.gates(self.begin(hidden_NBH))]
        for depth in range(1, longest):
            added = shared.added[first + depth - 1 : first + depth - 1 + nodes]
            steps.append(torch.stack(added) if nodes > 1 else added[0].unsqueeze(0))
        outputs = self._stack(torch.stack(steps), shared.masks)
        contexts = torch.tanh(self.output(outputs)).view(longest, nodes, columns, -1).transpose(0, 1)
        logits, normaliser = shared.softmax.pick(contexts.flatten(0, 2), targets.reshape(-1, 1))
        token, normaliser = logits.view(targets.shape), normaliser.view(targets.shape)
        if self.released_marks:
            end = self.end(contexts).squeeze(-1)
            normaliser = torch.logaddexp(normaliser, torch.logaddexp(end, self.start(contexts).squeeze(-1)))
            end = end[:, 1:]
        elif longest > 1:
            end = self.end(contexts[:, 1:]).squeeze(-1)
            normaliser = torch.cat([normaliser[:, :1], torch.logaddexp(normaliser[:, 1:], end)], dim=1)
        so_far = (token - normaliser).cumsum(1)
        if longest == 1:
            return so_far.transpose(1, 2)
        ending = (end - normaliser[:, 1:]).masked_fill(shared.closes[first : first + nodes], 0.0)
        return torch.cat([so_far[:, :-1] + ending, so_far[:, -1:]], dim=1).transpose(1, 2)

    def _stack(self, gates: Tensor, masks: list[Tensor]) -> Tensor:
        """(L, N B, I) outputs of the last layer from zero states, given the inputs (L, N, B, 4 I) of the first layer."""
        layers, masks = self.inner.layers, [mask.repeat(gates.shape[1], 1) for mask in masks]
        hidden = self._layer(gates.flatten(1, 2), getattr(self, "recurrent", None), masks[0] if masks else None)
        for number, layer in enumerate(self.above, start=1):
            assert isinstance(layer, UpperLayer)
            read = self.inner.gates(layer.input(hidden * masks[layers + number - 1] if masks else hidden))
            hidden = self._layer(read, layer.recurrent, masks[number] if masks else None)
        return hidden * masks[-1] if masks else hidden

    def _layer(self, gates: Tensor, recurrent: nn.Linear | None, mask: Tensor | None) -> Tensor:
        zero = gates.new_zeros(gates.shape[1], self.size)
        if len(gates) == 1 or recurrent is None:
            return lstm_cell(gates, torch.zeros_like(gates[:, :1]), zero[:1])[0]
        return lstm_scan(gates, self.inner.gates(recurrent.weight, 0), zero, zero, mask=mask)[0]
