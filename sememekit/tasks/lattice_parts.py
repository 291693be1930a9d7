"""Parts of a lattice model beside its recurrence and its main softmax: vectors of windows, a model of unlisted chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from sememekit.layers import ChosenLogits, linear, lstm_cell, lstm_scan
from sememekit.tasks.lattice_batch import Grams, LatticeBatch


def _gates(size_in: int, size: int, bias: bool = True) -> nn.Linear:
    """A map to the four gates of an LSTM, uniform in +-1 / sqrt(size)."""
    layer = nn.Linear(size_in, 4 * size, bias=bias)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -(size**-0.5), size**-0.5)
    return layer


@final
class Composition(nn.Module):
    """Vectors of windows from the vectors of their tokens: the two ends of a bidirectional LSTM (Sec. 4.1.3).

    A window of l tokens goes on from where its first l - 1 tokens have led the forward LSTM, and its last l - 1 the
    backward one; so each distinct window takes one step in each direction, whatever its length.

    Args:
        size_in: E, of the vectors of tokens.
        size: of the vectors of windows, both directions together; even.
        longest: L; with windows of one token nothing is recurrent.
    """

    def __init__(self, size_in: int, size: int, longest: int) -> None:
        super().__init__()
        self.size = size // 2
        self.forward_input, self.backward_input = _gates(size_in, self.size), _gates(size_in, self.size)
        self.forward_recurrent = _gates(self.size, self.size, bias=False) if longest > 1 else None
        self.backward_recurrent = _gates(self.size, self.size, bias=False) if longest > 1 else None

    def forward(self, tokens: Tensor, grams: Grams) -> Tensor:
        """(D, size) vectors of the windows of ``grams``, from those of the distinct tokens (D_1, E)."""
        onward = self._chain(linear(tokens, self.forward_input), self.forward_recurrent, grams.prefix, grams.last)
        back = self._chain(linear(tokens, self.backward_input), self.backward_recurrent, grams.suffix, grams.first)
        return torch.cat([torch.cat(onward), torch.cat(back)], dim=1)

    def _chain(
        self, ready: Tensor, recurrent: nn.Linear | None, shorter: Sequence[Tensor], new: Sequence[Tensor]
    ) -> list[Tensor]:
        nothing = ready.new_zeros(1, 4 * self.size), ready.new_zeros(1, self.size)
        hidden, cell = lstm_cell(ready, *nothing)
        outputs = [hidden]
        if recurrent is None:
            return outputs
        for before, token in zip(shorter, new[1:], strict=True):
            from_before = functional.linear(hidden, recurrent.weight)[before]
            hidden, cell = lstm_cell(ready[token], from_before, cell[before])
            outputs.append(hidden)
        return outputs


@final
class SubModel(nn.Module):
    """Probabilities of all chunks of 1 .. L tokens, listed or not, from a state of the main recurrence (Sec. 4.1.3).

    An LSTM is fed a map of the state, then the tokens of the chunk. At each step it chooses the next token, or, once there is
    one, the end of the chunk; a chunk of L tokens or with the end mark ends by itself. So the probabilities of all chunks sum
    to one, in a padded batch as anywhere:

    p(x_1 .. x_l) = prod_m p(x_m | before) * p(end of chunk | x_1 .. x_l), the last factor only where the chunk might go on.

    Args:
        width: H, of the states.
        num_words: V.
        size_in: E, of the vectors of tokens, which are the output vectors as well.
        size: of the LSTM.
        longest: L; with 1 there is one step and nothing recurrent.
    """

    def __init__(self, width: int, num_words: int, size_in: int, size: int, longest: int) -> None:
        super().__init__()
        self.size = size
        self.begin = _gates(width, size)
        self.output = nn.Linear(size, size_in)
        self.bias = nn.Parameter(torch.zeros(num_words))
        if longest > 1:
            self.input, self.recurrent = _gates(size_in, size), _gates(size, size, bias=False)
            self.end = nn.Linear(size_in, 1)

    def prepare(self, every: Tensor, words: Tensor, batch: LatticeBatch) -> tuple[ChosenLogits, tuple[Tensor, ...]]:
        """What all nodes share: the softmax over tokens, and what each token adds to the gates (B, 4 S), T + L times.

        Args:
            every: (V, E) vectors of all words.
            words: (D_1, E) those of the distinct words of the batch.
            batch: of T tokens.
        """
        longest = batch.rows.shape[2]
        choose = ChosenLogits(every, self.bias)
        if longest == 1:
            return choose, ()
        ready = linear(words, self.input)[torch.searchsorted(batch.words, batch.tokens)]
        behind = ready.new_zeros(longest, *ready.shape[1:])
        return choose, torch.cat([ready, behind]).unbind(0)

    def forward(
        self, hidden: Tensor, first: int, batch: LatticeBatch, shared: tuple[ChosenLogits, tuple[Tensor, ...]]
    ) -> Tensor:
        """Log-probabilities of the chunks that begin at some nodes.

        Args:
            hidden: (N, B, H) states of the nodes ``first`` .. ``first`` + N - 1.
            first: the first of them.
            batch: of T tokens.
            shared: from ``prepare``.

        Returns:
            (N, B, L); any number for chunks that go beyond a sentence.
        """
        choose, added = shared
        nodes, columns, _ = hidden.shape
        longest = batch.rows.shape[2]
        steps = [linear(hidden, self.begin)]
        for depth in range(1, longest):
            steps.append(torch.stack(added[first + depth - 1 : first + depth - 1 + nodes]))
        ready = torch.stack(steps).flatten(1, 2)
        contexts = torch.tanh(linear(self._scan(ready), self.output)).view(longest, nodes, columns, -1).transpose(0, 1)
        end_of_text = batch.num_tokens - 1
        places = torch.arange(first, first + nodes, device=hidden.device)[:, None] + torch.arange(longest, device=hidden.device)
        targets = batch.tokens[places.clamp(max=end_of_text)].view(-1, 1)
        logits, normaliser = choose.pick(contexts.flatten(0, 2), targets)
        shape = (nodes, longest, columns)
        token, normaliser = logits.view(shape), normaliser.view(shape)
        if longest == 1:
            return (token - normaliser).transpose(1, 2)
        end = self.end(contexts[:, 1:]).squeeze(-1)
        normaliser = torch.cat([normaliser[:, :1], torch.logaddexp(normaliser[:, 1:], end)], dim=1)
        so_far = (token - normaliser).cumsum(1)
        closed = batch.closes[first : first + nodes, :, :-1].transpose(1, 2)
        ending = (end - normaliser[:, 1:]).masked_fill(closed, 0.0)
        return torch.cat([so_far[:, :-1] + ending, so_far[:, -1:]], dim=1).transpose(1, 2)

    def _scan(self, ready: Tensor) -> Tensor:
        """(L, M, S) outputs of the LSTM from a zero state, whose input side is ready (L, M, 4 S)."""
        zero = ready.new_zeros(ready.shape[1], self.size)
        if len(ready) == 1:
            return lstm_cell(ready, torch.zeros_like(ready[:, :1]), zero[:1])[0]
        return lstm_scan(ready, self.recurrent.weight, zero, zero)[0]
