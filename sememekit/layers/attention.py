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
        keys_BSA: projected once; A is H for the score "general".
        values_BSM: the outputs of the encoder.
        padding_BS: 0 where a position is real and minus infinity where it is padding.
    """

    keys_BSA: Tensor
    values_BSM: Tensor
    padding_BS: Tensor


@final
class Attention(nn.Module):
    """Weights a_i = softmax over i of score(q, h_i), context c = sum_i a_i h_i, for a query q and outputs h_1 .. h_S.

    >>> attention = Attention(query_size=16, memory_size=16, score="additive")
    >>> memory = attention.prepare(hidden_TBH, lengths_B=torch.tensor([5, 3]))
    >>> contexts_BTM, weights_BTS = attention(hidden_TBH.transpose(0, 1), memory)

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

    def prepare(self, hidden_SBM: Tensor, lengths_B: Tensor | None) -> Memory:
        """The memory of an encoder's outputs, of which the first ``lengths_B`` steps of each row are real."""
        values_BSM = hidden_SBM.transpose(0, 1)
        padding_BS = values_BSM.new_zeros(values_BSM.shape[:2])
        if lengths_B is not None:
            steps_S = torch.arange(values_BSM.shape[1], device=values_BSM.device)
            padding_BS = padding_BS.masked_fill(steps_S >= lengths_B.to(values_BSM.device)[:, None], -torch.inf)
        return Memory(self.key(values_BSM), values_BSM, padding_BS)

    def forward(self, query_BTH: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Contexts (B, T, M) and weights (B, T, S)."""
        if self.query is None or self.score is None:
            scores_BTS = torch.bmm(query_BTH, memory.keys_BSA.transpose(1, 2))
        else:
            summed_BTSA = self.query(query_BTH).unsqueeze(2) + memory.keys_BSA.unsqueeze(1)
            scores_BTS = torch.tanh(summed_BTSA) @ self.score
        weights_BTS = functional.softmax(scores_BTS + memory.padding_BS.unsqueeze(1), dim=-1)
        return torch.bmm(weights_BTS, memory.values_BSM), weights_BTS
