"""The types of callbacks that report progress, and one that does nothing."""

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Called as (stage, done, total); total is None where it is not known."""

OneStage = Callable[[int, int], None]
"""Called as (done, total): progress within one stage."""


def silent(stage: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""
