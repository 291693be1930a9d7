"""Accuracy with its interval, the confusion matrix, and scores of each class."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sememekit.config import Record
from sememekit.measure.intervals import wilson_interval


class ClassScores(Record):
    """Precision, recall and F1 of one label, 0 where undefined; ``support`` is the number of examples that have it."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


class Accuracy(Record):
    """Accuracy (correct / examples) with its 95 % Wilson score interval, and scores by label.

    ``macro_f1`` is the plain mean of F1 over labels that occur, true or predicted; ``confusion`` has a row for each true label
    and a column for each predicted label."""

    accuracy: float
    accuracy_low: float
    accuracy_high: float
    interval: str = "Wilson 95 %"
    examples: int
    macro_f1: float
    classes: tuple[ClassScores, ...]
    confusion: tuple[tuple[int, ...], ...]


def accuracy_of(confusion: npt.NDArray[np.int64], labels: Sequence[str]) -> Accuracy:
    """All scores from the confusion matrix (C, C): true labels in rows, predicted ones in columns."""
    correct, total = int(np.trace(confusion)), int(confusion.sum())
    low, high = wilson_interval(correct, total)
    classes = []
    for index, label in enumerate(labels):
        hits, called, support = (int(n) for n in (confusion[index, index], confusion[:, index].sum(), confusion[index].sum()))
        precision, recall = (hits / of if of else 0.0 for of in (called, support))
        f1 = 2 * hits / (called + support) if called + support else 0.0
        classes.append(ClassScores(label=label, precision=precision, recall=recall, f1=f1, support=support))
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
