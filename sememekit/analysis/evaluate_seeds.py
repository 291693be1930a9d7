"""``sememekit evaluate-ppl FOLDER`` and ``eval FOLDER``: the figures of one model that was trained with several seeds."""

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import SerializeAsAny

from sememekit.analysis.evaluate import LabelMetrics, MetricsReport, WrittenMetrics, evaluate
from sememekit.analysis.evaluate_ppl import PerplexityReport, evaluate_ppl
from sememekit.analysis.scored_runs import check_comparable
from sememekit.analysis.signatures import of_text
from sememekit.config import Record
from sememekit.errors import CheckpointError
from sememekit.measure.sides import SCALES
from sememekit.training.checkpoint import seed_runs


class OfSeeds(Record):
    """Base of the reports on a folder that ``train --seeds`` wrote.

    Attributes:
        run: the folder.
        seeds: as the folders of its runs are numbered.
    """

    run: str
    split: str
    seeds: tuple[int, ...]


class SeedsPerplexity(OfSeeds):
    """Report of ``evaluate-ppl`` on such a folder.

    Attributes:
        mean, sd: geometric mean of the perplexities, and their standard deviation (with n - 1; None of one seed).
        signature: that all of them have, without what a cache or dynamic evaluation adds where each was tuned by itself.
        reports: what ``evaluate-ppl`` finds of each run.
    """

    mean: float
    sd: float | None
    signature: str
    reports: tuple[PerplexityReport, ...]


class SeedsFigure(Record):
    """A metric of each seed, with mean (geometric of perplexities) and standard deviation (with n - 1; None of one seed)."""

    values: tuple[float, ...]
    mean: float
    sd: float | None


class SeedsMetrics(OfSeeds):
    """Report of ``eval`` on such a folder.

    Attributes:
        figures: by the name of the metric: accuracy and macro F1 of a classifier, ROUGE or BLEU and perplexity of a model that
            writes, and what any other task names.
        signature: that all of them have; None of a task whose metrics have none.
        reports: what ``eval`` finds of each run.
    """

    figures: dict[str, SeedsFigure]
    signature: str | None
    reports: tuple[SerializeAsAny[MetricsReport], ...]


R = TypeVar("R", PerplexityReport, MetricsReport)


def evaluate_seeds(folder: Path, read: Callable[[Path], PerplexityReport] = evaluate_ppl) -> SeedsPerplexity:
    """The perplexity of each seed of a model, with mean and standard deviation; the runs are opened one after the other.

    Args:
        folder: with the runs ``seed-N``.
        read: what is asked of each, such as ``partial(evaluate_ppl, split="valid", batch_size=1)``.

    Raises:
        CheckpointError: no such runs, or one without a checkpoint.
        ConfigError: runs whose signatures differ; and as ``read``.
    """
    found, reports = _read(folder, read, lambda one: f"{of_text(one.signature, adapted=False)}|dtype:{one.dtype}")
    figure, signature = _figure("perplexity", [one.perplexity for one in reports]), reports[0].signature
    if len({one.signature for one in reports}) > 1:
        signature = of_text(signature, adapted=False)
    return SeedsPerplexity(**found, mean=figure.mean, sd=figure.sd, signature=signature)


def evaluate_metrics_of_seeds(folder: Path, read: Callable[[Path], MetricsReport] = evaluate) -> SeedsMetrics:
    """The metrics of each seed of a model, with mean and standard deviation; the runs are opened one after the other.

    Args and errors as ``evaluate_seeds``; ``read`` is such as ``partial(evaluate, split="valid")``.
    """
    found, reports = _read(folder, read, _signature)
    figures = [_figures(one) for one in reports]
    by_name = {name: _figure(name, [one[name] for one in figures]) for name in figures[0]}
    return SeedsMetrics(**found, figures=by_name, signature=_signature(reports[0]) or None)


def _read(folder: Path, read: Callable[[Path], R], signature: Callable[[R], str]) -> tuple[dict[str, Any], list[R]]:
    """Read each run, and refuse unlike signatures; return the fields of both reports, and the report of each run."""
    if not (runs := seed_runs(folder)):
        raise CheckpointError(f"{folder} is no folder of runs seed-1, seed-2, ...; give one that 'train --seeds' wrote")
    reports: list[R] = []
    for run in runs:
        reports.append(read(run))
        if first := signature(reports[0]):
            check_comparable((str(runs[0]), first), (str(run), signature(reports[-1])))
    seeds = tuple(int(run.name.removeprefix("seed-")) for run in runs)
    return {"run": str(folder), "split": reports[0].split, "seeds": seeds, "reports": tuple(reports)}, reports


def _figure(name: str, values: Sequence[float]) -> SeedsFigure:
    scale = SCALES["perplexity" if name.endswith("perplexity") else "accuracy"]
    sd = statistics.stdev(values) if len(values) > 1 else None
    return SeedsFigure(values=tuple(values), mean=scale.mean(map(scale.inner, values)), sd=sd)


def _signature(report: MetricsReport) -> str:
    return report.signature if isinstance(report, LabelMetrics | WrittenMetrics) else ""


def _figures(report: MetricsReport) -> dict[str, float]:
    """Return the metrics that have a mean over seeds; counts are the same for all."""
    if isinstance(report, LabelMetrics):
        return {"accuracy": report.accuracy, "macro_f1": report.macro_f1}
    found = {name: value for name, value in report.metrics.items() if isinstance(value, float) and name != "nats"}
    return found | {"perplexity": report.perplexity} if isinstance(report, WrittenMetrics) else found
