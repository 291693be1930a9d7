"""``sememekit predict``: the labels of texts, and what every user of a trained classifier starts from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.runs.classifier import Classifier, load_classifier
from sememekit.runs.run import Which

_LINES_AT_ONCE = 1024


class Prediction(Record):
    """What a model makes of an example.

    Attributes:
        line: of the input, from 1.
        label: the likeliest.
        probabilities: label -> probability.
    """

    line: int
    label: str
    probabilities: dict[str, float]


class PredictionReport(Record):
    """All predictions of a call."""

    run: str
    checkpoint: str
    labels: tuple[str, ...]
    predictions: tuple[Prediction, ...]


def predict(
    run: Path, lines: Iterable[str], *, which: Which = "best", device: str = "auto"
) -> tuple[Classifier, Iterator[Prediction]]:
    """Labels of texts, a line each; the texts of a pair have TAB between.

    Args:
        run: the run folder.
        lines: an example each; blank lines give nothing and are counted.
        which: the best weights by validation, or the last.
        device: ``auto``, ``cpu`` or ``cuda``.

    Returns:
        the model, and a prediction for each line in order, 1,024 lines read at once.

    Raises:
        CheckpointError, ConfigError, DataError: as :func:`load_classifier` and :meth:`Classifier.probabilities`.
    """
    classifier = load_classifier(run, which=which, device=device)
    return classifier, _predictions(classifier, lines)


def _predictions(classifier: Classifier, lines: Iterable[str]) -> Iterator[Prediction]:
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    wanted = len(classifier.texts)
    while block := list(islice(numbered, _LINES_AT_ONCE)):
        examples = []
        for number, line in block:
            parts = line.split("\t")
            if len(parts) != wanted:
                needed = "one text a line, without TAB" if wanted == 1 else f"{' TAB '.join(classifier.texts)} on a line"
                raise DataError(f"line {number}: {len(parts)} texts with TAB between; this model takes {needed}")
            for name, part in zip(classifier.texts, parts, strict=True):
                if not part.strip():
                    raise DataError(f"line {number}: the {name} is empty; a text needs a word at least")
            examples.append(tuple(parts))
        for (number, _), row in zip(block, classifier.probabilities(examples), strict=True):
            yield Prediction(
                line=number,
                label=classifier.labels[int(row.argmax())],
                probabilities=dict(zip(classifier.labels, row.tolist(), strict=True)),
            )
