"""Share of the successes of an attack that people accept: validity, and success times validity.

An adversarial text is valid where it means what the original says, has its true label, and is fluent. Of S successes among N
examples n are rated, a random sample; with p = S / N and v = valid / n the rate of valid successes is p v. Its interval puts
the limits of Wilson together by the delta method, as Newcombe does for a difference of rates:

    low = p v - sqrt((v (p - low_p))^2 + (p (v - low_v))^2),    high alike.

Both terms are needed: where everything is rated, v^2 p (1 - p) / N + p^2 v (1 - v) / S = p v (1 - p v) / N, the variance of a
share of N.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sememekit.config import Record
from sememekit.measure.attack_rates import LEVELS, ExampleOutcome
from sememekit.measure.intervals import Interval
from sememekit.measure.rates import rate


class Verdict(NamedTuple):
    """Majority of the raters of a success: same meaning; the adversarial text has the true label and is fluent; so has the
    ``original``, the label."""

    meaning: bool
    label: bool
    fluent: bool
    original: bool

    @property
    def valid(self) -> bool:
        return self.meaning and self.label and self.fluent


class Validity(Record):
    """The validity of the successes of an attack.

    Attributes:
        rated, successes: successes that were rated, and all.
        ratings: rows of all raters on them.
        meaning, label, fluent, valid: of these, texts that keep the meaning, keep the label, are fluent, and all three.
        originals: of these, originals that raters give their true label: how well raters and data agree.
        valid_success: success rate times validity.
        valid_success_at: the same with successes of at most so many queries; None above the query budget.
    """

    rated: int
    successes: int
    ratings: int
    meaning: Interval
    label: Interval
    fluent: Interval
    valid: Interval
    originals: Interval
    valid_success: Interval
    valid_success_at: dict[int, Interval | None]


def product_interval(first: Interval, second: Interval) -> Interval:
    """The product of two independent rates with its interval, see the module."""
    values = [[getattr(found, name) for name in ("value", "low", "high")] for found in (first, second)]
    if any(None in each for each in values):
        return Interval(value=None, low=None, high=None)
    (p, low_p, high_p), (v, low_v, high_v) = values
    low, high = math.hypot(v * (p - low_p), p * (v - low_v)), math.hypot(v * (high_p - p), p * (high_v - v))
    return Interval(value=p * v, low=max(p * v - low, 0.0), high=min(p * v + high, 1.0))


def validity_of(
    records: Sequence[ExampleOutcome], verdicts: Mapping[int, Verdict], ratings: int, *, query_budget: int = 0
) -> Validity:
    """The validity of an attack; ``verdicts`` by the place of an example in ``records``, ``ratings`` of all raters."""
    queries = np.array([record.queries for record in records])
    tried = np.array([float(record.outcome in ("success", "failed")) for record in records])
    won = np.array([float(record.outcome == "success") for record in records])
    rated = np.array([float(place in verdicts) for place in range(len(records))])
    said = {
        name: np.array([float(place in verdicts and getattr(verdicts[place], name)) for place in range(len(records))])
        for name in ("meaning", "label", "fluent", "valid", "original")
    }

    def up_to(level: float) -> Interval:
        quick = queries <= level
        return product_interval(rate(won * quick, tried), rate(said["valid"] * quick, rated * quick))

    return Validity(
        rated=len(verdicts),
        successes=int(won.sum()),
        ratings=ratings,
        **{name: rate(said[name], rated) for name in ("meaning", "label", "fluent", "valid")},
        originals=rate(said["original"], rated),
        valid_success=up_to(math.inf),
        valid_success_at={level: None if query_budget and level > query_budget else up_to(level) for level in LEVELS},
    )
