"""How long work says how far it is."""

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Called with the stage, how much of it is done, and how much there is; None where nobody knows."""
