"""The released model of lattices (Buckman and Neubig 2018, their code), dense, in float64, an edge at a time.

It has parameters of its own, laid out as in the release: one matrix for the gates of a layer, over input, previous output and a
column for the bias; [i, o, g] in the LSTMs inside chunks, where f = 1 - i; [o, g] beside a forget gate of its own in the main
recurrence, where i = 1 - the sum of the weighted forget gates. ``give`` writes them into a ``Lattice`` task, where the same
model has other names. The end of a sentence closes its chunk in every case, which the release does for the longest sentence
of a batch only (it has batches of equal lengths).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sememekit.encoders.lattice_lstm import LatticeLSTM
from sememekit.tasks.lattice.model import Lattice

Stack = list[Tensor]
"""A vector for each layer."""

Weigh = Callable[[Tensor, int], Tensor]
"""From the log-probabilities of the paths into a node (K,) and its number to the weights of their states (K,)."""


@dataclass
class Released:
    """The model. Token ids are numbers in ``words``; ``words`` ends with the two marks of chunks.

    Attributes:
        words: tokens, "<s>" and "<eos>" among them.
        chunks: what the main softmax chooses from, the last for all chunks that are not listed.
        longest: L.
        layers: of every LSTM.
        dim, emb: sizes.
    """

    words: list[str]
    chunks: list[tuple[str, ...]]
    longest: int
    layers: int
    dim: int
    emb: int

    def __post_init__(self) -> None:
        generator = torch.Generator().manual_seed(3)

        def some(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64) * 0.6

        dim, emb, layers = self.dim, self.emb, self.layers
        below = [2 * emb] + [dim] * (layers - 1)
        self.main_gates = [some(2 * dim, size + dim + 1) for size in below]
        self.main_forget_in = [some(dim, size + 1) for size in below]
        self.main_forget_out = [some(dim, dim) for _ in below]
        self.sub = [some(3 * emb, 2 * emb + 1) for _ in range(layers)]
        half = emb // 2
        self.ways = [
            [some(3 * half, size + half + 1) for size in [emb] + [half] * (layers - 1)] for _ in ("forward", "backward")
        ]
        self.project = some(emb, dim)
        self.sub_map, self.sub_bias = some(emb, emb), some(emb)
        self.token_table, self.token_bias = some(len(self.words), emb), some(len(self.words))
        self.chunk_map, self.chunk_map_bias = some(emb, dim), some(emb)
        self.chunk_table, self.chunk_bias = some(len(self.chunks), emb), some(len(self.chunks))

    def log_probability(self, sentence: Sequence[str], weigh: Weigh) -> Tensor:
        """log p of the words of a sentence and its end, over all segmentations."""
        text = ["<s>", *sentence, "<eos>"]
        zero = [torch.zeros(self.dim, dtype=torch.float64) for _ in range(self.layers)]
        nodes: list[list[tuple[Tensor, Stack, Stack]]] = [[(torch.ones((), dtype=torch.float64), zero, zero)]]
        # ending[j]: edges into the node j as (sources, chunk, log-probability of the path); node 0 is the start token.
        ending: list[list[tuple[int, list[str], Tensor]]] = [[] for _ in text]
        ending[0] = [(0, ["<s>"], torch.zeros((), dtype=torch.float64))]
        states: list[list[tuple[Tensor, Stack, Stack]]] = []
        for place in range(len(text) - 1):
            paths = torch.stack([path for _, _, path in ending[place]])
            weights = weigh(paths, place) if len(paths) > 1 else torch.ones(1, dtype=torch.float64)
            arrived = []
            for weight, (source, chunk, _) in zip(weights, ending[place], strict=True):
                sources = nodes[0] if place == 0 else states[source]
                arrived.append((weight, *self.tree_step(self.chunk_vector(chunk), sources)))
            states.append(arrived)
            output = torch.stack([weight * hidden[-1] for weight, hidden, _ in arrived]).sum(0)
            total = paths.logsumexp(0)
            for end in range(place + 1, min(place + self.longest, len(text) - 1) + 1):
                chunk = text[place + 1 : end + 1]
                ending[end].append((place, chunk, total + self.chunk_score(output, chunk)))
            for edges in ending:
                edges.sort(key=lambda edge: len(edge[1]))
        return torch.stack([path for _, _, path in ending[-1]]).logsumexp(0)

    def tree_step(self, x: Tensor, sources: list[tuple[Tensor, Stack, Stack]]) -> tuple[Stack, Stack]:
        one = torch.ones(1, dtype=torch.float64)
        hidden, cell = [], []
        for layer in range(self.layers):
            mean = torch.stack([weight * h[layer] for weight, h, _ in sources]).sum(0)
            o, g = (self.main_gates[layer] @ torch.cat([x, mean, one])).split(self.dim)
            from_input = self.main_forget_in[layer] @ torch.cat([x, one])
            forget = [w * torch.sigmoid(from_input + self.main_forget_out[layer] @ h[layer]) for w, h, _ in sources]
            kept = torch.stack([f * c[layer] for f, (_, _, c) in zip(forget, sources, strict=True)]).sum(0)
            new = kept + (1 - torch.stack(forget).sum(0)) * torch.tanh(g)
            x = torch.sigmoid(o) * torch.tanh(new)
            hidden.append(x)
            cell.append(new)
        return hidden, cell

    def coupled(self, matrices: list[Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
        """Outputs of the top layer of a stack of LSTMs whose forget gate is 1 - i."""
        one = torch.ones(1, dtype=torch.float64)
        size = len(matrices[0]) // 3
        hidden = [torch.zeros(size, dtype=torch.float64) for _ in matrices]
        cell = list(hidden)
        outputs = []
        for x in inputs:
            for layer, matrix in enumerate(matrices):
                i, o, g = (matrix @ torch.cat([x, hidden[layer], one])).split(size)
                i = torch.sigmoid(i)
                cell[layer] = (1 - i) * cell[layer] + i * torch.tanh(g)
                hidden[layer] = x = torch.sigmoid(o) * torch.tanh(cell[layer])
            outputs.append(x)
        return outputs

    def chunk_vector(self, chunk: list[str]) -> Tensor:
        row = self.chunks.index(tuple(chunk)) if tuple(chunk) in self.chunks else len(self.chunks) - 1
        tokens = [self.token_table[self.words.index(word)] for word in chunk]
        ends = [self.coupled(self.ways[0], tokens)[-1], self.coupled(self.ways[1], tokens[::-1])[-1]]
        return torch.cat([self.chunk_table[row], *ends])

    def chunk_score(self, output: Tensor, chunk: list[str]) -> Tensor:
        main = (self.chunk_table @ torch.tanh(self.chunk_map @ output + self.chunk_map_bias) + self.chunk_bias).log_softmax(0)
        below = main[-1] + self.sub_score(output, chunk)
        return torch.logaddexp(main[self.chunks.index(tuple(chunk))], below) if tuple(chunk) in self.chunks else below

    def sub_score(self, output: Tensor, chunk: list[str]) -> Tensor:
        read = [self.project @ output, *(self.token_table[self.words.index(word)] for word in chunk)]
        wanted = [*chunk, "<chunk_end>"]
        if len(chunk) == self.longest or chunk[-1] == "<eos>":
            wanted.pop()
        total = torch.zeros((), dtype=torch.float64)
        for hidden, word in zip(self.coupled(self.sub, read), wanted, strict=False):
            context = torch.tanh(self.sub_map @ hidden + self.sub_bias)
            total = total + (self.token_table @ context + self.token_bias).log_softmax(0)[self.words.index(word)]
        return total

    @torch.no_grad()
    def give(self, task: Lattice) -> None:
        """Write the parameters into a task of the same sizes."""
        encoder, sub, composition, tokens = task.encoder, task.sub_model, task.composition, task.token_embedding
        assert isinstance(encoder, LatticeLSTM)
        assert sub is not None
        assert composition is not None
        assert tokens is not None
        dim = self.dim
        for layer in range(self.layers):
            gates, forget = self.main_gates[layer], self.main_forget_in[layer]
            size = forget.shape[1] - 1
            o, g = gates.split(dim)
            into, again = encoder.inputs[layer], encoder.recurrents[layer]
            into.weight.copy_(torch.cat([g[:, :size], forget[:, :size], o[:, :size]]))
            into.bias.copy_(torch.cat([g[:, -1], forget[:, -1], o[:, -1]]))
            again.weight.copy_(torch.cat([g[:, size:-1], self.main_forget_out[layer], o[:, size:-1]]))
        known = [word for word in self.words if word not in ("<chunk_start>", "<chunk_end>")]
        rows = [self.words.index(word) for word in known]
        places = torch.from_numpy(task.vocabulary.encode(known).astype("int64"))
        tokens.weight[places] = self.token_table[rows]
        sub.bias[places] = self.token_bias[rows]
        for mark, layer in (("<chunk_start>", sub.start), ("<chunk_end>", sub.end)):
            layer.weight[0] = self.token_table[self.words.index(mark)]
            layer.bias[0] = self.token_bias[self.words.index(mark)]
        sub.output.weight.copy_(self.sub_map)
        sub.output.bias.copy_(self.sub_bias)
        first, bias, again = self.parts(self.sub[0], self.emb)
        sub.begin.weight.copy_(first @ self.project)
        sub.begin.bias.copy_(bias)
        if task.settings.longest_chunk > 1:
            sub.input.weight.copy_(first)
            sub.input.bias.copy_(bias)
            sub.recurrent.weight.copy_(again)
        self.give_above(sub.above, self.sub, self.emb)
        for name, matrices in zip(("forward", "backward"), self.ways, strict=True):
            first, bias, again = self.parts(matrices[0], self.emb // 2)
            getattr(composition, f"{name}_input").weight.copy_(first)
            getattr(composition, f"{name}_input").bias.copy_(bias)
            if task.settings.longest_chunk > 1:
                getattr(composition, f"{name}_recurrent").weight.copy_(again)
            self.give_above(getattr(composition, f"{name}_above"), matrices, self.emb // 2)
        task.output.weight.copy_(self.chunk_map)
        task.output.bias.copy_(self.chunk_map_bias)
        for row, chunk in enumerate(self.chunks):
            ids = tuple(task.vocabulary.encode(chunk).tolist())
            place = task.entries.sentinel if row == len(self.chunks) - 1 else self.place(task, ids)
            task.embedding.weight[place] = self.chunk_table[row]
            task.decoder.bias[place] = self.chunk_bias[row]

    @staticmethod
    def place(task: Lattice, ids: tuple[int, ...]) -> int:
        chunks = task.entries.chunks
        number = next(chunk for chunk in range(len(chunks)) if tuple(chunks.tokens(chunk)) == ids)
        return int(task.entries.rows[number, 0])

    @staticmethod
    def parts(matrix: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """Input map, bias, recurrent map, [u, f, o], from [i, o, g] over input, output, bias: f is i with the other sign."""
        i, o, g = matrix.split(size)
        ordered = torch.cat([g, -i, o])
        return ordered[:, : -size - 1], ordered[:, -1], ordered[:, -size - 1 : -1]

    def give_above(self, above: torch.nn.ModuleList, matrices: list[Tensor], size: int) -> None:
        for layer, matrix in zip(above, matrices[1:], strict=True):
            first, bias, again = self.parts(matrix, size)
            layer.input.weight.copy_(first)
            layer.input.bias.copy_(bias)
            if layer.recurrent is not None:
                layer.recurrent.weight.copy_(again)
