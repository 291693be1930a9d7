"""Attention over the outputs of an encoder."""

from __future__ import annotations

from typing import Literal, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

Score = Literal["general", "additive"]


class Memory(NamedTuple):
    """What is attended to: the part that does not change from step to step, batch first, so that rows can be selected.

    Attributes:
        keys: (B, S, H) or (B, S, A), projected once.
        values: (B, S, M) the outputs of the encoder.
        padding: (B, S) 0 where a position is real and minus infinity where it is padding.
    """

    keys: Tensor
    values: Tensor
    padding: Tensor


@final
class Attention(nn.Module):
    """Weights a_i = softmax over i of score(q, h_i), context c = sum_i a_i h_i, for a query q and outputs h_1 .. h_S.

    - ``general``: score = q . (W h_i), Eq. (8) of Luong et al. 2015, "general";
    - ``additive``: score = v . tanh(W_q q + W h_i + b), Sec. 3.1 and Appendix A of Bahdanau et al. 2015.

    W h_i does not depend on the query and is computed once for a text (``prepare``).

    Args:
        query_size: H.
        memory_size: M.
        score: which of the two.
        size: A, the size of the hidden layer of ``additive``; H unless given.
    """

    def __init__(self, query_size: int, memory_size: int, score: Score, size: int | None = None) -> None:
        super().__init__()
        additive = score == "additive"
        inner = (size or query_size) if additive else query_size
        self.key = nn.Linear(memory_size, inner, bias=additive)
        self.query = nn.Linear(query_size, inner, bias=False) if additive else None
        self.score = nn.Parameter(torch.empty(inner)) if additive else None
        if self.score is not None:
            nn.init.uniform_(self.score, -(inner**-0.5), inner**-0.5)

    def prepare(self, hidden: Tensor, lengths: Tensor | None) -> Memory:
        """The memory of ``hidden`` (S, B, M), of which the first ``lengths`` (B,) steps of each row are real."""
        values = hidden.transpose(0, 1)
        padding = values.new_zeros(values.shape[:2])
        if lengths is not None:
            steps = torch.arange(values.shape[1], device=values.device)
            padding = padding.masked_fill(steps[None, :] >= lengths.to(values.device)[:, None], -torch.inf)
        return Memory(self.key(values), values, padding)

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Contexts (B, T, M) and weights (B, T, S) of ``query`` (B, T, H)."""
        if self.query is None or self.score is None:
            scores = torch.bmm(query, memory.keys.transpose(1, 2))
        else:
            scores = torch.tanh(self.query(query).unsqueeze(2) + memory.keys.unsqueeze(1)) @ self.score
        weights = functional.softmax(scores + memory.padding.unsqueeze(1), dim=-1)
        return torch.bmm(weights, memory.values), weights
