"""Classification of single texts, such as sentiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, final

from pydantic import Field
from torch import Tensor

from sememekit.tasks.classifier import TextClassifier


@final
class SingleTextClassifier(TextClassifier):
    """One text, one label: the vector of the text goes to the classifier as it is."""

    num_texts: ClassVar[int] = 1

    class Settings(TextClassifier.Settings):
        """Settings of classification."""

        classifier_layers: int = Field(default=1, ge=0)
        """How many layers with tanh stand between the vector of the text and the labels."""

    @classmethod
    def num_features(cls, size: int) -> int:
        return size

    def features(self, texts: Sequence[Tensor]) -> Tensor:
        return texts[0]
