"""Merging of the states that arrive at a node of a lattice: the rules of Section 3.3, Buckman and Neubig 2018, and more.

Legend: T tokens, B sentences, L tokens of the longest chunk, C copies of a chunk, A = C min(j, L) edges that end at the node j,
the shortest first, H size of the encoder's output, R size of its input part."""

from collections import deque
from collections.abc import Sequence
from typing import Final, Literal

import torch
from torch import Tensor

from sememekit.encoders.base import ChildSum, Encoder, State
from sememekit.layers import weighted_sum

Rule = Literal["direct", "monte_carlo", "marginal", "gumbel", "tree", "gumbel_tree", "segmental"]
"""Merging of the states h_k, c_k that arrive over edges of probability M_k given the node.

``direct``: the sum of h and c. ``marginal``: sum_k M_k h_k and c_k. ``monte_carlo``: h and c of one edge, drawn from M.
``gumbel``: the mean by softmax((log M + Gumbel noise) / temperature). ``tree``: keeps all states; steps from the node take
gates from sum_k M_k h_k and a forget gate for each h_k. ``gumbel_tree``: ``tree`` with the weights of ``gumbel`` in place of M,
as the released code computes. ``segmental``: the encoder reads the tokens, and no states merge."""

TREES: Final = frozenset({"tree", "gumbel_tree"})
"""Rules that keep all arriving states, for an encoder that can step from several states at once."""

GUMBEL: Final = ("gumbel", "gumbel_tree")  # rules with noise and a temperature

SAMPLED: Final = frozenset({"monte_carlo", *GUMBEL})
"""Rules that sample in training and take the most probable edge in evaluation."""


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


class PathSums:
    """The forward recursion alpha_j = log sum over the edges that end at j of exp(alpha_i + score), in float64.

    Alpha falls by some nats a token, and posteriors are differences of alphas, which would lose digits in float32."""

    def __init__(self, gradient: bool) -> None:
        self._gradient = gradient
        self._leaving: list[Tensor] = []
        self._alpha_B: Tensor | None = None

    def leave(self, scores_BLC: Tensor) -> None:
        """Add the scores of the edges that leave the last node; -inf for absent edges."""
        scores_BLC = (scores_BLC if self._gradient else scores_BLC.detach()).double()
        self._leaving.append(scores_BLC if self._alpha_B is None else scores_BLC + self._alpha_B[:, None, None])

    def arrive(self) -> Tensor:
        """(A, B) log-probability of each edge that ends at the next node, given that the path goes through that node."""
        paths_AB = arriving(self._leaving, len(self._leaving))
        self._alpha_B = paths_AB.logsumexp(0)
        return paths_AB - self._alpha_B


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
