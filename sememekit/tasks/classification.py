"""Classification of single texts, such as sentiment, and of pairs of texts: natural language inference."""

from collections.abc import Sequence
from typing import ClassVar, final

import torch
from pydantic import Field
from torch import Tensor

from sememekit.tasks.classifier import TextClassifier


@final
class SingleTextClassifier(TextClassifier):
    """One text, one label: its vector goes to the classifier as it is."""

    num_texts: ClassVar[int] = 1

    class Settings(TextClassifier.Settings):
        classifier_layers: int = Field(default=1, ge=0)
        """How many layers with tanh stand between the vector of the text and the labels."""

    @classmethod
    def num_features(cls, size: int) -> int:
        return size

    def features(self, texts: Sequence[Tensor]) -> Tensor:
        return texts[0]


@final
class TextPairClassifier(TextClassifier):
    """Pairs of sentences, encoded apart; features [u, v, |u - v|, u * v] (Conneau et al. 2017; Qin et al. 2020, Sec. IV-C)."""

    num_texts: ClassVar[int] = 2

    @classmethod
    def num_features(cls, size: int) -> int:
        return 4 * size

    def features(self, texts: Sequence[Tensor]) -> Tensor:
        u, v = texts
        return torch.cat([u, v, (u - v).abs(), u * v], dim=-1)
