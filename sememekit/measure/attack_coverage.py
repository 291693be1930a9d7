"""The size of the search space of an attack: words with substitutes, substitutes of each, and texts within the constraints."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from sememekit.config import Record

LOW_COVERAGE: Final = 0.2
"""Share of changeable words below which the figures of an attack say little about the victim."""


class SpaceSize(Record):
    """The search space of one example.

    Attributes:
        words: in the fields that may change, without punctuation.
        with_candidates: of these, words that have a substitute at all.
        changeable: of these, words that still have one under the constraints.
        substitutes: of the changeable words together.
        texts_log10: log10 of the number of other texts within the constraints; None where there is none.
    """

    words: int
    with_candidates: int
    changeable: int
    substitutes: int
    texts_log10: float | None


class Coverage(Record):
    """The search spaces of all correctly classified examples that no constraint refused, together.

    Sums, shares of the words, the mean number of substitutes of a changeable word, and the median over examples with a text to
    try. Ratios without a divisor are None.
    """

    examples: int
    words: int
    with_candidates: int
    changeable: int
    share_with_candidates: float | None
    share_changeable: float | None
    mean_substitutes: float | None
    median_texts_log10: float | None

    @property
    def low(self) -> bool:
        return self.share_changeable is not None and self.share_changeable < LOW_COVERAGE


def coverage_of(sizes: Iterable[SpaceSize]) -> Coverage:
    """Sums, shares and the median over examples."""
    found = list(sizes)
    words, with_candidates, changeable, substitutes = (
        sum(getattr(size, name) for size in found) for name in ("words", "with_candidates", "changeable", "substitutes")
    )
    logs = [size.texts_log10 for size in found if size.texts_log10 is not None]
    return Coverage(
        examples=len(found),
        words=words,
        with_candidates=with_candidates,
        changeable=changeable,
        share_with_candidates=with_candidates / words if words else None,
        share_changeable=changeable / words if words else None,
        mean_substitutes=substitutes / changeable if changeable else None,
        median_texts_log10=float(np.median(logs)) if logs else None,
    )
