"""Packages that only some uses need."""

from importlib import import_module
from typing import Any

from sememekit.errors import ConfigError


def needed(module: str, use: str, install: str = "sememekit[hf]") -> Any:
    """Import a package on first use; ``install`` is its installation command. Raises ConfigError: it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        told = f'{use} needs the package {module!r}, which is not installed; run: pip install "{install}"'
        raise ConfigError(told) from None
