"""``sememekit evaluate-ppl FOLDER``: the perplexity of one model that was trained with several seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from sememekit.analysis.evaluate import PerplexityReport, evaluate_ppl
from sememekit.analysis.evaluate_several import check_comparable
from sememekit.analysis.signatures import of_text
from sememekit.config import Record
from sememekit.errors import CheckpointError
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


def evaluate_seeds(folder: Path, read: Callable[[Path], PerplexityReport] = evaluate_ppl) -> SeedsPerplexity:
    """The perplexity of each seed of a model, with mean and standard deviation; the runs are opened one after the other.

    Args:
        folder: with the runs ``seed-N``.
        read: what is asked of each, such as ``partial(evaluate_ppl, split="valid", batch_size=1)``.

    Raises:
        CheckpointError: no such runs, or one without a checkpoint.
        ConfigError: runs whose signatures differ; and as ``read``.
    """
    if not (runs := seed_runs(folder)):
        raise CheckpointError(f"{folder} is no folder of runs seed-1, seed-2, ...; give one that 'train --seeds' wrote")
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
        seeds=tuple(int(run.name.removeprefix("seed-")) for run in runs),
        mean=geometric_mean(values),
        sd=statistics.stdev(values) if len(values) > 1 else None,
        signature=reports[0].signature if alike else of_text(reports[0].signature, adapted=False),
        reports=tuple(reports),
    )


def geometric_mean(perplexities: Sequence[float]) -> float:
    """exp of the mean nats of several models on one text."""
    return math.exp(statistics.fmean(math.log(value) for value in perplexities))
