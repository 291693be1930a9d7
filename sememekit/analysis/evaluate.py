"""``sememekit eval``: the metrics of a task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from sememekit.analysis.evaluate_writing import WrittenReport, evaluate_writing
from sememekit.analysis.signatures import label_signature, perplexity_signature
from sememekit.errors import ConfigError
from sememekit.measure.classes import Accuracy
from sememekit.progress import Progress, silent
from sememekit.runs.run import OfRun, Run, Which
from sememekit.tasks.base import LabelPredictor, declares
from sememekit.tasks.scoring import PAIRS
from sememekit.tasks.vectors import VectorCoverage
from sememekit.tasks.writing import TextWriter


class MetricsReport(OfRun):
    """What ``eval`` found; as JSON one flat object, each metric under its usual name.

    Attributes:
        metrics: name -> value, as the task calls them.
    """

    model_config = ConfigDict(allow_inf_nan=True)

    split: str
    metrics: dict[str, int | float] = Field(default_factory=dict)

    @model_serializer(mode="wrap")
    def _flat(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        table = fields(self)
        return table | table.pop("metrics")


class LabelMetrics(Accuracy, MetricsReport):
    """What ``eval`` found of a classifier.

    Attributes:
        nats: of the right labels, summed.
        labels: their names, in the order of the confusion matrix.
        vectors: how much of the text has a vector in the file that the model began with, where there was one.
        signature: one line; figures whose signatures are equal can be compared.
    """

    nats: float
    labels: tuple[str, ...]
    vectors: VectorCoverage | None
    signature: str


class WrittenMetrics(WrittenReport, MetricsReport):
    """What ``eval`` found of a model that writes texts; ``metrics`` are the first of the ``scores``.

    Attributes:
        perplexity_signature: as ``evaluate-ppl`` has it.
    """

    signature: str
    perplexity_signature: str


def evaluate(
    run: Path | Run,
    *,
    split: str = "test",
    data: Path | None = None,
    device: str = "auto",
    dtype: str | None = None,
    which: Which = "best",
    overrides: Sequence[str] = (),
    texts: Path | None = None,
    progress: Progress = silent,
) -> MetricsReport:
    """The metrics of the task: ``LabelMetrics``, ``WrittenMetrics``, or of any other task what it names.

    Args and errors as ``evaluate_ppl``; ``overrides`` and ``texts`` as ``evaluate_writing``, and refused for other tasks.
    """
    loaded = Run.open(run, which=which, device=device, dtype=dtype)
    prepared = loaded.data(data)
    if (overrides or texts is not None) and not declares(loaded.task, TextWriter):
        given = "--set" if overrides else "--texts"
        raise ConfigError(f"{given}: {run} writes no texts; this is for runs of --task headline or dialogue, leave it out")
    where: dict[str, str] = {"run": str(run), "checkpoint": loaded.snapshot, "split": split}
    with loaded.autocast():
        if declares(loaded.task, TextWriter):
            judged = evaluate_writing(loaded, loaded.task, prepared, split, overrides=overrides, texts=texts, progress=progress)
            main = judged.scores[0]
            return WrittenMetrics(
                **where,
                **dict(judged),
                metrics={score.name: score.value for score in main.values},
                signature=main.signature,
                perplexity_signature=perplexity_signature(prepared, split, judged.tokens, 1, PAIRS),
            )
        if declares(loaded.task, LabelPredictor):
            accuracy, nats = loaded.task.evaluate_labels(prepared, split)
            vectors = loaded.task.vector_coverage(prepared, split)
            return LabelMetrics(
                **where,
                **dict(accuracy),
                nats=nats,
                labels=tuple(loaded.task.labels),
                vectors=vectors,
                signature=label_signature(prepared, split),
            )
        return MetricsReport(**where, metrics=loaded.task.evaluate(prepared, split))
