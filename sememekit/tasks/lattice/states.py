"""How the states that arrive at a node of a lattice become one: the rules of Section 3.3, Buckman and Neubig 2018, and more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import torch
from torch import Tensor

from sememekit.encoders.base import Encoder, State
from sememekit.layers import weighted_sum

Rule = Literal["direct", "monte_carlo", "marginal", "gumbel", "tree", "gumbel_tree", "segmental"]

NEEDS_PROBABILITIES: Final = frozenset({"monte_carlo", "marginal", "gumbel", "tree", "gumbel_tree"})
"""Rules whose states depend on how probable the ways to a node are, so that edges are scored while states are computed."""

TREES: Final = frozenset({"tree", "gumbel_tree"})
"""Rules that keep all arriving states, for an encoder that can step out of several at once."""

GUMBEL: Final = frozenset({"gumbel", "gumbel_tree"})
"""Rules with noise and a temperature."""

SAMPLED: Final = frozenset({"monte_carlo", *GUMBEL})
"""Rules that draw in training and take the most probable edge in evaluation."""


@dataclass(frozen=True)
class Merging:
    """How arriving states become the state of a node. M_k is the probability of the edge k given the node that it ends at.

    Attributes:
        rule: ``direct``: the sum of h and c. ``marginal``: sum_k M_k h_k and c_k. ``monte_carlo``: those of one edge, drawn
            from M. ``gumbel``: the mean by softmax((log M + Gumbel noise) / temperature). ``tree``: all are kept; steps out of
            the node take gates from sum_k M_k h_k and a forget gate for each h_k. ``gumbel_tree``: the same with the weights
            of ``gumbel`` in the place of M, which is what the released code computes.
        gradient: whether gradients pass through M.
        training: where false, the rules that draw take the most probable edge.
        temperature: of ``gumbel`` and ``gumbel_tree``.
        generator: what noise is drawn from; None for torch's own of the device.
    """

    rule: Rule
    gradient: bool
    training: bool
    temperature: float = 1.0
    generator: torch.Generator | None = None

    def weights(self, log_posterior: Tensor) -> Tensor:
        """Weights of arriving states, from log M, both (K, B)."""
        if not self.gradient:
            log_posterior = log_posterior.detach()
        if self.rule not in SAMPLED:
            return log_posterior.exp()
        if not self.training:
            return _hard(log_posterior)
        noisy = log_posterior - torch.empty_like(log_posterior).exponential_(generator=self.generator).log()
        return _hard(noisy) if self.rule == "monte_carlo" else (noisy / self.temperature).softmax(0)


def _hard(scores: Tensor) -> Tensor:
    """One for the largest of each column of (K, B), zero for the others."""
    return torch.zeros_like(scores).scatter_(0, scores.argmax(0, keepdim=True), 1.0)


@dataclass(frozen=True)
class Walked:
    """What a walk over a lattice of T tokens found.

    Attributes:
        outputs: (T, B, H) of the encoder at the nodes 0 .. T - 1.
        scores: (T, B, L, E) log-probabilities of the edges that leave each node, where they were asked for.
        weights: for each node but the first, those of the arriving states (K, B).
    """

    outputs: Tensor
    scores: Tensor | None
    weights: list[Tensor]


def walk(
    encoder: Encoder,
    ready: Tensor,
    tokens: Tensor,
    exists: Tensor,
    start: State,
    masks: State,
    merging: Merging,
    leave: Callable[[int, Tensor], Tensor] | None,
    known: Sequence[Tensor] | None = None,
) -> Walked:
    """States of the nodes 0 .. T - 1 of a lattice, one node after the other.

    Every edge runs the encoder from the state where it begins on its vector; a node makes one state of those that arrive.

    Args:
        encoder: of any kind that reads from left to right.
        ready: (T, L, E, B, R) its ``project`` of the vectors of the edges that end at each token.
        tokens: (T, B) word ids: an edge is read as its last token by encoders that look words up.
        exists: (T, B, L, E) which edges there are, by the node where they begin.
        start: the state at the node 0, and in front of it its output, (B, ...) each.
        masks: of the encoder.
        merging: the rule.
        leave: for rules that need probabilities: (node, output (B, H)) to the log-probabilities (B, L, E) of the edges that
            leave the node, -inf where there are none.
        known: the weights of a walk before, in place of finding them again.
    """
    num_tokens, longest, copies, batch, _ = ready.shape
    tree = merging.rule in TREES
    settled: list[State] = []
    outputs: list[Tensor] = []
    weights_of: list[Tensor] = []
    left: list[Tensor] = []
    alphas: list[Tensor] = []
    inputs = ready.unbind(0)
    for node in range(num_tokens):
        alpha = ready.new_zeros(batch, dtype=torch.float64)
        if node == 0:
            hidden, state = start[0], start[1:]
            if tree:
                bundle = tuple(part.unsqueeze(0) for part in state), hidden.new_ones(1, batch)
        else:
            reach = min(longest, node)
            sources = _gather(settled, node, reach)
            read = encoder.read_bundle if tree else _reader(encoder, tokens[node - 1], reach, copies)
            hidden_of, state_of = read(inputs[node - 1][:reach], sources, masks)
            if leave is not None:
                arriving = [alphas[node - n].unsqueeze(1) + left[node - n][:, n - 1].double() for n in range(1, reach + 1)]
                paths = torch.stack(arriving).transpose(1, 2).reshape(reach * copies, batch)
                alpha = paths.logsumexp(0)
                weights = merging.weights(paths - alpha).to(hidden_of.dtype)
            elif known is not None:
                weights = known[node - 1]
            else:
                there = [exists[node - length, :, length - 1] for length in range(1, reach + 1)]
                weights = torch.stack(there).transpose(1, 2).reshape(reach * copies, batch).to(hidden_of.dtype)
            weights_of.append(weights)
            arrived = tuple(part.flatten(0, 1) for part in state_of)
            if tree:
                bundle = arrived, weights
                hidden = weighted_sum(weights, hidden_of.flatten(0, 1))
            else:
                state = tuple(weighted_sum(weights, part) for part in arrived)
                same = [merged for merged, part in zip(state, state_of, strict=True) if part is hidden_of]
                hidden = same[0] if same else weighted_sum(weights, hidden_of.flatten(0, 1))
        if tree:
            filled = _fill(bundle, longest * copies) if longest * copies > 1 else bundle
            settled.append(encoder.settle_bundle(*filled, masks))
        else:
            settled.append(encoder.settle(state, masks))
        outputs.append(hidden)
        if leave is not None:
            left.append(leave(node, hidden))
            alphas.append(alpha)
    return Walked(torch.stack(outputs), torch.stack(left) if leave is not None else None, weights_of)


def _gather(settled: Sequence[State], node: int, reach: int) -> State:
    """Settled states of the nodes before ``node``, the nearest first: (reach, 1, B, ...) each."""
    sources = settled[node - reach : node][::-1]
    return tuple(torch.stack(parts).unsqueeze(1) for parts in zip(*sources, strict=True))


def _reader(
    encoder: Encoder, tokens: Tensor, reach: int, copies: int
) -> Callable[[Tensor, State, State], tuple[Tensor, State]]:
    """``Encoder.read`` with the last token (B,) of every edge."""
    last = tokens.expand(reach, copies, -1)
    return lambda ready, sources, masks: encoder.read(ready, last, sources, masks)


def _fill(bundle: tuple[State, Tensor], size: int) -> tuple[State, Tensor]:
    """A bundle of ``size`` states: states of zero with weight zero stand for those that a node near the start has not."""
    states, weights = bundle
    missing = size - len(weights)
    if not missing:
        return bundle
    padded = tuple(torch.cat([part, part.new_zeros(missing, *part.shape[1:])]) for part in states)
    return padded, torch.cat([weights, weights.new_zeros(missing, weights.shape[1])])
