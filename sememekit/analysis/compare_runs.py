"""``sememekit compare RUN RUN2``: language models or classifiers that were each trained with one or several seeds."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from sememekit.analysis.scored_runs import TextReading, of_text, open_texts, score_texts
from sememekit.config import Record
from sememekit.errors import CheckpointError, ConfigError
from sememekit.figures import percent
from sememekit.files import typed
from sememekit.measure import intervals
from sememekit.measure.intervals import Interval
from sememekit.measure.sides import SCALES, Scale, at_equal_budget
from sememekit.progress import Progress, silent
from sememekit.runs.run import Run, Which
from sememekit.training import RunFolder
from sememekit.training.checkpoint import seed_runs

TEST: Final = "at the best checkpoint"
TEST_LAST: Final = "at the last checkpoint"
UPDATES: Final = "validation, equal updates"
TIME: Final = "validation, equal CPU time"

Points = tuple[tuple[float, float, float], ...]  # validation curve of a run: updates and CPU seconds so far, and metric
Columns = Sequence[Sequence[int]]  # positions of the runs of each side in the list of all runs


class SideDifference(Record):
    """A side against the first one; intervals are 95 %.

    For perplexities: exp(difference of the mean nats) - 1, that is the ratio of the geometric means minus 1; -0.05 is 5 % less.
    For accuracies: the difference of the means; 0.02 is 2 points more."""

    sentences: Interval | None
    """Paired bootstrap over sentences, or over a classifier's examples, with fixed models. Two single classifiers have
    Newcombe's interval; several seeds have no limits if fewer than 10 examples differ between the sides."""
    seeds: Interval
    """Over trainings, by Student's t distribution; without limits if no side has two seeds."""
    both: Interval | None
    """Over sentences and seeds together, see ``combined``; without limits if either has none."""


class SideMeasure(Record):
    """One measure of one side."""

    measure: str
    """One of the constants of this module; the first is the metric on ``split``."""
    budget: float | None
    """The updates or seconds of the equal budget; None for the first measure."""
    values: tuple[float, ...]
    """The metric of each run; empty if a run did not validate within the budget."""
    mean: float | None
    """Mean of the values (geometric for perplexities); None without values."""
    sd: float | None
    """Standard deviation of the values (n - 1); None for one run, and without values."""
    difference: SideDifference | None
    """Difference from the first side; None for the first."""


class Side(Record):
    """A model with one or several seeds."""

    name: str
    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    measures: tuple[SideMeasure, ...]
    """The measures in the order of the table."""
    curves: tuple[Points, ...]
    """Validation of each run by epoch, as (updates, CPU seconds, figure)."""


class RunsComparison(Record):
    """Report of ``compare`` on language models or classifiers."""

    figure: Literal["perplexity", "accuracy"]
    """"perplexity" or "accuracy", a share of 0 to 1."""
    sides: tuple[Side, ...]
    """The sides in the order given; differences are from the first."""
    split: str
    signature: str
    """split, signature: of the measured text; all runs have this signature."""
    unit: str
    units: int
    resamples: int
    """unit, units, resamples: the unit of the bootstrap, the number of units, and the number of draws."""
    time: Literal["CPU"] = "CPU"
    remarks: tuple[str, ...] = ()
    """Cautions about the runs."""


def runs_of(side: Path | str) -> list[Path]:
    """The runs of a side: a run, runs joined by commas, or a folder of ``train --seeds``. CheckpointError: anything else."""
    path, side = Path(side), str(side)
    if "," in side and not path.exists():
        return [run for part in side.split(",") for run in runs_of(part)]
    if (path / "plan.json").is_file():
        return [path]
    if not (seeds := seed_runs(path)):
        what = "does not exist" if not path.exists() else "is no run folder, and no folder of runs seed-1, seed-2, ..."
        raise CheckpointError(f"{side} {what}; give runs of 'sememekit train', several of one model with commas between")
    return seeds


def compare(
    sides: Sequence[Path | str] | Path | str,
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

    ``sides`` are two or more, each as ``runs_of`` takes it; other arguments as ``evaluate_ppl``, without a batch size for
    classifiers. Raises ConfigError: one side, a run in two places, language models beside classifiers, or runs whose signatures
    differ. Raises CheckpointError, DataError: as ``evaluate_ppl``."""
    sides = [sides] if isinstance(sides, Path | str) else sides
    paths = [runs_of(side) for side in sides]
    flat = [path for side in paths for path in side]
    places = [path.resolve() for path in flat]
    if len(sides) < 2:
        raise ConfigError("a comparison takes two models or more: sememekit compare RUN RUN2")
    if twice := [path for path in places if places.count(path) > 1]:
        raise ConfigError(f"a run is given twice: {twice[0]}; name each once")
    runs = [Run.open(path, which=which, device=device, dtype=dtype) for path in flat]
    ends = np.cumsum([len(side) for side in paths]).tolist()
    columns = [range(end - len(side), end) for side, end in zip(paths, ends, strict=True)]
    texts = open_texts(runs, TextReading(split, data, batch_size), "compare", figures=tuple(SCALES))
    score_texts(texts, progress=progress)
    scoring = texts[0].scoring
    scale = SCALES[scoring.figure]
    curves = [_curve(run.folder, scale) for run in runs]
    values_UC, counts_UC = (np.stack(part, axis=1) for part in zip(*(one.sums.units[0] for one in texts), strict=True))
    measures = [
        _tested(TEST if which == "best" else TEST_LAST, scale, values_UC, counts_UC, columns, seed),
        _at_equal_budget(UPDATES, scale, curves, columns, 0),
        _at_equal_budget(TIME, scale, curves, columns, 1),
    ]
    found = tuple(
        Side(
            name=name,
            runs=tuple(str(path) for path in paths[number]),
            seeds=tuple(int(runs[index].folder.plan.get("run", {}).get("seed", 1)) for index in indices),
            measures=tuple(measure[number] for measure in measures),
            curves=tuple(curves[index] for index in indices),
        )
        for number, (name, indices) in enumerate(zip(sides, columns, strict=True))
    )
    return RunsComparison(
        figure=scale.figure,
        sides=found,
        split=split,
        signature=of_text(texts[0].signature),
        unit=scoring.unit,
        units=scoring.num_units,
        resamples=intervals.RESAMPLES,
        remarks=tuple(_remarks(found, [[runs[index].folder for index in indices] for indices in columns])),
    )


def _curve(folder: RunFolder, scale: Scale) -> Points:
    """Raises CheckpointError: the run has no finished epoch, or its epochs have no CPU time."""
    epochs = folder.epochs()
    if not epochs or not all(record.get("cpu_seconds") for record in epochs):
        lacks = "CPU seconds of each epoch" if epochs else "finished epoch"
        raise CheckpointError(
            f"{folder.path} has no {lacks} in its metrics.jsonl; finish one: "
            + typed("sememekit", "train", "--out", folder.path, "--resume")
        )
    spent = np.cumsum([record["cpu_seconds"] for record in epochs]).tolist()
    figures = [float(record["valid"][scale.figure]) for record in epochs]
    return tuple(zip([float(record["step"]) for record in epochs], spent, figures, strict=True))


def _tested(
    name: str, scale: Scale, values_UC: npt.NDArray[Any], counts_UC: npt.NDArray[Any], columns: Columns, seed: int = 0
) -> list[SideMeasure]:
    """The measure of each side on the text, from the sums of C runs over its U units."""
    inner, draws = intervals.resampled_ratios(values_UC, counts_UC, seed=seed)
    means = [draws[:, list(side)].mean(axis=1) for side in columns]
    sides = [[float(inner[index]) for index in side] for side in columns]
    differences: list[SideDifference | None] = [None]
    for own, drawn, side in zip(sides[1:], means[1:], columns[1:], strict=True):
        seeds = intervals.seed_difference(sides[0], own)
        units = intervals.from_draws(statistics.fmean(own) - statistics.fmean(sides[0]), drawn - means[0])
        if scale.figure == "accuracy":
            units = _of_hits(values_UC, columns[0], side, units)
        both = scale.shown(intervals.combined(units, seeds))
        differences.append(SideDifference(sentences=scale.shown(units), seeds=scale.shown(seeds), both=both))
    return [_measure(name, scale, None, own, one) for own, one in zip(sides, differences, strict=True)]


def _of_hits(hits: npt.NDArray[Any], first: Sequence[int], second: Sequence[int], drawn: Interval) -> Interval:
    """Return the interval over examples; ``hits`` (n, c) say which run labels which example correctly.

    A bootstrap is meaningless if the two sides differ on few examples. Two single runs have Newcombe's interval instead;
    several seeds have no interval over examples if fewer than ``FEWEST_EXAMPLES`` differ."""
    if len(first) == len(second) == 1:
        every = np.ones(len(hits))
        found = intervals.rate_difference((hits[:, second[0]], every), (hits[:, first[0]], every))
        return Interval(value=drawn.value, low=found.low, high=found.high)
    apart = np.count_nonzero(hits[:, list(second)].mean(axis=1) - hits[:, list(first)].mean(axis=1))
    return drawn if apart >= intervals.FEWEST_EXAMPLES else Interval(value=drawn.value)


def _at_equal_budget(name: str, scale: Scale, curves: Sequence[Points], columns: Columns, place: int) -> list[SideMeasure]:
    """The best validation of each side within an equal budget: the fewer updates (place 0) or CPU seconds (1) of the sides."""
    sides = [[[(point[place], scale.inner(point[2])) for point in curves[index]] for index in side] for side in columns]
    budget, (first, *others) = at_equal_budget(sides, scale.higher)
    found = [_measure(name, scale, budget, first or [], None)]
    for own in others:
        seeds = scale.shown(intervals.seed_difference(first, own) if first and own else Interval(value=None))
        found.append(_measure(name, scale, budget, own or [], SideDifference(sentences=None, seeds=seeds, both=None)))
    return found


def _measure(
    name: str, scale: Scale, budget: float | None, inner: Sequence[float], difference: SideDifference | None
) -> SideMeasure:
    values = tuple(map(scale.outer, inner))
    mean, sd = scale.mean(inner) if values else None, statistics.stdev(values) if len(values) > 1 else None
    return SideMeasure(measure=name, budget=budget, values=values, mean=mean, sd=sd, difference=difference)


_ALIKE: Final = 1.1  # two sides whose times have a smaller ratio may differ by chance
_OF_NO_MODEL: Final = ("run.seed", "run.threads", "run.device", "run.report_every", "run.checkpoint_every")


def _remarks(sides: Sequence[Side], folders: Sequence[Sequence[RunFolder]]) -> Iterator[str]:
    for side, own in zip(sides, folders, strict=True):
        plans = [_flat(folder.plan) for folder in own]
        keys = sorted({key for plan in plans for key in plan if any(other.get(key) != plan[key] for other in plans)})
        if keys:
            yield f"the runs of {side.name} differ in more than the seed: {', '.join(keys[:5])}"
    for side in sides:
        if twice := sorted({seed for seed in side.seeds if side.seeds.count(seed) > 1}):
            yield (
                f"runs of {side.name} have the same seed ({', '.join(map(str, twice))}), and trainings alike in all else are "
                "equal: then the deviation and the intervals over seeds are too small"
            )
    yield from remarks_of_machines([folder.versions for own in folders for folder in own])
    for measures in zip(*(side.measures for side in sides), strict=True):
        for side, measure in zip(sides, measures, strict=True):
            if not measure.values:
                yield (
                    f"{side.name}: a run had validated nothing by the end of the faster side, so that it has no value "
                    f"({measure.measure})"
                )
    means = [statistics.fmean(curve[-1][1] for curve in side.curves) for side in sides]
    for side, mean in zip(sides, means, strict=True):
        if min(means) * 1.001 < mean < min(means) * _ALIKE:
            yield (
                f"{side.name} took {percent(mean / min(means) - 1, 0)} longer than the fastest side, which may be chance; at "
                "equal time its last epochs are left out all the same: read equal updates beside it"
            )


def remarks_of_machines(versions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Yield a sentence if processors or GPUs differ."""
    named = {str(own.get("cuda") or own.get("processor") or "an unnamed processor") for own in versions}
    return [f"trained on {', '.join(sorted(named))}: at equal time these machines are compared, too"] if len(named) > 1 else []


def _flat(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return "slot.key" -> value, without seeds, paths and other keys that differ in each training."""
    found = {f"{slot}.{key}": value for slot, keys in plan.items() if isinstance(keys, Mapping) for key, value in keys.items()}
    return {key: value for key, value in found.items() if key not in _OF_NO_MODEL and not key.endswith(".path")}
