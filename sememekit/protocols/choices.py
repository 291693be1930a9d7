"""What the user may choose of a cache, of dynamic evaluation and of their tuning, out of ``--set`` overrides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import Field

from sememekit.config import Settings, read_overrides, read_settings
from sememekit.errors import ConfigError
from sememekit.protocols import CacheGrid, CacheSettings, DynamicGrid, DynamicSettings, cache_settings, dynamic_settings
from sememekit.protocols.adaptation import Adaptation, Tuning

S = TypeVar("S", bound=Settings)


class CacheChoice(CacheSettings):
    """``--set cache.KEY=VALUE``: the settings, of which ``preset`` gives those that are not chosen."""

    preset: str | None = None


class DynamicChoice(DynamicSettings):
    """``--set dynamic.KEY=VALUE``: the settings, a preset for those that are not chosen, and how much text MS is read from."""

    preset: str | None = None
    statistics_tokens: int | None = Field(default=None, ge=1)


class TuneChoice(Settings):
    """``--set tune.KEY=VALUE``."""

    tokens: int | None = Field(default=None, ge=2)


def read_adaptation(
    overrides: Sequence[str] = (), *, cache: bool = False, dynamic: bool = False, tune: bool = False
) -> Adaptation | None:
    """How a text is to be read; None where the model is to stay as it is.

    Tuning tries every value of a setting that was not chosen, and only the chosen one of any other.

    Args:
        overrides: ``cache.KEY=VALUE``, ``dynamic.KEY=VALUE`` and ``tune.KEY=VALUE``.
        cache, dynamic, tune: what is asked for.

    Raises:
        ConfigError: an override of something that was not asked for, of an unknown key or out of its range.
    """
    table = read_overrides(overrides, ("cache", "dynamic", "tune"))
    needed = {"cache": cache, "dynamic": dynamic, "tune": tune}
    for slot, keys in table.items():
        if not needed[slot]:
            raise ConfigError(f"--set {slot}.{next(iter(keys))}: of no use without --{slot}; add it, or leave this out")
    if tune and not (cache or dynamic):
        raise ConfigError("--tune: of no use without --cache, --dynamic or both; add one")
    chosen = _chosen(CacheChoice, "cache", table)
    moved = _chosen(DynamicChoice, "dynamic", table)
    statistics_tokens = moved.pop("statistics_tokens", None)
    tuning = None
    if tune:
        fixed = {f"{name}s": (chosen[name],) for name in ("theta", "weight", "window") if name in chosen}
        if "start" in chosen:
            fixed["start"] = chosen["start"]
        tuning = Tuning(
            tokens=_chosen(TuneChoice, "tune", table).get("tokens"),
            cache=CacheGrid(**fixed),
            dynamic=DynamicGrid(**{f"{name}s": (1.0,) for name in ("rate", "decay") if name in moved}),
        )
    if not (cache or dynamic):
        return None
    return Adaptation(
        cache=cache_settings(**chosen) if cache else None,
        dynamic=dynamic_settings(**moved) if dynamic else None,
        tuning=tuning,
        statistics_tokens=statistics_tokens,
    )


def _chosen(kind: type[S], slot: str, table: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The keys of a slot that were chosen, read and checked."""
    settings = read_settings(kind, table.get(slot, {}), f"--set {slot}")
    return {name: getattr(settings, name) for name in settings.model_fields_set}
