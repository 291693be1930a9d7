"""Particle swarm optimisation over substitutes (Zang et al. 2020)."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sememekit.attack.searches.base import Queries, Search, best_single_replacement, draw_places
from sememekit.attack.space import Rows, Space, best_index, is_better


@final
class ParticleSwarm(Search):
    """Each particle is a text that moves word by word towards its own best and the swarm's best, then may mutate.

    Velocity of a word: v <- w v + (1 - w)(a + b), where a is -3 if the word agrees with the particle's best and 3 if not, and
    b the same for the swarm's; w falls from the first ``inertia`` to the second. With probability P1, falling, a particle takes
    words of its own best, each with probability sigmoid(v); then with P2, rising, words of the swarm's. A particle of which
    the share r is changed mutates with probability 1 - 2 r: the best substitute at a place that is drawn in proportion to the
    number of its substitutes (10 at most). As in the public code, but for the limit of changes, which holds for all texts here.
    """

    class Settings(Search.Settings):
        population: int = Field(default=60, ge=1)
        """Particles, texts that move."""
        iterations: int = Field(default=20, ge=1)
        """Moves of the swarm."""
        inertia: tuple[float, float] = (0.8, 0.2)
        """w at the start and at the end."""
        moves: tuple[float, float] = (0.8, 0.2)
        """P1 at the start and at the end; P2 the other way round."""
        speed: float = Field(default=3.0, gt=0.0)
        """What agreement and disagreement add, and the range of the first velocities."""

    settings: ParticleSwarm.Settings

    def run(self, space: Space, start: float, generator: np.random.Generator) -> Queries:
        settings, num = self.settings, self.settings.population
        weights = np.minimum(space.sizes, 10).astype(np.float64)
        first = space.origin(num)
        places = draw_places(first, weights, space, generator, revisit=False)
        swarm, scores = yield from best_single_replacement(first, places, space, np.full(num, start))
        own, own_scores = swarm.copy(), scores.copy()
        best = best_index(scores)
        leader, leader_score = swarm[best].copy(), float(scores[best])
        speeds = np.repeat(generator.uniform(-settings.speed, settings.speed, num)[:, None], swarm.shape[1], axis=1)
        for step in range(settings.iterations):
            done = step / settings.iterations
            inertia = settings.inertia[1] + (settings.inertia[0] - settings.inertia[1]) * (1.0 - done)
            pull = self._pull(swarm, own) + self._pull(swarm, leader[None])
            speeds = inertia * speeds + (1.0 - inertia) * pull
            towards = 1.0 / (1.0 + np.exp(-speeds))
            fall = (settings.moves[0] - settings.moves[1]) * done
            swarm = self._move(swarm, own, towards, settings.moves[0] - fall, generator)
            swarm = self._move(swarm, np.repeat(leader[None], num, axis=0), towards, settings.moves[1] + fall, generator)
            swarm = space.within_limit(swarm, generator)
            scores = yield swarm
            chances = 1.0 - 2.0 * (swarm > 0).sum(axis=1) / space.num_words
            chosen = np.flatnonzero(generator.random(num) < chances)
            if len(chosen):
                places = draw_places(swarm[chosen], weights, space, generator, revisit=False)
                scores = scores.copy()
                swarm[chosen], scores[chosen] = yield from best_single_replacement(swarm[chosen], places, space, scores[chosen])
            better = np.array([is_better(new, old) for new, old in zip(scores, own_scores, strict=True)])
            own[better], own_scores[better] = swarm[better], scores[better]
            best = best_index(scores)
            if is_better(scores[best], leader_score):
                leader, leader_score = swarm[best].copy(), float(scores[best])

    def _pull(self, swarm: Rows, towards: Rows) -> NDArray[np.float64]:
        return np.where(swarm == towards, -self.settings.speed, self.settings.speed)

    @staticmethod
    def _move(swarm: Rows, target: Rows, chances: NDArray[np.float64], share: float, generator: np.random.Generator) -> Rows:
        moving = generator.random(len(swarm)) < share
        taken = generator.random(swarm.shape) < chances
        return np.where(moving[:, None] & taken, target, swarm)
