"""Log-probabilities of edges given node states, and queries on scored lattices: sums, posteriors, best paths."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sememekit.layers.lattice import best_path, edge_posteriors, log_marginal, sample_path
from sememekit.tasks.lattice.batch import LatticeBatch
from sememekit.tasks.lattice.inner import SubModel, SubModelBatch
from sememekit.tasks.lattice.states import NodeStates, PathSums


class EdgeScorer:
    """p(chunk, copy | h) = main(row) + main(sentinel) sub(chunk | h) / copies, with ``main`` read from tanh(A h + a).

    Scores one batch, node by node or all nodes at once. N nodes, B sentences, L longest chunk, C copies of a chunk. ``output``
    has A and a; ``log_probs`` of the decoder maps contexts (M, E) and rows (M, K) to log-probabilities; ``keep`` is a dropout
    mask (B, H) of the states. ``sub_model`` is None if only listed chunks have edges; ``sentinel`` is the row of the others."""

    def __init__(
        self,
        batch: LatticeBatch,
        output: nn.Linear,
        log_probs: Callable[[Tensor, Tensor], Tensor],
        keep: Tensor | None,
        sub_model: tuple[SubModel, SubModelBatch] | None,
        sentinel: int | None,
    ) -> None:
        self._batch, self._output, self._log_probs, self._keep, self._sub_model = batch, output, log_probs, keep, sub_model
        self._unlisted, self._missing = batch.rows < 0, ~batch.exists
        rows = batch.rows.clamp(min=0).flatten(2)  # row 0 in place of none: the shape is fixed, and the score is masked below
        if sentinel is not None:
            rows = torch.cat([rows, torch.full_like(rows[..., :1], sentinel)], dim=2)
        self._rows = rows

    def score_edges(self, hidden_NBH: Tensor, first: int = 0) -> Tensor:
        """(N, B, L, C) log-probabilities of the edges that leave the nodes ``first`` .. ``first`` + N - 1, -inf for none."""
        nodes = slice(first, first + len(hidden_NBH))
        hidden_NBH = hidden_NBH if self._keep is None else hidden_NBH * self._keep
        contexts = torch.tanh(self._output(hidden_NBH)).flatten(0, 1)
        found = self._log_probs(contexts, self._rows[nodes].flatten(0, 1)).view(*hidden_NBH.shape[:2], -1)
        unlisted = self._unlisted[nodes]
        scores = found[..., : unlisted[0, 0].numel()].view(unlisted.shape).masked_fill(unlisted, -torch.inf)
        if self._sub_model is not None:
            model, shared = self._sub_model
            below = model(hidden_NBH, first, shared) + found[..., -1:] - self._batch.log_copies[nodes]
            # A listed chunk has probability by its row and by its spelling; both are added, or the sum would be below one.
            scores = torch.logaddexp(scores, below.unsqueeze(-1))
        return scores.masked_fill(self._missing[nodes], -torch.inf)


def score_in_order(
    states: NodeStates, scorer: EdgeScorer, weigh: Callable[[Tensor], Tensor], num_nodes: int, gradient: bool
) -> Tensor:
    """Return (T, B, L, C) log-probabilities of the edges that leave each node; nodes are sequential, as each state needs the
    previous. ``states`` stand before the first node; ``weigh`` maps log-posteriors (A, B) of the edges that end at a node to
    weights of their states; with ``gradient`` gradients flow through the posteriors."""
    paths = PathSums(gradient)
    scores = [scorer.score_edges(states.advance(None).unsqueeze(0), 0)]
    for node in range(1, num_nodes):
        paths.leave(scores[-1][0])
        hidden_BH = states.advance(weigh(paths.arrive()))
        scores.append(scorer.score_edges(hidden_BH.unsqueeze(0), node))
    return torch.cat(scores)


class Segment(NamedTuple):
    """One edge of a segmentation: the tokens ``begin`` .. ``end`` - 1 of a sentence, and the copy of the chunk."""

    begin: int
    end: int
    copy: int


class Lattices(NamedTuple):
    """The lattices of some sentences under a model. Edges are listed by their last token: [b, t, l - 1, e].

    Legend: B sentences, T tokens of the longest, L tokens of the longest chunk, E copies."""

    tokens: Tensor  # (B, T) word ids, padded with the end mark
    lengths: Tensor  # (B,) tokens of each sentence, its end mark included
    scores: Tensor  # (B, T, L, E) log-probability of each edge given its start state, -inf for absent edges
    chunks: Tensor  # (B, T, L) chunk ids, -1 for no chunk or a chunk outside the vocabulary

    def log_probabilities(self) -> Tensor:
        """(B,) log-probability of each sentence, summed over all paths."""
        return log_marginal(self.scores, self.lengths)

    def posteriors(self) -> Tensor:
        """(B, T, L, E) probability of each edge given its sentence."""
        return edge_posteriors(self.scores, self.lengths)

    def best(self) -> list[list[Segment]]:
        """Return the most probable segmentation of each sentence (Viterbi), with the edge of the end mark."""
        return self._segments(best_path(self.scores, self.lengths)[1])

    def sample(self, generator: torch.Generator | None = None) -> list[list[Segment]]:
        """A segmentation of each sentence drawn from its posterior."""
        return self._segments(sample_path(self.scores, self.lengths, generator))

    def _segments(self, taken: Tensor) -> list[list[Segment]]:
        result: list[list[Segment]] = [[] for _ in range(len(taken))]
        for row, last, length, copy in taken.nonzero().tolist():
            result[row].append(Segment(last - length, last + 1, copy))
        return result
