"""Paired differences of ROUGE or BLEU between two systems on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sememekit.errors import DataError
from sememekit.measure.intervals import RESAMPLES, Estimate, ratio_difference_interval


class ScoreReport(Protocol):
    """The part of a ROUGE or BLEU report that a comparison needs; ``per_example`` is metric -> (n,)."""

    @property
    def per_example(self) -> Mapping[str, npt.NDArray[np.float64]]: ...

    @property
    def examples(self) -> int: ...

    @property
    def signature(self) -> str: ...


def score_differences(
    first: ScoreReport, second: ScoreReport, *, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Estimate]:
    """The first system minus the second on the same inputs: metric -> difference of means with its paired bootstrap interval.
    Raises DataError when the settings or the numbers of examples differ."""
    if first.signature != second.signature or first.examples != second.examples:
        raise DataError(
            f"scores of {first.examples} examples by {first.signature} cannot be compared with scores of {second.examples} "
            f"examples by {second.signature}"
        )
    ones = np.ones(first.examples)
    return {
        name: ratio_difference_interval((column, ones), (second.per_example[name], ones), resamples=resamples, seed=seed)
        for name, column in first.per_example.items()
    }
