"""Paired differences of ROUGE or BLEU between two systems on the same inputs."""

from __future__ import annotations

import numpy as np

from sememekit.errors import DataError
from sememekit.measure.bleu import BleuReport
from sememekit.measure.intervals import RESAMPLES, Estimate, ratio_difference_interval
from sememekit.measure.rouge import RougeReport


def score_differences(
    first: BleuReport | RougeReport, second: BleuReport | RougeReport, *, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Estimate]:
    """The first system minus the second on the same inputs: metric -> difference of means with its paired bootstrap interval.
    Raises DataError when the settings, the references or the numbers of examples differ."""
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
