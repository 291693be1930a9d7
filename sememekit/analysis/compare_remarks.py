"""What a reader of ``sememekit compare`` should know of the runs, a sentence each."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sememekit.figures import percent


def remarks_of_plans(sides: Sequence[str], columns: Sequence[Sequence[int]], plans: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each side whose runs differ in more than the seed."""
    found = []
    for name, indices in zip(sides, columns, strict=True):
        flat = [_flat(plans[index]) for index in indices]
        keys = sorted({key for plan in flat for key in plan if any(other.get(key) != plan[key] for other in flat)})
        if keys:
            found.append(f"the runs of {name} differ in more than the seed: {', '.join(keys[:5])}")
    return found


def remarks_of_seeds(sides: Sequence[str], seeds: Sequence[Sequence[int]]) -> list[str]:
    """A sentence for each side with several runs of one seed, such as a run and its copy."""
    return [
        f"runs of {name} have the same seed ({', '.join(map(str, twice))}), and trainings alike in all else are equal: then "
        "the deviation and the intervals over seeds are too small"
        for name, own in zip(sides, seeds, strict=True)
        if (twice := sorted({seed for seed in own if own.count(seed) > 1}))
    ]


def remarks_of_budgets(sides: Sequence[str], budgets: Mapping[str, Sequence[Sequence[float] | None]]) -> list[str]:
    """A sentence for each side that has no value at an equal budget; ``budgets`` are measure -> values of each side."""
    return [
        f"{name}: a run had validated nothing by the end of the faster side, so that it has no value ({measure})"
        for measure, values in budgets.items()
        for name, own in zip(sides, values, strict=True)
        if not own
    ]


_ALIKE: Final = 1.1
"""Times of two sides whose ratio is below it may differ by chance."""


def remarks_of_times(sides: Sequence[str], seconds: Sequence[Sequence[float]]) -> list[str]:
    """A sentence for each side that took little longer than the fastest, whose last epochs are left out all the same."""
    means = [statistics.fmean(own) for own in seconds]
    fastest = min(means)
    return [
        f"{name} took {percent(mean / fastest - 1, 0)} longer than the fastest side, which may be chance; at equal time its "
        "last epochs are left out all the same: read equal updates beside it"
        for name, mean in zip(sides, means, strict=True)
        if fastest * 1.001 < mean < fastest * _ALIKE
    ]


def remarks_of_machines(versions: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence where processors or GPUs differ; runs of earlier versions name no processor."""
    named = {str(own.get("cuda") or own.get("processor") or "an unnamed processor") for own in versions}
    if len(named) < 2:
        return []
    return [f"trained on {', '.join(sorted(named))}: at equal time these machines are compared, too"]


_OF_NO_MODEL: Final = ("run.seed", "run.threads", "run.device", "run.report_every", "run.checkpoint_every")


def _flat(plan: Mapping[str, Any]) -> dict[str, Any]:
    """ "slot.key" -> value, but for what is other in each training, and where files lie."""
    found = {f"{slot}.{key}": value for slot, keys in plan.items() if isinstance(keys, Mapping) for key, value in keys.items()}
    return {key: value for key, value in found.items() if key not in _OF_NO_MODEL and not key.endswith(".path")}
