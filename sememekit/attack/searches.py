"""Searches for adversarial examples: generators that yield rows of a space and receive their scores.

A search never sees a text, a label or the victim. It yields rows, receives scores (higher is better), and returns when nothing
is left. The engine counts queries, ends the search at the first row that reaches the goal, and runs many together."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from itertools import chain, combinations, islice, product
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sememekit import config
from sememekit.attack.space import BLOCK, Rows, Space, best_index, draw_places, is_better

Scores = NDArray[np.float64]
Queries = Generator[Rows, Scores, None]  # a generator that yields (N, P) rows and receives (N,) scores


class Search(ABC):
    """A search of a space for a row with a high score.

    >>> space = Space.open(Document.read(("a good film",)), {"good": ("fine", "great")})
    >>> search = Greedy(Greedy.Settings()).run(space, 0.1, np.random.default_rng(1))
    >>> next(search).tolist()    # wants scores: search.send(scores_N) gives the next rows, until StopIteration
    [[1], [2]]"""

    class Settings(config.Settings):
        """Settings of one search."""

    verdict: ClassVar[str] = "search exhausted, no adversarial example found"
    """The reported reason if ``run`` returns without a success."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def refusal(self, space: Space) -> str:
        """The reason why this search skips a space, or an empty string."""
        return ""

    @abstractmethod
    def run(self, space: Space, start: float, generator: np.random.Generator) -> Queries:
        """Search a space with at least one changeable word and one change allowed.

        ``start`` is the score of the original; ``generator`` is the example's own, so that other examples do not matter."""


def best_single_replacement(
    rows: Rows, where: NDArray[np.int64], space: Space, known: Scores | None = None
) -> Generator[Rows, Scores, tuple[Rows, Scores]]:
    """Try all substitutes at the place ``where`` (N,) of each row (N, P), and take the best if it beats the row; return rows
    and scores. Without ``known`` scores (N,) the rows are queried, too."""
    sizes = space.sizes[where]
    trials = np.repeat(rows, sizes, axis=0)
    trials[np.arange(len(trials)), np.repeat(where, sizes)] = np.concatenate([np.arange(1, size + 1) for size in sizes])
    asked = trials if known is not None else np.concatenate([rows, trials])
    found = yield asked
    before = known if known is not None else found[: len(rows)]
    gains, begin = found[len(asked) - len(trials) :], 0
    after, scores = rows.copy(), before.copy()
    for index, size in enumerate(sizes.tolist()):
        here = gains[begin : begin + size]
        best = best_index(here)
        if is_better(here[best], before[index]):
            after[index], scores[index] = trials[begin + best], here[best]
        begin += size
    return after, scores


@final
class Greedy(Search):
    """Try every single change, take the best, and continue while the score rises.

    Without ``rescan`` only the first round tries everything. This round finds the best substitute of each word and ranks the
    words by gain. Words are then changed in this order (as in Ren et al. 2019), with far fewer queries."""

    class Settings(Search.Settings):
        rescan: bool = True
        """Try every change again after each change."""

    settings: Settings

    def run(self, space: Space, start: float, generator: np.random.Generator) -> Queries:
        row, score = space.origin()[0], start
        if not self.settings.rescan:
            yield from self._in_order(space, start)
            return
        before = None
        while row is not before:
            before = row
            for trials in space.single_changes(before):
                scores = yield trials
                best = best_index(scores)
                if is_better(scores[best], score):
                    row, score = trials[best], float(scores[best])

    def _in_order(self, space: Space, start: float) -> Queries:
        asked: list[Scores] = []
        for trials in space.single_changes(space.origin()[0]):
            asked.append((yield trials))
        gains = np.split(np.concatenate(asked), np.cumsum(space.sizes)[:-1])  # of each place, its substitutes in order
        best = [best_index(each) for each in gains]
        row, score = space.origin()[0], start
        for place in sorted(range(len(best)), key=lambda place: -round(float(gains[place][best[place]]), 5)):
            if int((row > 0).sum()) >= space.most:
                return
            trial = row.copy()
            trial[place] = best[place] + 1
            found = yield trial[None]
            if is_better(found[0], score):
                row, score = trial, float(found[0])


@final
class Beam(Search):
    """Keep the ``width`` best rows for each number of changes, and try every further change of each kept row."""

    class Settings(Search.Settings):
        width: int = Field(default=8, ge=1)
        """Number of rows to keep."""

    settings: Settings

    def refusal(self, space: Space) -> str:
        num = self.settings.width * int(space.sizes.sum()) * len(space.sizes)
        return (
            f"a beam of {self.settings.width} rows of so long a text has {num:,} numbers in memory" if num > 16 * BLOCK else ""
        )

    def run(self, space: Space, start: float, generator: np.random.Generator) -> Queries:
        beam = space.origin()
        for _ in range(space.most):
            trials = np.concatenate([rows for row in beam for rows in space.single_changes(row)])
            # The same set of changes can be reached in several orders; the first place it comes up is kept.
            _, first = np.unique(trials, axis=0, return_index=True)
            trials = trials[np.sort(first)]
            scores = yield trials
            order = np.argsort(-np.round(scores, 5), kind="stable")
            beam = trials[order[: self.settings.width]]


@final
class Exhaustive(Search):
    """Query every row, fewest changes first: if it fails, no search can succeed, and a success has the fewest changes.

    A space of more than ``limit`` rows is refused, with its size: the example is skipped."""

    class Settings(Search.Settings):
        limit: int = Field(default=20_000, ge=1)
        """Most rows for one example."""
        at_once: int = Field(default=500, ge=1)
        """Rows of one step."""

    settings: Settings
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


@final
class RandomSearch(Search):
    """Random rows with 1 to ``max_changes`` changes: number, places and substitutes are drawn uniformly."""

    class Settings(Search.Settings):
        draws: int = Field(default=1000, ge=1)
        """Number of drawn texts, repeats included."""
        at_once: int = Field(default=50, ge=1)
        """Texts of one step."""

    settings: Settings

    def run(self, space: Space, start: float, generator: np.random.Generator) -> Queries:
        left, places = self.settings.draws, len(space.positions)
        while left > 0:
            num = min(left, self.settings.at_once)
            left -= num
            changed = 1 + (generator.random(num) * space.most).astype(np.int64)
            ranks = generator.random((num, places)).argsort(axis=1).argsort(axis=1)
            choices = 1 + (generator.random((num, places)) * space.sizes).astype(np.int64)
            yield np.where(ranks < changed[:, None], choices, 0).astype(np.int16)


@final
class Genetic(Search):
    """Populations of texts: parents by softmax(score / temperature), uniform crossover, a replacement in each child, an elite.

    The first population is the example with one replacement in each member. A place is drawn in proportion to its number of
    substitutes. ``replacement`` is ``best`` (sentiment: all substitutes of the place are tried, the best is taken if it raises
    the score) or ``random`` (entailment, as released). A child with more changes than allowed loses random ones.

    Every tried text that fools the victim is a success. The public code checks only the fittest text of each generation, so the
    public code may need more queries."""

    class Settings(Search.Settings):
        population: int = Field(default=60, ge=2)
        """Texts of one generation."""
        generations: int = Field(default=20, ge=1)
        """Number of generations."""
        temperature: float = Field(default=0.3, gt=0.0)
        """Temperature of choosing parents; lower is greedier."""
        crossover: float = Field(default=0.5, ge=0.0, le=1.0)
        """Probability of the second parent's word at each place."""
        mutation: float = Field(default=1.0, ge=0.0, le=1.0)
        """Share of the children that get a replacement."""
        replacement: Literal["best", "random"] = "best"
        """Choice of the replacement at a place."""
        revisit: bool = False
        """Allow drawing a changed word again before all others are changed."""

    settings: Settings

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
        """Give each row, or a randomly drawn share of the rows, one replacement in place."""
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
    """exp(values), divided by its sum over the last axis."""
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@final
class ParticleSwarm(Search):
    """Each particle is a text that moves word by word towards its own best and the swarm's best, then may mutate.

    Velocity of a word: v <- w v + (1 - w)(a + b), where a is -3 if the word agrees with the particle's best and 3 if not, and b
    likewise for the swarm's best; w falls from the first ``inertia`` to the second. With the falling probability P1 a particle
    takes words of its own best, each with probability sigmoid(v); then with the rising P2, words of the swarm's best. A
    particle with a share r of changed words mutates with probability 1 - 2 r: it takes the best substitute at a place drawn in
    proportion to the number of its substitutes (at most 10). All this follows the public code, except that the limit of changes
    holds for all texts."""

    class Settings(Search.Settings):
        population: int = Field(default=60, ge=1)
        """Number of particles."""
        iterations: int = Field(default=20, ge=1)
        """Number of moves."""
        inertia: tuple[float, float] = (0.8, 0.2)
        """w at the start and at the end."""
        moves: tuple[float, float] = (0.8, 0.2)
        """P1 at the start and at the end; P2 the other way round."""
        speed: float = Field(default=3.0, gt=0.0)
        """The step for agreement and disagreement, and the range of the first velocities."""

    settings: Settings

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


SEARCHES: dict[str, str] = {
    "genetic": "sememekit.attack.searches:Genetic",
    "pso": "sememekit.attack.searches:ParticleSwarm",
    "greedy": "sememekit.attack.searches:Greedy",
    "beam": "sememekit.attack.searches:Beam",
    "random": "sememekit.attack.searches:RandomSearch",
    "exhaustive": "sememekit.attack.searches:Exhaustive",
}
"""Name of ``--search`` -> "module:Class"."""
