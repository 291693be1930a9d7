"""A model of token sequences, for chunks that the chunk vocabulary does not list."""

from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from sememekit.layers import ChosenLogits, lstm_cell, lstm_scan
from sememekit.tasks.lattice.batch import LatticeBatch
from sememekit.tasks.lattice.composition import Inner, UpperLayer


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
