"""Lattice language models written out: one sentence, one node, one edge and one vector at a time, as the equations have it.

Takes its weights from a ``Lattice`` task. The benchmark runs it, too, to say what batching is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from sememekit.encoders.lattice_lstm import LatticeLSTM
from sememekit.tasks.lattice.inner import SubModel
from sememekit.tasks.lattice.model import Lattice
from sememekit.tasks.lattice.settings import GUMBEL, SAMPLED, TREES

Vectors = list[Tensor]
"""One vector for each layer."""


class Twin:
    """The log-probability of one sentence. ``frozen`` puts known weights M in the place of those that the rule finds."""

    def __init__(self, model: Lattice) -> None:
        assert isinstance(model.encoder, LatticeLSTM)
        self.model, self.encoder, self.rule = model, model.encoder, model.settings.state
        self.size = self.encoder.output_size
        entries = model.entries
        self.rows = {
            entries.chunks.tokens(chunk): [row for row in entries.rows[chunk].tolist() if row >= 0]
            for chunk in range(len(entries.chunks))
        }

    def log_probability(self, tokens: Sequence[int], frozen: list[Tensor] | None = None) -> Tensor:
        """log p of ``tokens``, the end mark last. Afterwards ``weights`` has M, and ``edges`` (begin, end, copy) -> log p."""
        model = self.model
        self.edges: dict[tuple[int, int, int], Tensor] = {}
        self.weights: list[Tensor] = []
        length, longest = len(tokens), model.settings.longest_chunk
        self.look_up(tokens, longest)
        zero = [torch.zeros_like(model.output.weight[0, :1]).expand(self.size) for _ in self.encoder.inputs]
        first = self.lstm(self.start_vector(), [(1.0, zero, zero)])
        bundles = [[(torch.ones((), dtype=zero[0].dtype), *first)]]
        alphas = [torch.zeros((), dtype=zero[0].dtype)]
        for node in range(length):
            if node and self.rule == "segmental":
                bundles.append([(bundles[0][0][0], *self.lstm(self.token_vectors[tokens[node - 1]], bundles[node - 1]))])
            elif node:
                arriving = [
                    (edge, self.lstm(self.chunk_vector(tokens[edge[0] : edge[1]], edge[2]), bundles[edge[0]]))
                    for edge in self.ending_at(node)
                ]
                paths = torch.stack([alphas[edge[0]] + self.edges[edge] for edge, _ in arriving])
                copies = model.entries.most_copies
                places = [(node - begin - 1) * copies + copy for (begin, _, copy), _ in arriving]
                draws = min(node, longest) * copies
                weights = (
                    self.merging_weights(paths - paths.logsumexp(0), places, draws) if frozen is None else frozen[node - 1]
                )
                self.weights.append(weights.detach())
                states = [(weight, *state) for weight, (_, state) in zip(weights, arriving, strict=True)]
                bundles.append(states if self.rule in TREES else [self.merged(states)])
            output = torch.stack([weight * hidden[-1] for weight, hidden, _ in bundles[node]]).sum(0)
            main = model.decoder.log_probs(torch.tanh(model.output.weight @ output + model.output.bias))
            for end in range(node + 1, min(node + longest, length) + 1):
                for copy, score in enumerate(self.edge_scores(main, output, tokens[node:end], end == length)):
                    self.edges[node, end, copy] = score
            ways = [alphas[edge[0]] + self.edges[edge] for edge in self.ending_at(node + 1)]
            alphas.append(torch.stack(ways).logsumexp(0))
        return alphas[length]

    def ending_at(self, node: int) -> list[tuple[int, int, int]]:
        """Edges that end at a node, the shortest first."""
        return sorted((edge for edge in self.edges if edge[1] == node), key=lambda edge: (node - edge[0], edge[2]))

    def merging_weights(self, log_posterior: Tensor, places: list[int], draws: int) -> Tensor:
        """M, or what the rule makes of it. Noise is drawn for all edges that might be; ``places`` says which there are."""
        settings = self.model.settings
        if self.rule == "direct":
            return torch.ones_like(log_posterior)
        if not settings.posterior_gradient:
            log_posterior = log_posterior.detach()
        if self.rule not in SAMPLED:
            return log_posterior.exp()
        if self.model.training:
            log_posterior = log_posterior - torch.empty(draws, dtype=log_posterior.dtype).exponential_()[places].log()
            if self.rule in GUMBEL:
                return (log_posterior / self.model.temperature).softmax(0)
        return torch.eye(len(log_posterior), dtype=log_posterior.dtype)[log_posterior.argmax()]

    def merged(self, states: list[tuple[Tensor, Vectors, Vectors]]) -> tuple[Tensor, Vectors, Vectors]:
        layers = range(len(self.encoder.inputs))
        hidden = [torch.stack([weight * h[layer] for weight, h, _ in states]).sum(0) for layer in layers]
        cell = [torch.stack([weight * c[layer] for weight, _, c in states]).sum(0) for layer in layers]
        return torch.ones_like(states[0][0]), hidden, cell

    def lstm(self, x: Tensor, bundle: list[tuple[Tensor, Vectors, Vectors]]) -> tuple[Vectors, Vectors]:
        """One step on x out of sources h_k, c_k with weights M_k; the ordinary LSTM where there is one source."""
        hidden, cell = [], []
        coupled = self.encoder.settings.coupled
        for layer, (from_input, from_output) in enumerate(zip(self.encoder.inputs, self.encoder.recurrents, strict=True)):
            mean = torch.stack([weight * h[layer] for weight, h, _ in bundle]).sum(0)
            added = from_input.weight @ x + from_input.bias
            parts = [added, from_output.weight @ mean]
            u, f, *i, o = (sum(part.split(self.size)[gate] for part in parts) for gate in range(3 if coupled else 4))
            del f
            kept, forgotten = 0.0, 0.0
            for weight, h, c in bundle:
                forget = torch.sigmoid(added.split(self.size)[1] + (from_output.weight @ h[layer]).split(self.size)[1])
                kept = kept + weight * forget * c[layer]
                forgotten = forgotten + weight * forget
            gate = 1 - forgotten if coupled else torch.sigmoid(i[0])
            c = kept + gate * torch.tanh(u)
            x = torch.sigmoid(o) * torch.tanh(c)
            hidden.append(x)
            cell.append(c)
        return hidden, cell

    def look_up(self, tokens: Sequence[int], longest: int) -> None:
        """The vectors of all words, each the mean of its copies, and the vectors of the rows that this sentence needs."""
        weight, of_words = self.model.embedding.weight, [self.rows[word,] for word in range(len(self.model.vocabulary))]
        if self.model.token_embedding is not None:
            self.token_vectors = self.model.token_embedding.weight
        elif all(len(rows) == 1 for rows in of_words):
            self.token_vectors = weight[[rows[0] for rows in of_words]]
        else:
            self.token_vectors = torch.stack(
                [copies.mean(0) for copies in weight[list(chain.from_iterable(of_words))].split(list(map(len, of_words)))]
            )
        windows = [tokens[begin:end] for begin in range(len(tokens)) for end in range(begin + 1, begin + longest + 1)]
        needed = sorted({row for window in [*windows, [self.model.opening]] for row in self.rows_of(window)})
        if self.model.entries.sentinel is not None:
            needed.append(self.model.entries.sentinel)
        self.own = dict(zip(needed, weight[needed].unbind(0), strict=True))

    def start_vector(self) -> Tensor:
        model = self.model
        return self.token_vectors[model.opening] if self.rule == "segmental" else self.chunk_vector([model.opening], 0)

    def rows_of(self, tokens: Sequence[int]) -> list[int]:
        """Rows of the copies of a chunk; none for one outside the vocabulary."""
        return self.rows.get(tuple(tokens), [])

    def chunk_vector(self, tokens: Sequence[int], copy: int) -> Tensor:
        rows, entries = self.rows_of(tokens), self.model.entries
        row = rows[copy] if rows else entries.sentinel
        assert row is not None
        own = self.own[row]
        composition = self.model.composition
        if composition is None:
            return own
        ends = [own]
        for order, direction in ((tokens, "forward"), (tokens[::-1], "backward")):
            above = [(layer.input, layer.recurrent) for layer in getattr(composition, f"{direction}_above")]
            first = getattr(composition, f"{direction}_input"), getattr(composition, f"{direction}_recurrent")
            ready = [first[0].weight @ self.token_vectors[token] + first[0].bias for token in order]
            ends.append(self.inner(ready, [first, *above], composition.size)[-1])
        return torch.cat(ends)

    def inner(self, ready: list[Tensor], layers: list[tuple[Any, Any]], size: int) -> list[Tensor]:
        """Outputs of the top layer of a stack of LSTMs inside a chunk, from what the first reads, a step at a time."""
        coupled = self.model.settings.inner_coupled
        states = [(torch.zeros(size, dtype=ready[0].dtype), torch.zeros(size, dtype=ready[0].dtype)) for _ in layers]
        outputs = []
        for read in ready:
            for number, (into, recurrent) in enumerate(layers):
                gates = read if number == 0 else into.weight @ states[number - 1][0] + into.bias
                if recurrent is not None:
                    gates = gates + recurrent.weight @ states[number][0]
                states[number] = plain_cell(gates, states[number][1], coupled)
            outputs.append(states[-1][0])
        return outputs

    def edge_scores(self, main: Tensor, output: Tensor, tokens: Sequence[int], at_the_end: bool) -> list[Tensor]:
        """log p(chunk, copy | state), one for each copy, from the main softmax; none for a chunk that has no edge."""
        model, rows = self.model, self.rows_of(tokens)
        if model.sub_model is None:
            return [main[row] for row in rows]
        assert model.entries.sentinel is not None
        below = main[model.entries.sentinel] + self.sub_score(model.sub_model, output, tokens, at_the_end)
        if not rows:
            return [below]
        share = torch.tensor(float(len(rows)), dtype=main.dtype).log()
        return [torch.logaddexp(main[row], below - share) for row in rows]

    def sub_score(self, sub: SubModel, output: Tensor, tokens: Sequence[int], at_the_end: bool) -> Tensor:
        words = self.token_vectors
        ready = [sub.begin.weight @ output + sub.begin.bias]
        if self.model.settings.longest_chunk > 1:
            ready += [sub.input.weight @ words[token] + sub.input.bias for token in tokens]
        layers = [(None, getattr(sub, "recurrent", None)), *((layer.input, layer.recurrent) for layer in sub.above)]
        total = torch.zeros((), dtype=output.dtype)
        for depth, hidden in enumerate(self.inner(ready, layers, sub.size)):
            context = torch.tanh(sub.output.weight @ hidden + sub.output.bias)
            logits = words @ context + sub.bias
            if sub.released_marks:
                logits = torch.cat([logits, sub.start(context)])
            if depth or sub.released_marks:
                logits = torch.cat([logits, sub.end(context)])
            choices = logits.log_softmax(0)
            if depth == len(tokens):
                return total + choices[-1]
            total = total + choices[tokens[depth]]
            if depth + 1 == len(tokens) and (at_the_end or len(tokens) == self.model.settings.longest_chunk):
                return total
        raise AssertionError


def plain_cell(ready: Tensor, cell: Tensor, coupled: bool) -> tuple[Tensor, Tensor]:
    if coupled:
        u, f, o = ready.chunk(3)
        i = -f
    else:
        u, f, i, o = ready.chunk(4)
    new = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(u)
    return torch.sigmoid(o) * torch.tanh(new), new
