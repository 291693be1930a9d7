"""Accuracy with its interval, the confusion matrix, and scores of each class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from sememekit.config import Record

_NORMAL_95: Final = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""


class ClassScores(Record):
    """Precision, recall and F1 of one label, 0 where undefined; ``support`` is the number of examples that have it."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


class Accuracy(Record):
    """Accuracy (correct / examples) with its 95 % Wilson score interval, and scores by label.

    ``macro_f1`` is the plain mean of the F1 of the labels that examples have or were given; ``confusion`` has a row for each
    true label and a column for each predicted one.
    """

    accuracy: float
    accuracy_low: float
    accuracy_high: float
    interval: str = "Wilson 95 %"
    examples: int
    macro_f1: float
    classes: tuple[ClassScores, ...]
    confusion: tuple[tuple[int, ...], ...]


def wilson_interval(correct: int, total: int) -> tuple[float, float]:
    """The 95 % score interval of a share (Wilson 1927): the shares p that correct / total does not refute.

    With n = total, p = correct / n and z = 1.96: centre (p + z^2 / 2n) / (1 + z^2 / n), half width z / (1 + z^2 / n) sqrt(p (1
    - p) / n + z^2 / 4n^2). It never leaves [0, 1], and is right for few errors, too. Raises ValueError for no trials.
    """
    if total < 1 or not 0 <= correct <= total:
        raise ValueError(f"{correct} of {total}")
    share, square = correct / total, _NORMAL_95**2
    scale = 1 + square / total
    centre = (share + square / (2 * total)) / scale
    half = _NORMAL_95 / scale * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    return (0.0 if correct == 0 else centre - half), (1.0 if correct == total else centre + half)


def accuracy_of(confusion: npt.NDArray[np.int64], labels: Sequence[str]) -> Accuracy:
    """All scores from the confusion matrix (C, C): true labels in rows, predicted ones in columns."""
    correct, total = int(np.trace(confusion)), int(confusion.sum())
    low, high = wilson_interval(correct, total)
    classes = []
    for index, label in enumerate(labels):
        hits, called, support = (int(n) for n in (confusion[index, index], confusion[:, index].sum(), confusion[index].sum()))
        classes.append(
            ClassScores(
                label=label,
                precision=hits / called if called else 0.0,
                recall=hits / support if support else 0.0,
                f1=2 * hits / (called + support) if called + support else 0.0,
                support=support,
            )
        )
    met = [scores for index, scores in enumerate(classes) if scores.support or confusion[:, index].any()]
    return Accuracy(
        accuracy=correct / total,
        accuracy_low=low,
        accuracy_high=high,
        examples=total,
        macro_f1=sum(scores.f1 for scores in met) / len(met),
        classes=tuple(classes),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
    )
