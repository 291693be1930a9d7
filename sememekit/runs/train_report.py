"""The report of ``train``."""

from __future__ import annotations

from pydantic import ConfigDict

from sememekit.config import Record
from sememekit.tasks.vectors import VectorCoverage


class TrainReport(Record):
    """What a training came to.

    Attributes:
        epochs: epochs done in all, earlier calls included.
        metric: the primary metric, such as "perplexity" or "accuracy"; ``best_valid`` is its best value on validation.
        tokens_per_second: predictions of training a second over this call: tokens, or examples of a classifier.
        parameters: how many numbers are learned, shared ones once.
        vectors: how much of the training text has a vector of the file, for tasks that begin with such a file.
        remarks: what was given and changes nothing in this model.
        finished: why training ended, or an empty string.
        stopped: whether a signal ended it, with a checkpoint to resume from.
    """

    model_config = ConfigDict(allow_inf_nan=True)  # runs of older versions may have diverged and yet be finished

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
