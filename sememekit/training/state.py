"""The state of a training run apart from tensors, and why it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from sememekit.training.settings import ScheduleSettings


class Ending(StrEnum):
    """The reason why a run is over, in words by ``ending_text``."""

    EPOCHS = "epochs"
    PATIENCE = "patience"
    RATE = "rate"
    NO_RATE = "no_rate"
    NON_MONOTONE = "non_monotone"
    OVER_FITS = "over_fits"


@dataclass
class TrainingState:
    """The state of a run apart from tensors, in plain numbers."""

    # epoch, batch: the current epoch, from 1 (the last one once the run is over), and finished batches of it
    epoch: int = 1
    batch: int = 0
    step: int = 0
    rate: float = 0.0
    # best, best_epoch: best primary metric on validation so far, and its epoch
    best: float | None = None
    best_epoch: int = 0
    since_best: int = 0  # epochs since the last improvement, without the epochs of ``schedule.grace``
    stalled: int = 0  # epochs from the start in which validation stayed near unigram frequencies
    # nats, count, seconds, cpu_seconds: training loss, wall and CPU time of the epoch so far
    nats: float = 0.0
    count: int = 0
    seconds: float = 0.0
    finished: Ending | None = None  # why the run is over; None during training
    averaging: bool = False  # whether weights are averaged over steps
    history: list[float] = field(default_factory=list)  # the primary metric on validation after each epoch
    first_nats: float = 0.0  # mean training loss of the first epoch, in nats a prediction
    start_nats: float = 0.0  # training loss of the first batch of the run
    cpu_seconds: float = 0.0

    def stored(self) -> dict[str, Any]:
        return {**vars(self), "finished": self.finished.value if self.finished else ""}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of ``stored``. Raises TypeError: an unknown field. Raises ValueError: an unknown ending."""
        return cls(**{**stored, "finished": Ending(stored["finished"]) if stored.get("finished") else None})


def ending_text(progress: TrainingState, schedule: ScheduleSettings) -> str:
    """Return in words why the run is over; an empty string during training."""
    if progress.finished is None:
        return ""
    best = progress.best_epoch
    return {
        Ending.EPOCHS: "1 epoch done" if progress.epoch == 1 else f"{progress.epoch} epochs done",
        Ending.PATIENCE: f"no better validation for {progress.since_best} epochs",
        Ending.RATE: f"the rate fell below {schedule.minimum_rate:g}",
        Ending.NO_RATE: f"the rate was cut to nothing ({progress.rate:.1g}); the best weights are from epoch {best}",
        Ending.NON_MONOTONE: (
            f"validation is worse than the best of all but the last {schedule.stop_non_monotone} epochs before"
        ),
        Ending.OVER_FITS: (
            f"the model over-fits: since epoch {best} validation got worse while the training loss fell; for a better model "
            "take more text, more dropout or a smaller size"
        ),
    }[progress.finished]
