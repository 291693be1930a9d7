"""What several runs score on one text: the perplexity of language models, or the accuracy of classifiers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from sememekit.analysis.evaluate_ppl import TextReading
from sememekit.analysis.evaluate_several import check_all_comparable, check_comparable, score_all
from sememekit.analysis.signatures import label_signature, of_text
from sememekit.errors import ConfigError
from sememekit.progress import Progress, silent
from sememekit.runs.run import Run
from sememekit.tasks.base import LabelPredictor, declares


@dataclass(frozen=True)
class Scale:
    """How the values of a figure are averaged and told apart.

    ``outer`` undoes ``inner``, of which means are taken, and ``change`` makes of the difference of two means what is shown.
    """

    figure: Literal["perplexity", "accuracy"]
    higher: bool
    inner: Callable[[float], float]
    outer: Callable[[float], float]
    change: Callable[[float], float]


PERPLEXITY: Final = Scale("perplexity", False, math.log, math.exp, math.expm1)
ACCURACY: Final = Scale("accuracy", True, float, float, float)


@dataclass(frozen=True)
class ScoredRuns:
    """What c runs made of a text: sums over numerators by sums over denominators, (n, c) each, are the inner values."""

    scale: Scale
    numerators: npt.NDArray[np.float64]
    denominators: npt.NDArray[np.float64]
    unit: str
    signature: str


def score_runs(opened: Sequence[Run], text: TextReading, progress: Progress = silent) -> ScoredRuns:
    """The perplexity of language models on a text, or the accuracy of classifiers on its examples.

    Raises:
        ConfigError: models of both kinds, runs whose signatures differ, or a batch size for classifiers.
        CheckpointError, DataError: as ``evaluate_ppl``.
    """
    labels = [loaded for loaded in opened if declares(loaded.task, LabelPredictor)]
    if len(labels) == len(opened):
        return _score_labels(opened, text, progress)
    if labels:
        other = next(loaded for loaded in opened if loaded not in labels)
        raise ConfigError(
            f"{labels[0].path} labels texts and {other.path} does not, so that they have no figure in common; compare models "
            "of one task"
        )
    check_all_comparable(opened, text, "compare")
    reports, texts = score_all(opened, text, progress=progress)
    nats, counts = (np.stack(part, axis=1).astype(np.float64) for part in zip(*(one.sums() for one in texts), strict=True))
    return ScoredRuns(PERPLEXITY, nats, counts, texts[0].unit, of_text(reports[0].signature))


def _score_labels(opened: Sequence[Run], text: TextReading, show: Progress) -> ScoredRuns:
    """Which examples each classifier labels rightly."""
    if text.batch_size is not None:
        raise ConfigError(f"{opened[0].path} labels examples, one by one, so that --batch-size does not apply; leave it out")
    data = [loaded.data(text.data) for loaded in opened]
    signatures = [label_signature(prepared, text.split) for prepared in data]
    signed = [
        (str(loaded.path), f"{signature}|dtype:{loaded.settings.dtype}")
        for loaded, signature in zip(opened, signatures, strict=True)
    ]
    for other in signed[1:]:
        check_comparable(signed[0], other)
    hits = []
    for number, (loaded, prepared) in enumerate(zip(opened, data, strict=True), start=1):
        show("reading with each classifier", number - 1, len(opened))
        assert declares(loaded.task, LabelPredictor)
        examples = loaded.task.examples(prepared, text.split)
        with loaded.autocast():
            chosen = loaded.task.probabilities([examples.texts(example) for example in range(len(examples))]).argmax(1)
        hits.append(chosen == np.asarray(examples.labels, dtype=np.int64))
    show("reading with each classifier", len(opened), len(opened))
    right = np.stack(hits, axis=1).astype(np.float64)
    return ScoredRuns(ACCURACY, right, np.ones_like(right), "examples", signatures[0])
