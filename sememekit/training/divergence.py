"""When a run has diverged or its rate has fallen to nothing, and what its user is told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from sememekit.training.settings import OptimizerSettings
from sememekit.training.state import TrainingState

SURELY: Final = 1.5
"""A perplexity above this multiple of that of the uniform distribution is divergence even where the loss fell: an untrained
model lies near the uniform one."""

ROSE: Final = 0.05
"""Nats by which a training loss has risen beyond what one batch differs from another in an untrained model."""

NOTHING: Final = 1e-8
"""A rate below this share of the first moves weights by less than float32 keeps of them: nothing is learned any more."""


def worse_than_guessing(progress: TrainingState, value: float, uniform: float) -> bool:
    """Whether a validation perplexity says that the run has diverged.

    It is above ``uniform``, the perplexity of a model that gives every word the same probability, and that is not because the
    model over-fits (it was better before, or is on the training text) or has hardly begun (it lies just above, as an untrained
    model does, and the training loss fell since the first batch).
    """
    if value <= uniform:
        return False
    nats = progress.nats / progress.count
    if progress.best is not None and progress.best <= uniform:
        return nats > math.log(uniform)
    return value > SURELY * uniform or nats > max(math.log(uniform), progress.start_nats or math.inf) + ROSE


def rate_is_nothing(progress: TrainingState, optimizer: OptimizerSettings, decay: float) -> bool:
    """Whether the rate of the next epoch, ``decay`` included, is below ``NOTHING`` of the first."""
    return progress.rate * decay < NOTHING * optimizer.learning_rate


def how_to_go_on(progress: TrainingState, optimizer: OptimizerSettings, pointer: Mapping[str, str]) -> str:
    """How to start again, and what is left; never a rate below what the schedule had cut the first one to."""
    lower = optimizer.learning_rate / 4
    if progress.rate < optimizer.learning_rate:
        lower = max(lower, progress.rate)
    if "best" in pointer:
        best = f"epoch {progress.best_epoch}" if progress.best_epoch else "the weights that the run began with"
        left = f"checkpoints written so far are whole, and the best is that of {best}, {pointer['best']}"
    else:
        left = "checkpoints written so far are whole" if pointer else "no checkpoint was written"
    return (
        f"start again with a lower rate (--set optimizer.learning_rate={lower:g}) or a tighter clip (--set "
        f"optimizer.clip={optimizer.clip / 2:g}) and another --out; {left}"
    )
