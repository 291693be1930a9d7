"""The flags of a model that the command line trains in a moment."""

from __future__ import annotations

_SMALL = {
    "task.embedding_size": 4,
    "task.batch_size": 4,
    "encoder.hidden_size": 4,
    "encoder.num_layers": 1,
    "optimizer.learning_rate": 1.0,
    "schedule.epochs": 2,
    "run.stall_epochs": 0,
    "run.threads": 1,
}


def settings(**changes: object) -> list[str]:
    """``--set`` flags; ``schedule__epochs=3`` changes one."""
    values = {**_SMALL, **{key.replace("__", "."): value for key, value in changes.items()}}
    return [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
