"""The base class of searches: generators of rows of a space, which are sent the scores of these rows.

A search never sees a text, a label or the victim. It yields rows, is sent their scores, higher is better, and returns when it
has nothing left to try. The engine counts the queries, ends it at the first row that reaches the goal, and lets the searches of
many examples advance together.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sememekit import config
from sememekit.attack.space import Rows, Space, best_index, is_better

Scores = NDArray[np.float64]
Queries = Generator[Rows, Scores, None]
"""Yields (N, P) rows, is sent (N,) scores."""


class Search(ABC):
    """Looks through a space for a row with a high score.

    >>> space = Space.open(Document.read(("a good film",)), {"good": ("fine", "great")})
    >>> search = Greedy(Greedy.Settings()).run(space, 0.1, np.random.default_rng(1))
    >>> next(search).tolist()    # wants scores: search.send(scores_N) gives the next rows, until StopIteration
    [[1], [2]]
    """

    class Settings(config.Settings):
        """Settings of one search."""

    verdict: ClassVar[str] = "search exhausted, no adversarial example found"
    """The reason of an example on which ``run`` returned without a success."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def refusal(self, space: Space) -> str:
        """Why this search skips a space, or an empty string."""
        return ""

    @abstractmethod
    def run(self, space: Space, start: float, generator: np.random.Generator) -> Queries:
        """Search a space with at least one changeable word and one change allowed.

        ``start`` is the score of the example as it is; ``generator`` belongs to the example, so that the result does not
        depend on what is searched beside it.
        """


def best_single_replacement(
    rows: Rows, where: NDArray[np.int64], space: Space, known: Scores | None = None
) -> Generator[Rows, Scores, tuple[Rows, Scores]]:
    """Try all substitutes at one place of each row and take the best where it beats the row; gives the rows and their scores.

    Args:
        rows: (N, P).
        where: (N,) the place of each row.
        known: (N,) scores of the rows, where they are known; otherwise they are asked as well.
    """
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


def draw_places(
    rows: Rows, weights: NDArray[np.float64], space: Space, generator: np.random.Generator, *, revisit: bool
) -> NDArray[np.int64]:
    """(N,) a place for each row, in proportion to ``weights`` (P,): an unchanged one while there is one, if not ``revisit``.

    A row at the limit of changes can only exchange a change for another. One uniform number is drawn a row.
    """
    changed = rows > 0
    open_places = np.ones_like(changed) if revisit else ~changed
    full = changed.sum(axis=1) >= space.most
    allowed = np.where(full[:, None], changed, open_places)
    mass = np.where(allowed, weights[None], 0.0).cumsum(axis=1)
    points = generator.random(len(rows)) * mass[:, -1]
    return np.minimum((mass <= points[:, None]).sum(axis=1), mass.shape[1] - 1)
