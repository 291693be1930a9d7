"""Lazy look-up of a variant by name: an explicit table of ``name -> "module:Class"``, or any importable class."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sememekit.config.settings import nearest
from sememekit.errors import ConfigError


def load_variant(kind: str, name: str, table: Mapping[str, str]) -> Any:
    """The class behind ``name``.

    Args:
        kind: what it is, for the message: "decoder", "encoder", "task", ...
        name: a key of the table, or ``package.module:Class`` for a class of your own.
        table: the explicit table of the package.

    Raises:
        ConfigError: for a name that is neither, with the names allowed and the nearest one.
    """
    target = table.get(name, name)
    module_name, colon, class_name = target.partition(":")
    if not colon:
        raise ConfigError(
            f"unknown {kind} {name!r}{nearest(name, table)}; allowed: {', '.join(sorted(table))}, "
            f"or package.module:Class for a {kind} of your own"
        )
    try:
        found = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name == error.name or module_name.startswith(error.name + ".")):
            raise
        raise ConfigError(f"{kind} {name!r}: no module named {module_name!r} can be imported from here") from None
    if class_name not in vars(found):
        raise ConfigError(f"{kind} {name!r}: module {module_name!r} has no class {class_name!r}")
    return getattr(found, class_name)
