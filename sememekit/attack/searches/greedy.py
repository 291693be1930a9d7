"""Greedy search: one change after the other, each the best available."""

from __future__ import annotations

from typing import final

import numpy as np

from sememekit.attack.searches.base import Queries, Search
from sememekit.attack.space import Space, best_index, is_better


@final
class Greedy(Search):
    """Try every single change, take the best, and go on from there while the score rises.

    Without ``rescan`` the first round alone tries everything: it gives each word its best substitute and a rank by gain, and
    the words are then changed in that order (the manner of Ren et al. 2019). It needs far fewer queries.
    """

    class Settings(Search.Settings):
        rescan: bool = True
        """Try every change again after each change."""

    settings: Greedy.Settings

    def run(self, space: Space, start: float, generator: np.random.Generator) -> Queries:
        row, score = space.origin()[0], start
        if not self.settings.rescan:
            yield from self._in_order(space, start)
            return
        while len(trials := space.single_changes(row)):
            scores = yield trials
            best = best_index(scores)
            if not is_better(scores[best], score):
                return
            row, score = trials[best], float(scores[best])

    def _in_order(self, space: Space, start: float) -> Queries:
        trials = space.single_changes(space.origin()[0])
        scores = yield trials
        places = np.argmax(trials > 0, axis=1)
        best = {place: best_index(np.where(places == place, scores, -np.inf)) for place in range(len(space.positions))}
        row, score = space.origin()[0], start
        for place in sorted(best, key=lambda place: -round(float(scores[best[place]]), 5)):
            if int((row > 0).sum()) >= space.most:
                return
            trial = np.where(trials[best[place]] > 0, trials[best[place]], row)
            found = yield trial[None]
            if is_better(found[0], score):
                row, score = trial, float(found[0])
