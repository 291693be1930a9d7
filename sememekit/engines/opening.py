"""Open an engine by what follows ``--engine``."""

from __future__ import annotations

from pathlib import Path

from sememekit.config import load_variant
from sememekit.engines import ENGINES
from sememekit.engines.base import Engine
from sememekit.errors import ConfigError


def open_engine(spec: str, num_workers: int, folder: Path) -> Engine:
    """The engine of ``--engine NAME`` or ``NAME:OPTIONS``, or ``package.module:Class`` for one of your own.

    Raises ConfigError: an unknown name, or options that do not fit.
    """
    if num_workers < 1:
        raise ConfigError(f"--workers {num_workers}: 1 or more is needed")
    name, _, options = spec.partition(":")
    if name not in ENGINES and options:
        name, options = spec, ""
    kind = load_variant("engine", name, ENGINES, lambda found: isinstance(found, type) and issubclass(found, Engine))
    engine: Engine = kind(options, num_workers, folder)
    return engine
