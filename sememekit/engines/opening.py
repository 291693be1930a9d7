"""Open an engine by what follows ``--engine``."""

from __future__ import annotations

from pathlib import Path

from sememekit.config import load_variant
from sememekit.engines import ENGINES
from sememekit.engines.base import Engine
from sememekit.errors import ConfigError


def engine_of(spec: str) -> tuple[type[Engine], str]:
    """The class and the options of ``--engine NAME``, ``NAME:OPTIONS`` or ``package.module:Class``; nothing is begun.

    Raises ConfigError: an unknown name.
    """
    name, _, options = spec.partition(":")
    if name not in ENGINES and options:
        name, options = spec, ""
    return load_variant("engine", name, ENGINES, lambda found: isinstance(found, type) and issubclass(found, Engine)), options


def open_engine(spec: str, num_workers: int, folder: Path) -> Engine:
    """The engine of ``--engine``; ``folder`` is for its files.

    Raises ConfigError: an unknown name, options that do not fit, or a package that is not installed.
    """
    if num_workers < 1:
        raise ConfigError(f"--workers {num_workers}: 1 or more is needed")
    kind, options = engine_of(spec)
    return kind(options, num_workers, folder)
