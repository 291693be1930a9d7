"""Where word vectors start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field

from sememekit import config

SHORT = 0.1
"""Word vectors of the papers' word language models start uniform in +- this, as all here did before there was ``spread``."""


def spread_of(length: float, size: int) -> float:
    """a of a start uniform in +-a whose vectors of ``size`` have the root mean square length ``length``: size a^2 / 3 is its
    square."""
    return length * (3 / size) ** 0.5


class StartSettings(config.Settings):
    """Settings of a task with word vectors that are learned from a random start."""

    embedding_size: int
    """E, the size of the word vectors."""
    spread: float | None = Field(default=None, gt=0.0)
    """Word vectors start uniform in +- this. Unset: 0.1, or with optimisers that gain by it what gives vectors of every size
    one length (``start_lengths``), and so the first logits one variance; the plan of a run holds the answer."""

    earlier: ClassVar[Mapping[str, Any]] = {"spread": SHORT}
    start_lengths: ClassVar[dict[str, float]] = {"adam": 1.7}
    """Optimiser -> root mean square length of a vector at the start, as measured in docs/training.md."""

    unit_lengths: ClassVar[dict[str, float]] = {}
    """The same where the encoder normalises its contexts and the output layer reads them; else as without."""

    def settled(self, optimizer: str, unit_contexts: bool) -> Self:
        if self.spread is not None:
            return self
        length = (self.start_lengths | self.unit_lengths if unit_contexts else self.start_lengths).get(optimizer)
        return self.model_copy(update={"spread": SHORT if length is None else spread_of(length, self.embedding_size)})

    @property
    def start_spread(self) -> float:
        """``spread``, or 0.1 where no plan has settled it."""
        return SHORT if self.spread is None else self.spread
