"""Exhaustive search: every text that the constraints allow, the exact worst case."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, islice, product
from typing import final

import numpy as np
from pydantic import Field

from sememekit.attack.searches.base import Queries, Search
from sememekit.attack.space import Space


@final
class Exhaustive(Search):
    """Ask for every row, fewest changes first: where it fails, no search can succeed, and a success has the fewest changes.

    A space of more than ``limit`` rows is refused, with its size: the example is skipped.
    """

    class Settings(Search.Settings):
        limit: int = Field(default=20_000, ge=1)
        """Rows that are asked for one example at most."""
        at_once: int = Field(default=500, ge=1)
        """Rows that are asked together."""

    settings: Exhaustive.Settings
    verdict = "no adversarial example exists in the searched space (exhaustive)"

    def refusal(self, space: Space) -> str:
        num = space.num_points()
        limit = self.settings.limit
        return f"more texts to try than search.limit {limit:,} ({num:,})" if num > limit else ""

    def run(self, space: Space, start: float, generator: np.random.Generator) -> Queries:
        rows = self._rows(space)
        while batch := list(islice(rows, self.settings.at_once)):
            yield np.array(batch, dtype=np.int16)

    @staticmethod
    def _rows(space: Space) -> Iterator[list[int]]:
        sizes = space.sizes.tolist()
        numbers = range(1, space.most + 1)
        for places in chain.from_iterable(combinations(range(len(sizes)), number) for number in numbers):
            for choices in product(*(range(1, sizes[place] + 1) for place in places)):
                row = [0] * len(sizes)
                for place, choice in zip(places, choices, strict=True):
                    row[place] = choice
                yield row
