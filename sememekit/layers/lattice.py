"""Sums and best paths over lattices whose edges end at token ends: forward, backward, posteriors, Viterbi, samples.

A lattice over T tokens has the nodes 0 .. T; node j stands for the first j tokens. An edge of length l whose last token is t
leads from the node t + 1 - l to the node t + 1; up to E parallel edges join two nodes. Legend: B sentences, T tokens, L longest
edge, E parallel edges. Scores (B, T, L, E) are natural logarithms: entry [b, t, l - 1, e] is of an edge whose last token is t,
with -inf for no edge. Sentence b ends at its node ``lengths[b]``; later entries are ignored.

All computation is in float64, for long sentences."""

from typing import Any

import torch
from torch import Tensor

from sememekit.layers.shared import differentiable_once


def log_marginal(scores: Tensor, lengths: Tensor) -> Tensor:
    """(B,) the logarithm of the sum over all paths of the product of their edges, log sum_S prod_(edges of S) exp(score).

    Its gradient is the posterior of each edge, computed by the backward recursion instead of back-propagation. A sentence
    without any path has -inf, and no gradient."""
    return _LogMarginal.apply(scores, lengths)


def forward_scores(scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Forward recursion: alpha_j = log sum over the edges that end at j of exp(alpha_i + score). Returns alpha (B, T + 1) in
    float64, and its value at the end of each sentence (B,)."""
    alpha = _recur(scores.double().logsumexp(-1), torch.logsumexp)
    return alpha, _at(alpha, lengths)


def backward_scores(scores: Tensor, lengths: Tensor) -> Tensor:
    """Return (B, T + 1) beta_i = log of the sum over all paths from node i to the sentence's end, in float64; -inf after it."""
    batch, tokens, longest, _ = scores.shape
    folded = _inside(scores, lengths).logsumexp(-1)
    nodes = torch.arange(tokens + 1, device=scores.device)
    ends = torch.where(nodes == lengths.to(scores.device)[:, None], 0.0, -torch.inf).double()
    beta = torch.full((batch, tokens + 1 + longest), -torch.inf, dtype=torch.float64, device=scores.device)
    for node in range(tokens, -1, -1):
        ways = [folded[:, node + length - 1, length - 1] for length in range(1, min(longest, tokens - node) + 1)]
        beta[:, node] = ends[:, node]
        if ways:
            onward = torch.stack(ways, dim=1) + beta[:, node + 1 : node + 1 + len(ways)]
            beta[:, node] = torch.logaddexp(beta[:, node], onward.logsumexp(1))
    return beta[:, : tokens + 1]


def edge_posteriors(scores: Tensor, lengths: Tensor) -> Tensor:
    """Return (B, T, L, E) the posterior of each edge given the sentence; zero after its end.

    The posteriors of all edges that cover a token sum to one. In the dtype of ``scores``."""
    inside = _inside(scores, lengths)
    alpha, total = forward_scores(inside, lengths)
    beta = backward_scores(inside, lengths)
    log_posterior = _begins(alpha, scores.shape[2]).unsqueeze(-1) + inside + beta[:, 1:, None, None]
    total = total.masked_fill(total == -torch.inf, 0.0)
    return (log_posterior - total[:, None, None, None]).exp().to(scores.dtype)


def best_path(scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the path with the largest product of edges (Viterbi; ties: shorter last edge) as (B,) log-scores in float64, and
    (B, T, L, E) booleans of its edges: -inf and no edges for a sentence without a path."""
    best = _recur(scores.double().amax(-1), torch.amax)
    arrivals = _begins(best, scores.shape[2]).unsqueeze(-1) + scores.double()
    value = _at(best, lengths)
    return value, _trace(arrivals, lengths) & _has_path(value)


def sample_path(scores: Tensor, lengths: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw a path for each sentence from the posterior: (B, T, L, E) booleans of its edges; none without a path.

    Drawing goes from the end to the start: the edge into a node by exp(alpha_i + score - alpha_j), as Gumbel-max."""
    alpha, total = forward_scores(scores, lengths)
    arrivals = _begins(alpha, scores.shape[2]).unsqueeze(-1) + scores.double()
    noise = torch.empty(arrivals.shape, dtype=torch.float64, device=scores.device)
    noise.exponential_(generator=generator)
    return _trace(arrivals - noise.log(), lengths) & _has_path(total)


def ending_edges(leaving: Tensor) -> Tensor:
    """Convert scores by start node to scores by last token.

    ``leaving``: (B, T, L, E), entry [b, i, l - 1] of the edge of length l that leaves the node i. Returns (B, T, L, E): entry
    [b, t, l - 1] is of the edge that left t + 1 - l; -inf before the start."""
    tokens, longest = leaving.shape[1:3]
    parts = []
    for length in range(1, longest + 1):
        before = min(length - 1, tokens)
        head = leaving.new_full((leaving.shape[0], before, leaving.shape[3]), -torch.inf)
        parts.append(torch.cat([head, leaving[:, : tokens - before, length - 1]], dim=1))
    return torch.stack(parts, dim=2)


def weighted_sum(weights_LCB: Tensor, *states_CBH: Tensor) -> Tensor:
    """(B, H) sum over l and c of weights[l, c] states[l][c]. A batched product would have tiny batches, one a sentence."""
    rows = [pair for each in zip(weights_LCB, states_CBH, strict=True) for pair in zip(*each, strict=True)]
    total_BH = rows[0][1] * rows[0][0].unsqueeze(-1)
    for weight_B, state_BH in rows[1:]:
        total_BH = torch.addcmul(total_BH, state_BH, weight_B.unsqueeze(-1))
    return total_BH


def _inside(scores: Tensor, lengths: Tensor) -> Tensor:
    """Return scores in float64 with -inf after the end of each sentence, where values are arbitrary."""
    tokens = torch.arange(scores.shape[1], device=scores.device)
    behind = tokens >= lengths.to(scores.device)[:, None]
    return scores.double().masked_fill(behind[:, :, None, None], -torch.inf)


def _recur(scores: Tensor, reduce: Any) -> Tensor:
    """(B, T + 1) values of the nodes, from (B, T, L) scores: value_j = reduce over l of value_(j - l) + score; value_0 = 0."""
    batch, tokens, longest = scores.shape
    shifted = scores.new_full((batch, longest + tokens), -torch.inf)
    shifted[:, longest - 1] = 0.0
    by_distance = scores.flip(2)
    for token in range(tokens):
        shifted[:, longest + token] = reduce(shifted[:, token : token + longest] + by_distance[:, token], 1)
    return shifted[:, longest - 1 :]


def _begins(values: Tensor, longest: int) -> Tensor:
    """(B, T, L) the value (B, T + 1) of the node where each edge begins; -inf before the start."""
    if values.shape[1] == 1:  # no token, which unfold does not take
        return values.new_empty(len(values), 0, longest)
    padded = torch.nn.functional.pad(values[:, :-1], (longest - 1, 0), value=-torch.inf)
    return padded.unfold(1, longest, 1).flip(2)


def _at(values: Tensor, lengths: Tensor) -> Tensor:
    return values.gather(1, lengths.to(values.device)[:, None])[:, 0]


def _has_path(total: Tensor) -> Tensor:
    """(B, 1, 1, 1) whether the score (B,) of a sentence comes from a path."""
    return (total > -torch.inf)[:, None, None, None]


def _trace(arrivals: Tensor, lengths: Tensor) -> Tensor:
    """Walk from the end of each sentence to its start over the largest of ``arrivals`` (B, T, L, E) at each node."""
    batch, tokens, longest, parallel = arrivals.shape
    chosen = arrivals.flatten(2).argmax(2)
    taken = torch.zeros(batch, tokens, longest * parallel, dtype=torch.bool, device=arrivals.device)
    node = lengths.to(arrivals.device).clone()
    for token in range(tokens - 1, -1, -1):
        here = node == token + 1
        taken[:, token].scatter_(1, chosen[:, token, None], here[:, None])
        node = torch.where(here, token - chosen[:, token] // parallel, node)
    return taken.view(arrivals.shape)


class _LogMarginal(torch.autograd.Function):
    """``log_marginal`` with posteriors for a gradient."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, lengths: Tensor) -> Tensor:
        ctx.save_for_backward(scores, lengths)
        return forward_scores(scores, lengths)[1].to(scores.dtype)

    @staticmethod
    @differentiable_once("The log-likelihood of a lattice")
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        scores, lengths = ctx.saved_tensors
        return edge_posteriors(scores, lengths) * grad[:, None, None, None], None
