"""Parts of a lattice model beside its recurrence and its main softmax: vectors of windows, a model of unlisted chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from sememekit.layers import ChosenLogits, linear, lstm_cell, lstm_scan, shared_dropout
from sememekit.tasks.lattice.batch import Grams, LatticeBatch


@dataclass(frozen=True)
class Inner:
    """The LSTMs inside chunks, those of the sub-model and of the composition.

    Attributes:
        layers: of each.
        coupled: input gate 1 - f in place of one of its own, as ``LatticeLSTM``.
        dropout: rate on what each layer reads, on its previous output, and on what comes out of the sub-model. Masks last for a
            sentence in the sub-model; in the composition for all windows of a batch that begin (backward: end) with a token.
    """

    layers: int = 1
    coupled: bool = False
    dropout: float = 0.0

    @property
    def gates(self) -> int:
        """Rows of a gate matrix over the size of the state."""
        return 3 if self.coupled else 4

    def four(self, gates: Tensor, axis: int = -1) -> Tensor:
        """[u, f, i, o] where gates are coupled and [u, f, o] are given: 1 - sigmoid(z) = sigmoid(-z)."""
        if not self.coupled:
            return gates
        u, f, o = gates.chunk(3, dim=axis)
        return torch.cat([u, f, -f, o], dim=axis)


def _gates(size_in: int, size: int, inner: Inner, bias: bool = True) -> nn.Linear:
    """A map to the gates of an LSTM, uniform in +-1 / sqrt(size)."""
    layer = nn.Linear(size_in, inner.gates * size, bias=bias)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -(size**-0.5), size**-0.5)
    return layer


class _Upper(nn.Module):
    """A layer above the first: from the outputs of the one below."""

    def __init__(self, size: int, inner: Inner, recurrent: bool) -> None:
        super().__init__()
        self.input = _gates(size, size, inner)
        self.recurrent = _gates(size, size, inner, bias=False) if recurrent else None


@final
class Composition(nn.Module):
    """Vectors of windows from the vectors of their tokens: the two ends of a bidirectional LSTM (Sec. 4.1.3).

    A window of l tokens goes on from where its first l - 1 tokens have led the forward LSTM, and its last l - 1 the
    backward one; so each distinct window takes one step in each direction, whatever its length. With several layers each
    direction is a stack of its own, and its top layer gives the vector.

    Args:
        size_in: E, of the vectors of tokens.
        size: of the vectors of windows, both directions together; even.
        longest: L; with windows of one token nothing is recurrent.
        inner: layers, gates and dropout.
    """

    def __init__(self, size_in: int, size: int, longest: int, inner: Inner) -> None:
        super().__init__()
        self.size, self.inner = size // 2, inner
        self.forward_input, self.backward_input = (_gates(size_in, self.size, inner) for _ in range(2))
        self.forward_recurrent = _gates(self.size, self.size, inner, bias=False) if longest > 1 else None
        self.backward_recurrent = _gates(self.size, self.size, inner, bias=False) if longest > 1 else None
        self.forward_above = nn.ModuleList(_Upper(self.size, inner, longest > 1) for _ in range(inner.layers - 1))
        self.backward_above = nn.ModuleList(_Upper(self.size, inner, longest > 1) for _ in range(inner.layers - 1))

    def forward(self, tokens: Tensor, grams: Grams) -> Tensor:
        """(D, size) vectors of the windows of ``grams``, from those of the distinct tokens (D_1, E)."""
        onward = self._chain(tokens, self._layers("forward"), grams.prefix, grams.last, grams.first)
        back = self._chain(tokens, self._layers("backward"), grams.suffix, grams.first, grams.last)
        return torch.cat([torch.cat(onward), torch.cat(back)], dim=1)

    def _layers(self, direction: str) -> list[tuple[nn.Linear, nn.Linear | None]]:
        """(input map, recurrent map) of each layer."""
        above = getattr(self, f"{direction}_above")
        first = getattr(self, f"{direction}_input"), getattr(self, f"{direction}_recurrent")
        return [first, *((layer.input, layer.recurrent) for layer in above)]

    def _chain(
        self,
        tokens: Tensor,
        layers: Sequence[tuple[nn.Linear, nn.Linear | None]],
        shorter: Sequence[Tensor],
        new: Sequence[Tensor],
        anchors: Sequence[Tensor],
    ) -> list[Tensor]:
        """The top layer's outputs (D_l, S) for each length, the shortest first.

        Args:
            tokens: (D_1, E).
            layers: maps of the stack.
            shorter: for l = 2 .. L the windows that those of l tokens go on from.
            new: for l = 1 .. L the token that each window adds, as a number of a distinct token.
            anchors: for l = 1 .. L the token that a window and all that it went on from begin with: masks are drawn for these.
        """
        inner, masked = self.inner, self.training and self.inner.dropout > 0.0
        below, on_output = self._masks(tokens) if masked else ([], [])
        ready = None if masked else inner.four(linear(tokens, layers[0][0]))
        matrices = [None if recurrent is None else inner.four(recurrent.weight, 0) for _, recurrent in layers]
        outputs: list[Tensor] = []
        states: list[tuple[Tensor, Tensor]] = []
        for length, (token, anchor) in enumerate(zip(new, anchors, strict=True)):
            before = shorter[length - 1] if length else None
            after: list[tuple[Tensor, Tensor]] = []
            for number, (read, _) in enumerate(layers):
                if number:
                    x = after[-1][0]
                    added = inner.four(linear(x * below[number][anchor] if masked else x, read))
                elif ready is None:
                    added = inner.four(linear(tokens[token] * below[0][anchor], read))
                else:
                    added = ready[token] if length else ready
                matrix = matrices[number]
                if before is None or matrix is None:
                    after.append(lstm_cell(added, added.new_zeros(1, 4 * self.size), added.new_zeros(1, self.size)))
                    continue
                hidden, cell = states[number]
                seen = hidden * on_output[number][anchors[length - 1]] if masked else hidden
                after.append(lstm_cell(added, functional.linear(seen, matrix)[before], cell[before]))
            states = after
            outputs.append(after[-1][0])
        return outputs

    def _masks(self, tokens: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Masks for each of (D_1, E) tokens: on what each layer reads, and on its previous output."""
        sizes = [tokens.shape[1], *[self.size] * (2 * self.inner.layers - 1)]
        ones = (tokens.new_ones(len(tokens), size) for size in sizes)
        masks = [shared_dropout(one, self.inner.dropout, True, ()) for one in ones]
        return masks[: self.inner.layers], masks[self.inner.layers :]


@dataclass(frozen=True)
class Prepared:
    """What all nodes of a batch share in the sub-model. B sentences, T tokens.

    Attributes:
        choose: the softmax over tokens.
        added: what each token adds to the gates of the first layer (B, 4 S), T + L times; nothing with L = 1.
        masks: on the outputs of the layers as their next step reads them, on what layers above the first read, and on what
            comes out of the last, (B, S) each; nothing without dropout.
    """

    choose: ChosenLogits
    added: tuple[Tensor, ...]
    masks: tuple[Tensor, ...]


@final
class SubModel(nn.Module):
    """Probabilities of all chunks of 1 .. L tokens, listed or not, from a state of the main recurrence (Sec. 4.1.3).

    An LSTM is fed a map of the state, then the tokens of the chunk. At each step it chooses the next token, or, once there is
    one, the end of the chunk; a chunk of L tokens or with the end mark ends by itself. So the probabilities of all chunks sum
    to one, in a padded batch as anywhere:

    p(x_1 .. x_l) = prod_m p(x_m | before) * p(end of chunk | x_1 .. x_l), the last factor only where the chunk might go on.

    With ``marks`` as released the softmax of every step, the first included, holds two entries more: the end of a chunk, and a
    mark of its start that no chunk has. What falls to them where they cannot stand is lost: the sum stays below one.

    Args:
        width: H, of the states.
        num_words: V.
        size_in: E, of the vectors of tokens, which are the output vectors as well.
        size: of the LSTM.
        longest: L; with 1 there is one step and nothing recurrent.
        inner: layers, gates and dropout.
        released_marks: whether the marks of chunks are choices everywhere, as in the released code.
    """

    def __init__(
        self, width: int, num_words: int, size_in: int, size: int, longest: int, inner: Inner, *, released_marks: bool = False
    ) -> None:
        super().__init__()
        self.size, self.inner, self.released_marks = size, inner, released_marks
        self.begin = _gates(width, size, inner)
        self.output = nn.Linear(size, size_in)
        self.bias = nn.Parameter(torch.zeros(num_words))
        if longest > 1:
            self.input, self.recurrent = _gates(size_in, size, inner), _gates(size, size, inner, bias=False)
        if longest > 1 or released_marks:
            self.end = nn.Linear(size_in, 1)
        if released_marks:
            self.start = nn.Linear(size_in, 1)
        self.above = nn.ModuleList(_Upper(size, inner, longest > 1) for _ in range(inner.layers - 1))

    def prepare(self, every: Tensor, words: Tensor, batch: LatticeBatch) -> Prepared:
        """What all nodes share.

        Args:
            every: (V, E) vectors of all words.
            words: (D_1, E) those of the distinct words of the batch.
            batch: of T tokens.
        """
        longest, columns = batch.rows.shape[2], batch.tokens.shape[1]
        choose = ChosenLogits(every, self.bias)
        rate = self.inner.dropout if self.training else 0.0
        masks: tuple[Tensor, ...] = ()
        if rate:
            ones = words.new_ones(columns, self.size)
            masks = tuple(shared_dropout(ones, rate, True, ()) for _ in range(2 * self.inner.layers))
        if longest == 1:
            return Prepared(choose, (), masks)
        places = torch.searchsorted(batch.words, batch.tokens)
        if rate:
            keep = shared_dropout(words.new_ones(columns, words.shape[1]), rate, True, ())
            ready = self.inner.four(linear(words[places] * keep, self.input))
        else:
            ready = self.inner.four(linear(words, self.input))[places]
        behind = ready.new_zeros(longest, *ready.shape[1:])
        return Prepared(choose, torch.cat([ready, behind]).unbind(0), masks)

    def forward(self, hidden: Tensor, first: int, batch: LatticeBatch, shared: Prepared) -> Tensor:
        """Log-probabilities of the chunks that begin at some nodes.

        Args:
            hidden: (N, B, H) states of the nodes ``first`` .. ``first`` + N - 1.
            first: the first of them.
            batch: of T tokens.
            shared: from ``prepare``.

        Returns:
            (N, B, L); any number for chunks that go beyond a sentence.
        """
        choose, added = shared.choose, shared.added
        nodes, columns, _ = hidden.shape
        longest = batch.rows.shape[2]
        steps = [self.inner.four(linear(hidden, self.begin))]
        for depth in range(1, longest):
            steps.append(torch.stack(added[first + depth - 1 : first + depth - 1 + nodes]))
        outputs = self._stack(torch.stack(steps), shared.masks)
        contexts = torch.tanh(linear(outputs, self.output)).view(longest, nodes, columns, -1).transpose(0, 1)
        end_of_text = batch.num_tokens - 1
        places = torch.arange(first, first + nodes, device=hidden.device)[:, None] + torch.arange(longest, device=hidden.device)
        targets = batch.tokens[places.clamp(max=end_of_text)].view(-1, 1)
        logits, normaliser = choose.pick(contexts.flatten(0, 2), targets)
        shape = (nodes, longest, columns)
        token, normaliser = logits.view(shape), normaliser.view(shape)
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
        closed = batch.closes[first : first + nodes, :, :-1].transpose(1, 2)
        ending = (end - normaliser[:, 1:]).masked_fill(closed, 0.0)
        return torch.cat([so_far[:, :-1] + ending, so_far[:, -1:]], dim=1).transpose(1, 2)

    def _stack(self, ready: Tensor, masks: tuple[Tensor, ...]) -> Tensor:
        """(L, N B, S) outputs of the last layer from zero states, from what the first one reads (L, N, B, 4 S)."""
        nodes, layers = ready.shape[1], self.inner.layers
        of_rows = [mask.repeat(nodes, 1) for mask in masks]
        hidden = self._scan(ready.flatten(1, 2), getattr(self, "recurrent", None), of_rows[0] if masks else None)
        for number, layer in enumerate(self.above, start=1):
            assert isinstance(layer, _Upper)
            x = hidden * of_rows[layers + number - 1] if masks else hidden
            hidden = self._scan(self.inner.four(linear(x, layer.input)), layer.recurrent, of_rows[number] if masks else None)
        return hidden * of_rows[-1] if masks else hidden

    def _scan(self, ready: Tensor, recurrent: nn.Linear | None, mask: Tensor | None) -> Tensor:
        """(L, M, S) outputs of a layer from a zero state, whose input side is ready (L, M, 4 S)."""
        zero = ready.new_zeros(ready.shape[1], self.size)
        if len(ready) == 1 or recurrent is None:
            return lstm_cell(ready, torch.zeros_like(ready[:, :1]), zero[:1])[0]
        return lstm_scan(ready, self.inner.four(recurrent.weight, 0), zero, zero, mask=mask)[0]
