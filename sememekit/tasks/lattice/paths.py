"""What can be asked of scored lattices: probabilities, posteriors of edges, the best segmentation, samples."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sememekit.layers.lattice import best_path, edge_posteriors, log_marginal, sample_path


@dataclass(frozen=True)
class Segment:
    """One edge of a segmentation: the tokens ``begin`` .. ``end`` - 1 of a sentence, and which copy of the chunk was taken."""

    begin: int
    end: int
    copy: int


@dataclass(frozen=True)
class Lattices:
    """The lattices of some sentences under a model. Edges are listed by their last token: [b, t, l - 1, e].

    Legend: B sentences, T tokens of the longest, L tokens of the longest chunk, E copies.

    Attributes:
        tokens: (B, T) word ids, the end mark where a sentence is over.
        lengths: (B,) tokens of each sentence, its end mark included.
        scores: (B, T, L, E) log-probability of each edge given the state where it begins, -inf where there is none.
        chunks: (B, T, L) chunk ids, -1 for a chunk outside the vocabulary or no chunk at all.
    """

    tokens: Tensor
    lengths: Tensor
    scores: Tensor
    chunks: Tensor

    def log_probabilities(self) -> Tensor:
        """(B,) log-probability of each sentence, summed over all paths."""
        return log_marginal(self.scores, self.lengths)

    def posteriors(self) -> Tensor:
        """(B, T, L, E) probability of each edge given its sentence."""
        return edge_posteriors(self.scores, self.lengths)

    def best(self) -> list[list[Segment]]:
        """The most probable segmentation of each sentence (Viterbi), the edge that holds the end mark included."""
        return self._segments(best_path(self.scores, self.lengths)[1])

    def sample(self, generator: torch.Generator | None = None) -> list[list[Segment]]:
        """A segmentation of each sentence drawn from its posterior."""
        return self._segments(sample_path(self.scores, self.lengths, generator))

    def _segments(self, taken: Tensor) -> list[list[Segment]]:
        result: list[list[Segment]] = [[] for _ in range(len(taken))]
        for row, last, length, copy in taken.nonzero().tolist():
            result[row].append(Segment(last - length, last + 1, copy))
        return result
