"""``sememekit evaluate-ppl FOLDER`` and ``eval FOLDER``: the figures of one model that was trained with several seeds."""

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import SerializeAsAny

from sememekit.analysis.evaluate import LabelMetrics, MetricsReport, WrittenMetrics
from sememekit.analysis.evaluate_ppl import PerplexityReport, evaluate_ppl
from sememekit.analysis.scored_runs import check_comparable
from sememekit.analysis.signatures import of_text
from sememekit.config import Record
from sememekit.errors import CheckpointError
from sememekit.measure.sides import SCALES
from sememekit.runs.run import OfRun
from sememekit.training.checkpoint import seed_runs


class SeedsFigure(Record):
    """A metric of each seed, with mean (geometric of perplexities) and standard deviation (with n - 1; None of one seed)."""

    values: tuple[float, ...]
    mean: float
    sd: float | None


class SeedsReport(Record):
    """Report of ``evaluate-ppl`` or ``eval`` on a folder that ``train --seeds`` wrote.

    Attributes:
        run: the folder.
        seeds: as the folders of its runs are numbered.
        figures: by the name of the metric: perplexity; accuracy and macro F1 of a classifier; ROUGE or BLEU of a model that
            writes; and what any other task names.
        signature: that all of them have, without what a cache or dynamic evaluation adds where each was tuned by itself; None
            of a task whose metrics have none.
        reports: what the command finds of each run.
    """

    run: str
    split: str
    seeds: tuple[int, ...]
    figures: dict[str, SeedsFigure]
    signature: str | None
    reports: tuple[SerializeAsAny[OfRun], ...]


def evaluate_seeds(folder: Path, read: Callable[[Path], PerplexityReport | MetricsReport] = evaluate_ppl) -> SeedsReport:
    """The figures of each seed of a model, with mean and standard deviation; the runs are opened one after the other.

    Args:
        folder: with the runs ``seed-N``.
        read: what is asked of each, such as ``partial(evaluate_ppl, split="valid", batch_size=1)`` or ``evaluate``.

    Raises:
        CheckpointError: no such runs, or one without a checkpoint.
        ConfigError: runs whose signatures differ; and as ``read``.
    """
    if not (runs := seed_runs(folder)):
        raise CheckpointError(f"{folder} is no folder of runs seed-1, seed-2, ...; give one that 'train --seeds' wrote")
    reports = []
    for run in runs:
        reports.append(read(run))
        if first := _compared(reports[0]):
            check_comparable((str(runs[0]), first), (str(run), _compared(reports[-1])))
    figures = [_figures(one) for one in reports]
    signatures = [getattr(one, "signature", None) for one in reports]
    return SeedsReport(
        run=str(folder),
        split=reports[0].split,
        seeds=tuple(int(run.name.removeprefix("seed-")) for run in runs),
        figures={name: _figure(name, [one[name] for one in figures]) for name in figures[0]},
        signature=signatures[0] if len(set(signatures)) == 1 else of_text(signatures[0] or "", adapted=False),
        reports=tuple(reports),
    )


def _compared(report: PerplexityReport | MetricsReport) -> str:
    """Return all that must agree before two figures can be compared."""
    if isinstance(report, PerplexityReport):
        return f"{of_text(report.signature, adapted=False)}|dtype:{report.dtype}"
    return report.signature if isinstance(report, LabelMetrics | WrittenMetrics) else ""


def _figure(name: str, values: Sequence[float]) -> SeedsFigure:
    scale = SCALES["perplexity" if name.endswith("perplexity") else "accuracy"]
    sd = statistics.stdev(values) if len(values) > 1 else None
    return SeedsFigure(values=tuple(values), mean=scale.mean(map(scale.inner, values)), sd=sd)


def _figures(report: PerplexityReport | MetricsReport) -> dict[str, float]:
    """Return the metrics that have a mean over seeds; counts are the same for all."""
    if isinstance(report, PerplexityReport):
        return {"perplexity": report.perplexity}
    if isinstance(report, LabelMetrics):
        return {"accuracy": report.accuracy, "macro_f1": report.macro_f1}
    found = {name: value for name, value in report.metrics.items() if isinstance(value, float) and name != "nats"}
    return found | {"perplexity": report.perplexity} if isinstance(report, WrittenMetrics) else found
