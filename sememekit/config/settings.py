"""Frozen, typed settings: unknown keys are refused and the nearest spelling is offered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from sememekit.errors import ConfigError


class Settings(BaseModel):
    """Base of every settings class. A default stands once, in the class that the settings configure."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


SettingsType = TypeVar("SettingsType", bound=Settings)


def nearest(name: str, allowed: Iterable[str]) -> str:
    """A hint such as ``did you mean 'dropout'?`` or, where nothing is near, an empty string."""
    close = get_close_matches(name, list(allowed), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def read_settings(kind: type[SettingsType], table: Mapping[str, Any], where: str) -> SettingsType:
    """Turn a plain table into settings.

    Args:
        kind: the settings class to read into.
        table: plain keys and values, as TOML gives them.
        where: the place that the user knows, such as ``[decoder]``; it opens each message.

    Raises:
        ConfigError: names every bad key of the table, what was given and what is allowed.
    """
    try:
        return kind.model_validate(dict(table))
    except ValidationError as error:
        problems = []
        for item in error.errors():
            path = ".".join(str(part) for part in item["loc"])
            if item["type"] == "extra_forbidden":
                allowed = sorted(kind.model_fields)
                problems.append(f"unknown key {path!r}{nearest(path, allowed)}; allowed: {', '.join(allowed)}")
            elif item["type"] == "missing":
                problems.append(f"key {path!r} is required and was not given")
            else:
                problems.append(f"key {path!r}: {item['msg'][0].lower()}{item['msg'][1:]}, given {item['input']!r}")
        raise ConfigError(f"{where}: {'; '.join(problems)}") from None
