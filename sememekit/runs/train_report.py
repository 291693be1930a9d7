"""The reports of ``train`` and ``sweep``: of one run, of the seeds of one plan, of the trials of a sweep."""

from typing import Any

from pydantic import ConfigDict, Field

from sememekit.config import Record
from sememekit.tasks.vectors import VectorCoverage


class TrainReport(Record):
    """What a training came to.

    Attributes:
        epochs: epochs done in all, earlier calls included.
        metric: the primary metric, such as "perplexity" or "accuracy"; ``best_valid`` is its best value on validation.
        tokens_per_second: predictions of training a second over this call, or over all epochs where this call trained none:
            tokens, or examples of a classifier.
        parameters: how many numbers are learned, shared ones once.
        vectors: how much of the training text has a vector of the file, for tasks that begin with such a file.
        remarks: what was given and changes nothing in this model.
        finished: why training ended, or an empty string.
        stopped: whether a signal ended it, with a checkpoint to resume from.
    """

    model_config = ConfigDict(allow_inf_nan=True)

    run: str
    epochs: int
    metric: str
    best_valid: float | None
    best_epoch: int
    tokens_per_second: float
    parameters: int
    vectors: VectorCoverage | None = None
    remarks: tuple[str, ...] = ()
    finished: str
    stopped: bool


class SeedsReport(Record):
    """What the trainings of one plan with several seeds came to; ``OUT/seeds.json`` is this.

    Attributes:
        out: the folder of the runs, ``seed-N`` for seed N.
        metric: the primary metric; ``mean`` and ``sd`` (with n - 1; None of one seed) are of its best values on validation.
        table: what was trained, without the seed; a seed that is added later is trained alike.
        seeds: in the order given; then those of earlier calls that were trained alike and are finished.
        runs: a report for each seed.
        stopped: whether a signal ended one of them, with checkpoints to resume from.
    """

    model_config = ConfigDict(allow_inf_nan=True)

    out: str
    metric: str
    mean: float | None
    sd: float | None
    seeds: tuple[int, ...]
    runs: tuple[TrainReport, ...]
    stopped: bool
    table: dict[str, Any] = Field(default_factory=dict)


class TrialReport(Record):
    """One trial of a sweep.

    Attributes:
        number: from 1; the run is in ``OUT/trial-NUMBER``.
        settings: of what was swept, "slot.key" -> value.
        state: "done", "pruned", "failed", "stopped" (out of time) or "unfinished".
        valid: the best validation figure; None where there is none.
        epochs: that were validated.
        cpu_seconds: of its process.
        why: of a trial that failed.
    """

    number: int
    run: str
    settings: dict[str, float | int | bool | str]
    state: str
    valid: float | None
    epochs: int
    cpu_seconds: float
    why: str = ""


class SweepReport(Record):
    """What a sweep came to.

    Attributes:
        out: its folder; ``best.toml`` there has the settings of the best trial.
        budget: what was stated, such as "12 trials" or "30 CPU minutes".
        metric: the figure of validation that was compared.
        cpu_minutes: of all trials so far.
        trials: sorted by ``valid``, the best first; those without a figure last.
        best: the file with the best settings; None before a trial has a figure.
        stopped: whether a signal ended it; the same command goes on.
        exhausted: whether every combination of values was tried, so that a larger budget adds nothing.
    """

    out: str
    budget: str
    metric: str
    cpu_minutes: float
    trials: tuple[TrialReport, ...]
    best: str | None
    stopped: bool
    exhausted: bool
