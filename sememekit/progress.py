"""Callbacks for the progress of a long job (default: ``silent``)."""

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Called as (stage, done, total); total is None if unknown."""

OneStage = Callable[[int, int], None]
"""Called as (done, total): progress within one stage."""


def silent(*told: object) -> None:
    """Ignore progress, of either type."""
