"""Beam search: several changes, with a few alternatives kept at each number of changes."""

from __future__ import annotations

from typing import final

import numpy as np
from pydantic import Field

from sememekit.attack.searches.base import Queries, Search
from sememekit.attack.space import Space


@final
class Beam(Search):
    """Keep the ``width`` best rows of each number of changes, and try every further single change of each."""

    class Settings(Search.Settings):
        width: int = Field(default=8, ge=1)
        """Rows that are kept."""

    settings: Beam.Settings

    def run(self, space: Space, start: float, generator: np.random.Generator) -> Queries:
        beam = space.origin()
        for _ in range(space.most):
            trials = np.concatenate([space.single_changes(row) for row in beam])
            # The same set of changes can be reached in several orders; the first place it comes up is kept.
            _, first = np.unique(trials, axis=0, return_index=True)
            trials = trials[np.sort(first)]
            scores = yield trials
            order = np.argsort(-np.round(scores, 5), kind="stable")
            beam = trials[order[: self.settings.width]]
