"""``sememekit evaluate-ppl FOLDER`` and ``eval FOLDER``: the figures of one model that was trained with several seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import SerializeAsAny

from sememekit.analysis.evaluate import LabelMetrics, MetricsReport, WrittenMetrics, evaluate
from sememekit.analysis.evaluate_ppl import PerplexityReport, evaluate_ppl
from sememekit.analysis.evaluate_several import check_comparable
from sememekit.analysis.signatures import of_text
from sememekit.config import Record
from sememekit.errors import CheckpointError, ConfigError
from sememekit.training.checkpoint import seed_runs


class SeedsPerplexity(Record):
    """What ``evaluate-ppl`` found of a folder that ``train --seeds`` wrote.

    Attributes:
        run: the folder.
        seeds: as the folders of its runs are numbered.
        mean: the geometric mean of their perplexities, as ``compare`` has it; ``sd`` is their standard deviation (with n - 1;
            None of one seed).
        signature: that all of them have, without what a cache or dynamic evaluation adds where each was tuned by itself.
        reports: what ``evaluate-ppl`` finds of each run.
    """

    run: str
    split: str
    seeds: tuple[int, ...]
    mean: float
    sd: float | None
    signature: str
    reports: tuple[PerplexityReport, ...]


class SeedsFigure(Record):
    """A metric of each seed, with mean (geometric of perplexities) and standard deviation (with n - 1; None of one seed)."""

    values: tuple[float, ...]
    mean: float
    sd: float | None


class SeedsMetrics(Record):
    """What ``eval`` found of a folder that ``train --seeds`` wrote.

    Attributes:
        run: the folder.
        seeds: as the folders of its runs are numbered.
        figures: by the name of the metric: accuracy and macro F1 of a classifier, ROUGE or BLEU and perplexity of a model that
            writes, and what any other task names.
        signature: that all of them have; None of a task whose metrics have none.
        reports: what ``eval`` finds of each run.
    """

    run: str
    split: str
    seeds: tuple[int, ...]
    figures: dict[str, SeedsFigure]
    signature: str | None
    reports: tuple[SerializeAsAny[MetricsReport], ...]


def evaluate_seeds(folder: Path, read: Callable[[Path], PerplexityReport] = evaluate_ppl) -> SeedsPerplexity:
    """The perplexity of each seed of a model, with mean and standard deviation; the runs are opened one after the other.

    Args:
        folder: with the runs ``seed-N``.
        read: what is asked of each, such as ``partial(evaluate_ppl, split="valid", batch_size=1)``.

    Raises:
        CheckpointError: no such runs, or one without a checkpoint.
        ConfigError: runs whose signatures differ; and as ``read``.
    """
    runs = _runs(folder)
    reports: list[PerplexityReport] = []
    for run in runs:
        reports.append(read(run))
        check_comparable(
            *((one.run, f"{of_text(one.signature, adapted=False)}|dtype:{one.dtype}") for one in (reports[0], reports[-1]))
        )
    values = [one.perplexity for one in reports]
    alike = len({one.signature for one in reports}) == 1
    return SeedsPerplexity(
        run=str(folder),
        split=reports[0].split,
        seeds=_numbers(runs),
        mean=geometric_mean(values),
        sd=statistics.stdev(values) if len(values) > 1 else None,
        signature=reports[0].signature if alike else of_text(reports[0].signature, adapted=False),
        reports=tuple(reports),
    )


def evaluate_metrics_of_seeds(folder: Path, read: Callable[[Path], MetricsReport] = evaluate) -> SeedsMetrics:
    """The metrics of each seed of a model, with mean and standard deviation; the runs are opened one after the other.

    Args and errors as ``evaluate_seeds``; ``read`` is such as ``partial(evaluate, split="valid")``.
    """
    runs, reports = _runs(folder), list[MetricsReport]()
    for run in runs:
        reports.append(read(run))
        first, last = (_signature(one) for one in (reports[0], reports[-1]))
        if first != last:
            raise ConfigError(
                f"{runs[0]} and {run} have no mean, for what was measured differs: {first} and {last}; evaluate each by "
                f"itself: sememekit eval {runs[0]}"
            )
    by_name = {name: tuple(_figures(one)[name] for one in reports) for name in _figures(reports[0])}
    return SeedsMetrics(
        run=str(folder),
        split=reports[0].split,
        seeds=_numbers(runs),
        figures={
            name: SeedsFigure(
                values=values,
                mean=geometric_mean(values) if name.endswith("perplexity") else statistics.fmean(values),
                sd=statistics.stdev(values) if len(values) > 1 else None,
            )
            for name, values in by_name.items()
        },
        signature=_signature(reports[0]),
        reports=tuple(reports),
    )


def _runs(folder: Path) -> list[Path]:
    if not (runs := seed_runs(folder)):
        raise CheckpointError(f"{folder} is no folder of runs seed-1, seed-2, ...; give one that 'train --seeds' wrote")
    return runs


def _numbers(runs: Sequence[Path]) -> tuple[int, ...]:
    return tuple(int(run.name.removeprefix("seed-")) for run in runs)


def _signature(report: MetricsReport) -> str | None:
    return report.signature if isinstance(report, LabelMetrics | WrittenMetrics) else None


def _figures(report: MetricsReport) -> dict[str, float]:
    """What a mean over seeds is of; counts are the same for all."""
    if isinstance(report, LabelMetrics):
        return {"accuracy": report.accuracy, "macro_f1": report.macro_f1}
    found = {name: value for name, value in report.metrics.items() if isinstance(value, float) and name != "nats"}
    return found | {"perplexity": report.perplexity} if isinstance(report, WrittenMetrics) else found


def geometric_mean(perplexities: Sequence[float]) -> float:
    """exp of the mean nats of several models on one text."""
    return math.exp(statistics.fmean(math.log(value) for value in perplexities))
