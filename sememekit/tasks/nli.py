"""Natural language inference: does a premise entail a hypothesis, contradict it, or neither?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, final

import torch
from torch import Tensor

from sememekit.tasks.classifier import TextClassifier


@final
class TextPairClassifier(TextClassifier):
    """Pairs of sentences, encoded apart; features [u, v, |u - v|, u * v] (Conneau et al. 2017; Qin et al. 2019, Sec. IV-C)."""

    num_texts: ClassVar[int] = 2

    class Settings(TextClassifier.Settings):
        """Settings of natural language inference."""

    @classmethod
    def num_features(cls, size: int) -> int:
        return 4 * size

    def features(self, texts: Sequence[Tensor]) -> Tensor:
        u, v = texts
        return torch.cat([u, v, (u - v).abs(), u * v], dim=-1)
