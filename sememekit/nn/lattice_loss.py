"""The marginal likelihood of a text over all its segmentations (Buckman and Neubig 2018) as a module."""

from typing import TYPE_CHECKING, Literal, final

import torch
from torch import Tensor, nn

from sememekit.layers.lattice import best_path, edge_posteriors, log_marginal, sample_path
from sememekit.nn.checks import check_range, whole_numbers


@final
class LatticeLoss(nn.Module):
    """-log of the sum over all paths through a lattice of the product of their edges.

    >>> loss = LatticeLoss()(scores_BTLE, torch.tensor([5, 3]))
    >>> posteriors = LatticeLoss().posteriors(scores_BTLE, torch.tensor([5, 3]))
    >>> log_prob, taken = LatticeLoss().best_path(scores_BTLE, torch.tensor([5, 3]))

    A text of T tokens has the nodes 0 .. T; an edge of length l that ends with token t leads from node t + 1 - l to t + 1.
    p = sum over segmentations S of prod over the edges e of S of exp(score(e)) (Eq. (5), Buckman and Neubig 2018), in float64
    inside. The gradient of an edge is its posterior, by the backward recursion. It has no parameters.

    Shapes: scores (B, T, L, E) natural logarithms: [b, t, l - 1, e] for the e-th parallel edge of length l with last token t,
    -inf for no edge; lengths (B,) tokens of each text, integers."""

    def __init__(self, reduction: Literal["mean", "sum", "none"] = "mean") -> None:
        """``mean``: over the tokens of the batch (0 without tokens), ``sum``: over all, ``none``: (B,) for each text."""
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"LatticeLoss: reduction is 'mean', 'sum' or 'none', given {reduction!r}")
        self.reduction = reduction

    def forward(self, scores: Tensor, lengths: Tensor) -> Tensor:
        """Return the loss in nats; infinite if a text has no path.

        Raises TypeError: scores that are not floats, or lengths that are not integers. Raises ValueError: shapes that do not
        fit, or (on a CPU) lengths outside 0 to T; a GPU stops with an assertion."""
        lengths = _checked(scores, lengths)
        if self.reduction == "none":
            return -log_marginal(scores, lengths)
        # summed in single precision at least: half-precision nats of a long text reach beyond 65,504
        wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
        nats = -log_marginal(wide, lengths).sum()
        return (nats / lengths.sum().clamp(min=1) if self.reduction == "mean" else nats).to(scores.dtype)

    if TYPE_CHECKING:
        __call__ = forward

    @torch.no_grad()
    def posteriors(self, scores: Tensor, lengths: Tensor) -> Tensor:
        """Return (B, T, L, E) the posterior probability of each edge given the text."""
        return edge_posteriors(scores, _checked(scores, lengths))

    @torch.no_grad()
    def best_path(self, scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B,) the log-score of the most probable path in float64, and (B, T, L, E) booleans of its edges; -inf and no
        edges for a text without a path."""
        return best_path(scores, _checked(scores, lengths))

    @torch.no_grad()
    def sample(self, scores: Tensor, lengths: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw a path from the posterior: (B, T, L, E) booleans of its edges; no edges for a text without a path."""
        return sample_path(scores, _checked(scores, lengths), generator)

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


def _checked(scores: Tensor, lengths: Tensor) -> Tensor:
    """Check scores and lengths; return lengths as int64."""
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        given = scores.dtype if isinstance(scores, Tensor) else type(scores).__name__
        raise TypeError(f"LatticeLoss: scores must be a tensor of floats (B, T, L, E), given {given}")
    if scores.ndim != 4 or not scores.shape[2] or not scores.shape[3]:
        raise ValueError(f"LatticeLoss: scores must be (B, T, L, E) with L and E of 1 or more, given {tuple(scores.shape)}")
    batch, tokens = scores.shape[:2]
    lengths = whole_numbers(lengths, "LatticeLoss: lengths", (batch,), f"scores {tuple(scores.shape)}")
    check_range(lengths, 0, tokens, "LatticeLoss: lengths")
    return lengths
