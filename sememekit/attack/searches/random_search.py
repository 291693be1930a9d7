"""Random search: texts drawn at random, the baseline of all searches."""

from __future__ import annotations

from typing import final

import numpy as np
from pydantic import Field

from sememekit.attack.searches.base import Queries, Search
from sememekit.attack.space import Space


@final
class RandomSearch(Search):
    """Rows with 1 to ``max_changes`` changes, the number drawn evenly, then places and substitutes evenly."""

    class Settings(Search.Settings):
        draws: int = Field(default=1000, ge=1)
        """Texts that are drawn, repeats included."""
        at_once: int = Field(default=50, ge=1)
        """Texts that are asked together."""

    settings: RandomSearch.Settings

    def run(self, space: Space, start: float, generator: np.random.Generator) -> Queries:
        left, places = self.settings.draws, len(space.positions)
        while left > 0:
            num = min(left, self.settings.at_once)
            left -= num
            changed = 1 + (generator.random(num) * space.most).astype(np.int64)
            ranks = generator.random((num, places)).argsort(axis=1).argsort(axis=1)
            choices = 1 + (generator.random((num, places)) * space.sizes).astype(np.int64)
            yield np.where(ranks < changed[:, None], choices, 0).astype(np.int16)
