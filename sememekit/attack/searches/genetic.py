"""The genetic attack of Alzantot et al. 2018, which the sememe RNN paper uses."""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal, final

import numpy as np
from pydantic import Field

from sememekit.attack.searches.base import Queries, Scores, Search, best_single_replacement, draw_places
from sememekit.attack.space import Rows, Space, best_index


@final
class Genetic(Search):
    """Populations of texts: parents by softmax(score / temperature), uniform crossover, a replacement in each child, an elite.

    The first population is the example with one replacement in each member. A place is drawn in proportion to how many
    substitutes it has. ``replacement`` is ``best`` (sentiment: all substitutes of the place are tried, the best is taken if it
    raises the score) or ``random`` (entailment, as released). A child with more changes than allowed loses random ones.

    Every text that is tried counts as a success if it fools the victim; the public code looks at the fittest of each generation
    alone, so it may ask more before it sees the same.
    """

    class Settings(Search.Settings):
        population: int = Field(default=60, ge=2)
        """Texts of one generation."""
        generations: int = Field(default=20, ge=1)
        """Populations that are looked at."""
        temperature: float = Field(default=0.3, gt=0.0)
        """Lower is greedier in choosing parents."""
        crossover: float = Field(default=0.5, ge=0.0, le=1.0)
        """Probability, word by word, of the second parent's word."""
        mutation: float = Field(default=1.0, ge=0.0, le=1.0)
        """Share of the children that get a replacement."""
        replacement: Literal["best", "random"] = "best"
        """How a replacement is chosen at its place."""
        revisit: bool = False
        """Whether a word that is changed already may be drawn again while others are not."""

    settings: Genetic.Settings

    def run(self, space: Space, start: float, generator: np.random.Generator) -> Queries:
        settings = self.settings
        members = yield from self._mutate(space.origin(settings.population), space, generator, 1.0)
        for generation in range(settings.generations):
            scores = yield members
            if generation == settings.generations - 1:
                return
            chances = softmax(scores / settings.temperature)
            parents = [generator.choice(len(members), size=len(members) - 1, p=chances) for _ in range(2)]
            second = generator.random((len(members) - 1, members.shape[1])) < settings.crossover
            children = space.within_limit(np.where(second, members[parents[1]], members[parents[0]]), generator)
            children = yield from self._mutate(children, space, generator, settings.mutation)
            members = np.concatenate([members[best_index(scores)][None], children])

    def _mutate(self, rows: Rows, space: Space, generator: np.random.Generator, share: float) -> Generator[Rows, Scores, Rows]:
        """Give each row, or the share of them that is drawn, one replacement in place."""
        chosen = np.arange(len(rows)) if share == 1.0 else np.flatnonzero(generator.random(len(rows)) < share)
        if not len(chosen):
            return rows
        places = draw_places(rows[chosen], space.sizes.astype(np.float64), space, generator, revisit=self.settings.revisit)
        if self.settings.replacement == "random":
            rows[chosen, places] = 1 + (generator.random(len(chosen)) * space.sizes[places]).astype(np.int64)
        else:
            rows[chosen], _ = yield from best_single_replacement(rows[chosen], places, space)
        return rows


def softmax(values: Scores) -> Scores:
    """exp(values), divided by its sum."""
    powers = np.exp(values - values.max())
    return powers / powers.sum()
