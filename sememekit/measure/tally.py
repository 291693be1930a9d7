"""Sums that are divided once, at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Tally:
    """Total nats and the number of predicted tokens. Tallies add up; a mean of means cannot be written.

    >>> (Tally(4.0, 2) + Tally(2.0, 1)).mean
    2.0
    """

    nats: float = 0.0
    count: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.nats + other.nats, self.count + other.count)

    @property
    def mean(self) -> float:
        """Nats a token; NaN for an empty tally."""
        return self.nats / self.count if self.count else math.nan

    @property
    def perplexity(self) -> float:
        """exp of the mean; infinite where that overflows, NaN for an empty tally."""
        return math.exp(self.mean) if not self.mean > 700 else math.inf
