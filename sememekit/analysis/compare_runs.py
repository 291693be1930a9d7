"""``sememekit compare RUN RUN2``: language models or classifiers that were each trained with one or several seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from sememekit.analysis.compare_remarks import (
    remarks_of_budgets,
    remarks_of_machines,
    remarks_of_plans,
    remarks_of_seeds,
    remarks_of_times,
)
from sememekit.analysis.evaluate_ppl import TextReading
from sememekit.analysis.scored_runs import ACCURACY, Scale, ScoredRuns, score_runs
from sememekit.config import Record
from sememekit.errors import CheckpointError, ConfigError
from sememekit.files import typed
from sememekit.measure.intervals import (
    FEWEST_EXAMPLES,
    RESAMPLES,
    Estimate,
    Interval,
    combined,
    from_draws,
    interval,
    resampled_ratios,
    seed_difference,
)
from sememekit.measure.rates import rate_difference
from sememekit.measure.sides import Curve, at_equal_budget
from sememekit.progress import Progress, silent
from sememekit.runs.run import Run, Which
from sememekit.training import RunFolder
from sememekit.training.checkpoint import seed_runs

TEST: Final = "at the best checkpoint"
TEST_LAST: Final = "at the last checkpoint"
UPDATES: Final = "validation, equal updates"
TIME: Final = "validation, equal CPU time"
WALL_TIME: Final = "validation, equal wall time"


class SideDifference(Record):
    """A side against the first one; intervals are 95 %.

    Of perplexities exp(difference of the mean nats) - 1, which is the ratio of geometric means over seeds: -0.05 is 5 % less.
    Of accuracies the difference of the means: 0.02 is 2 points more.

    Attributes:
        sentences: over the sentences of the text, or the examples of a classifier, drawn in pairs; the trained models are as
            they are. Of two single classifiers it is Newcombe's, which draws nothing; of several seeds it has no limits where
            fewer than 10 examples tell the sides apart.
        seeds: over trainings, by Student's distribution; without limits where no side has two seeds.
        both: over the two together, see ``combined``; without limits where one of them has none.
    """

    sentences: Interval | None
    seeds: Interval
    both: Interval | None


class SideMeasure(Record):
    """One measure of one side.

    Attributes:
        measure: what was measured, one of the constants of this module; the figure on ``split`` for the first.
        budget: the updates, or the seconds, of the equal budget; None for the first.
        values: the figure of each run; empty where one had validated nothing within the budget.
        mean: their mean, geometric of perplexities; None without values.
        sd: their standard deviation (with n - 1); None of one run, and without values.
        difference: against the first side; None for the first.
    """

    measure: str
    budget: float | None
    values: tuple[float, ...]
    mean: float | None
    sd: float | None
    difference: SideDifference | None


class Side(Record):
    """A model with one or several seeds.

    Attributes:
        name: as it was typed.
        runs: the folders.
        seeds: of these runs.
        measures: in the order of the table.
        curves: validation of each run by epoch, as (updates, seconds, figure).
    """

    name: str
    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    measures: tuple[SideMeasure, ...]
    curves: tuple[tuple[tuple[float, float, float], ...], ...]


class RunsComparison(Record):
    """What ``compare`` found of language models or classifiers.

    Attributes:
        figure: "perplexity" or "accuracy", a share of 0 to 1.
        sides: in the order given; differences are from the first.
        split, signature: of what was measured; all runs have this signature.
        unit, units, resamples: what was drawn, how many there are, and how often.
        time: "CPU" where every run has CPU seconds of its epochs, otherwise "wall".
        remarks: what a reader should know of the runs.
    """

    figure: Literal["perplexity", "accuracy"]
    sides: tuple[Side, ...]
    split: str
    signature: str
    unit: str
    units: int
    resamples: int
    time: str
    remarks: tuple[str, ...] = ()


def runs_of(side: str) -> list[Path]:
    """The runs of a side: a run, runs with commas between, or a folder that ``train --seeds`` wrote.

    Raises:
        CheckpointError: neither.
    """
    path = Path(side)
    if "," in side and not path.exists():
        return [run for part in side.split(",") for run in runs_of(part)]
    if (path / "plan.json").is_file():
        return [path]
    if not (seeds := seed_runs(path)):
        what = "does not exist" if not path.exists() else "is no run folder, and no folder of runs seed-1, seed-2, ..."
        raise CheckpointError(f"{side} {what}; give runs of 'sememekit train', several of one model with commas between")
    return seeds


def compare_runs(
    sides: Sequence[str],
    *,
    split: str = "test",
    data: Path | None = None,
    batch_size: int | None = None,
    device: str = "auto",
    dtype: str | None = None,
    which: Which = "best",
    seed: int = 0,
    progress: Progress = silent,
) -> RunsComparison:
    """Perplexities of models on one text, or accuracies on the same examples, with differences from the first.

    Args:
        sides: two or more, each as ``runs_of`` takes it.
        seed: of the draws.
        split, data, batch_size, device, dtype, which, progress: as ``evaluate_ppl`` takes them; no batch size for classifiers.

    Raises:
        ConfigError: one side, a run in two places, language models beside classifiers, or runs whose signatures differ.
        CheckpointError, DataError: as ``evaluate_ppl``.
    """
    paths = [runs_of(side) for side in sides]
    flat = [path.resolve() for side in paths for path in side]
    if len(sides) < 2:
        raise ConfigError("a comparison takes two models or more: sememekit compare RUN RUN2")
    if len(set(flat)) < len(flat):
        raise ConfigError(f"a run is given twice: {next(str(path) for path in flat if flat.count(path) > 1)}; name each once")
    opened = [Run.open(path, which=which, device=device, dtype=dtype) for side in paths for path in side]
    text = TextReading(split, data, batch_size)
    columns = _columns([len(side) for side in paths])
    scored = score_runs(opened, text, progress)
    curves, time = _curves([loaded.folder for loaded in opened], scored.scale)
    seeds = [[int(opened[index].folder.plan.get("run", {}).get("seed", 1)) for index in indices] for indices in columns]
    measures = [_tested(scored, columns, seed, TEST if which == "best" else TEST_LAST)]
    for name, place in ((UPDATES, 0), (TIME if time == "CPU" else WALL_TIME, 1)):
        measures.append(_at_equal_budget(name, curves, columns, place, scored.scale))
    return RunsComparison(
        figure=scored.scale.figure,
        sides=tuple(
            Side(
                name=name,
                runs=tuple(str(path) for path in own),
                seeds=tuple(own_seeds),
                measures=tuple(measure[number] for measure in measures),
                curves=tuple(tuple(curves[index]) for index in indices),
            )
            for number, (name, own, own_seeds, indices) in enumerate(zip(sides, paths, seeds, columns, strict=True))
        ),
        split=split,
        signature=scored.signature,
        unit=scored.unit,
        units=len(scored.numerators),
        resamples=RESAMPLES,
        time=time,
        remarks=(
            *remarks_of_plans(sides, columns, [loaded.folder.plan for loaded in opened]),
            *remarks_of_seeds(sides, seeds),
            *remarks_of_machines([loaded.folder.versions for loaded in opened]),
            *remarks_of_budgets(sides, {measure[0].measure: [one.values for one in measure] for measure in measures}),
            *remarks_of_times(sides, [[curves[index][-1][1] for index in side] for side in columns]),
        ),
    )


def _columns(sizes: Sequence[int]) -> list[list[int]]:
    """The places of each side's runs in the list of all."""
    ends = np.cumsum(sizes)
    return [list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]


def _tested(scored: ScoredRuns, columns: Sequence[Sequence[int]], seed: int, measure: str = TEST) -> list[SideMeasure]:
    scale = scored.scale
    inner, draws = resampled_ratios(scored.numerators, scored.denominators, seed=seed)
    means = np.stack([draws[:, list(side)].mean(axis=1) for side in columns], axis=1)
    values = [[float(inner[index]) for index in side] for side in columns]
    found = []
    for number, own in enumerate(values):
        difference = None
        if number:
            value = statistics.fmean(own) - statistics.fmean(values[0])
            sentences = from_draws(value, means[:, number] - means[:, 0])
            if scale is ACCURACY:
                sentences = _of_hits(scored.numerators, columns[0], columns[number], sentences)
            seeds = seed_difference(values[0], own)
            difference = SideDifference(
                sentences=_change(sentences, scale),
                seeds=_change(seeds, scale),
                both=_change(combined(sentences, seeds), scale),
            )
        found.append(_measure(measure, None, own, difference, scale))
    return found


def _of_hits(hits: npt.NDArray[np.float64], first: Sequence[int], second: Sequence[int], drawn: Estimate) -> Estimate:
    """The interval over examples, where ``hits`` (n, c) say which run labels which example rightly.

    Draws say nothing where two sides label all but a few examples alike. Two single runs have Newcombe's interval instead, and
    others none over the examples where fewer than ``FEWEST_EXAMPLES`` tell the sides apart.
    """
    if len(first) == len(second) == 1:
        every = np.ones(len(hits))
        found = rate_difference((hits[:, second[0]], every), (hits[:, first[0]], every))
        assert found.low is not None
        assert found.high is not None
        return Estimate(drawn.value, found.low, found.high)
    apart = np.count_nonzero(hits[:, list(second)].mean(axis=1) - hits[:, list(first)].mean(axis=1))
    return drawn if apart >= FEWEST_EXAMPLES else Estimate(drawn.value, math.nan, math.nan)


def _at_equal_budget(
    name: str,
    curves: Sequence[Sequence[tuple[float, float, float]]],
    columns: Sequence[Sequence[int]],
    place: int,
    scale: Scale,
) -> list[SideMeasure]:
    sides: list[list[Curve]] = [
        [[(point[place], scale.inner(point[2])) for point in curves[index]] for index in side] for side in columns
    ]
    budget, values = at_equal_budget(sides, scale.higher)
    first, found = values[0], []
    for number, own in enumerate(values):
        apart = Estimate(math.nan, math.nan, math.nan) if first is None or own is None else seed_difference(first, own)
        difference = SideDifference(sentences=None, seeds=_change(apart, scale), both=None) if number else None
        found.append(_measure(name, budget, own or [], difference, scale))
    return found


def _measure(
    name: str, budget: float | None, inner: Sequence[float], difference: SideDifference | None, scale: Scale
) -> SideMeasure:
    values = tuple(scale.outer(value) for value in inner)
    return SideMeasure(
        measure=name,
        budget=budget,
        values=values,
        mean=scale.outer(statistics.fmean(inner)) if values else None,
        sd=statistics.stdev(values) if len(values) > 1 else None,
        difference=difference,
    )


def _change(estimate: Estimate, scale: Scale) -> Interval:
    """A difference of inner values as it is shown."""
    return interval(Estimate(*(scale.change(value) for value in (estimate.value, estimate.low, estimate.high))))


def _curves(folders: Sequence[RunFolder], scale: Scale) -> tuple[list[list[tuple[float, float, float]]], str]:
    """The curve of each run, and whether its seconds are "CPU" or "wall": wall for all where one run has no other.

    Raises:
        CheckpointError: a run without a finished epoch.
    """
    epochs = [folder.epochs() for folder in folders]
    for folder, own in zip(folders, epochs, strict=True):
        if not own:
            raise CheckpointError(
                f"{folder.path} has no finished epoch in its metrics.jsonl; finish one: "
                + typed("sememekit", "train", "--out", folder.path, "--resume")
            )
    has_cpu = all(record.get("cpu_seconds") for own in epochs for record in own)
    seconds = "cpu_seconds" if has_cpu else "seconds"
    found = []
    for own in epochs:
        spent = np.cumsum([record[seconds] for record in own])
        found.append(
            [
                (float(record["step"]), float(passed), float(record["valid"][scale.figure]))
                for record, passed in zip(own, spent, strict=True)
            ]
        )
    return found, "CPU" if has_cpu else "wall"
