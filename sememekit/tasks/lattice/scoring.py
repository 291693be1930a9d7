"""States of the nodes of a lattice, log-probabilities of edges given these states, and queries on scored lattices: sums,
posteriors, best paths. The states that arrive at a node merge by the rules of Section 3.3, Buckman and Neubig 2018, and more.

Legend: T tokens, B sentences, L tokens of the longest chunk, C copies of a chunk, A = C min(j, L) edges that end at the node j,
the shortest first, H size of the encoder's output, R size of its input part."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sememekit.encoders.base import ChildSum, Encoder, State
from sememekit.layers import weighted_sum
from sememekit.layers.lattice import best_path, edge_posteriors, log_marginal, sample_path
from sememekit.tasks.lattice.batch import LatticeBatch
from sememekit.tasks.lattice.inner import SubModel, SubModelBatch
from sememekit.tasks.lattice.settings import SAMPLED, TREES, Rule


def merging_weights(
    rule: Rule, log_posterior_AB: Tensor, *, training: bool, temperature: float = 1.0, generator: torch.Generator | None = None
) -> Tensor:
    """(A, B) weights of the states that arrive at a node, from log M_k: the log-probability of the edge k given the node.

    With ``training``, sampling rules draw from ``generator`` (None for torch's); otherwise they take the most probable edge;
    ``gumbel`` and ``gumbel_tree`` read ``temperature``."""
    if rule not in SAMPLED:
        return log_posterior_AB.exp()
    if not training:
        return _one_hot(log_posterior_AB)
    # Minus the logarithm of an exponential draw is Gumbel noise, and the largest noisy log-probability is a draw from M.
    noisy = log_posterior_AB - torch.empty_like(log_posterior_AB).exponential_(generator=generator).log()
    return _one_hot(noisy) if rule == "monte_carlo" else (noisy / temperature).softmax(0)


def _one_hot(scores_AB: Tensor) -> Tensor:
    return torch.zeros_like(scores_AB).scatter_(0, scores_AB.argmax(0, keepdim=True), 1.0)


def arriving(leaving_TBLC: Sequence[Tensor], node: int) -> Tensor:
    """Return (A, B) the values of the edges that end at a node, from a table by start node, [i][b, l - 1, c]."""
    reach = min(leaving_TBLC[0].shape[1], node)
    return torch.cat([leaving_TBLC[node - length][:, length - 1].t() for length in range(1, reach + 1)])


class NodeStates:
    """States of the nodes of B lattices; ``advance`` computes the nodes 0, 1, .. T - 1 in order.

    The encoder steps from the state of a node along all leaving edges; the states that arrive at a node are merged.

    Args:
        encoder: any encoder that reads from left to right.
        rule: how states merge; tree rules need a ``ChildSum`` encoder.
        edges: the encoder's input part of the edge vectors, by the start node: T tensors (L, C, B, R).
        tokens: (T, B) word ids; encoders that look words up read an edge as its last token.
        start: the output at the node 0 and the state there, (B, ...) each."""

    def __init__(
        self, encoder: Encoder, rule: Rule, edges: Sequence[Tensor], tokens: Tensor, start: State, masks: State
    ) -> None:
        self._encoder, self._edges, self._tokens, self._masks = encoder, edges, tokens, masks
        self._tree = encoder if rule in TREES and isinstance(encoder, ChildSum) else None
        # Of the last L nodes, the latest first: for edges of 1 .. L tokens from there the output and the state (C, B, ...).
        self._after: deque[list[State]] = deque([[tuple(part.unsqueeze(0) for part in start)]], maxlen=edges[0].shape[0])
        self._node = 0

    def advance(self, weights_AB: Tensor | None) -> Tensor:
        """Return the output (B, H) at the next node from the weights of the arriving states (None at node 0)."""
        node = self._node
        self._node += 1
        arrived = [after[shorter] for shorter, after in enumerate(self._after) if shorter < len(after)]
        outputs, *states = zip(*arrived, strict=True)
        if weights_AB is None:
            weights_AB = torch.ones_like(outputs[0][..., 0])
        weights_LCB = weights_AB.to(outputs[0].dtype).view(len(outputs), -1, weights_AB.shape[1])
        hidden = weighted_sum(weights_LCB, *outputs)
        longest, left = len(self._edges[node]), len(self._edges) - 1 - node
        if not left:
            return hidden
        # Edges that would pass the end have no node to arrive at.
        inputs = self._edges[node] if longest <= left else self._edges[node][:left]
        if self._tree is not None:
            part = self._tree.child_sum_part(tuple(map(torch.cat, states)), weights_LCB.flatten(0, 1), self._masks)
            output, state = self._tree.child_sum_combine(inputs, part, self._masks)
        else:
            # The output of a cell without projection is its state h, the same tensor: it is merged once, as ``hidden``.
            merged = tuple(hidden if each[0] is outputs[0] else weighted_sum(weights_LCB, *each) for each in states)
            last_tokens = self._tokens[node : node + len(inputs)].unsqueeze(1).expand(inputs.shape[:-1])
            part = self._encoder.state_part(merged, self._masks)
            output, state = self._encoder.combine(inputs, last_tokens, part, self._masks)
        # Unbound once for each tensor, not for each name, so that the test for the same tensor above holds at the next node.
        by_length = {id(part): part.unbind(0) for part in (output, *state)}
        self._after.appendleft(list(zip(*(by_length[id(part)] for part in (output, *state)), strict=True)))
        return hidden


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
    weights of their states; with ``gradient`` gradients flow through the posteriors.

    alpha_j = log sum over the edges that end at j of exp(alpha_i + score) falls by some nats a token, and posteriors are
    differences of alphas, which would lose digits in float32: they are in float64."""
    scores = [scorer.score_edges(states.advance(None).unsqueeze(0), 0)]
    leaving_BLC, alpha_B = list[Tensor](), scores[0].new_zeros(scores[0].shape[1], dtype=torch.float64)
    for node in range(1, num_nodes):
        last_BLC = scores[-1][0] if gradient else scores[-1][0].detach()
        leaving_BLC.append(last_BLC.double() + alpha_B[:, None, None])
        paths_AB = arriving(leaving_BLC, node)
        alpha_B = paths_AB.logsumexp(0)
        hidden_BH = states.advance(weigh(paths_AB - alpha_B))
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
