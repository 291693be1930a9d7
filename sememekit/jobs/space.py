"""The search space of ``sweep --over``: a setting, and the values to try."""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sememekit.config import apply_overrides, place_of_setting
from sememekit.errors import ConfigError

Value = float | int | bool | str
_RANGE = re.compile(r"(log:)?([^.,]+(?:\.\d[^.,]*)?)\.\.([^,]+)")
_MOST_COMBINATIONS = 100_000  # more combinations are not enumerated, since a sweep of affordable length hardly repeats one
_SYNTAX = "KEY=a,b,c for values, KEY=LOW..HIGH for a range, KEY=log:LOW..HIGH for one whose logarithm is drawn"


@dataclass(frozen=True)
class Space:
    """The values of one setting, or of several settings with a common value."""

    key: str  # "slot.key", or "slot.key,slot.key2"
    values: tuple[Value, ...]  # the choices, or the ends of a range
    is_range: bool  # whether all values between the two are allowed (integers if both are)
    log: bool = False  # whether values are drawn on a log scale

    def distribution(self) -> Any:
        """The distribution from which the sampler of Optuna draws."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if not self.is_range:
            return CategoricalDistribution(self.values)
        low, high = self.values
        if isinstance(low, int) and isinstance(high, int):
            return IntDistribution(low, high, log=self.log)
        return FloatDistribution(float(low), float(high), log=self.log)

    def all(self) -> Sequence[Value] | None:
        """All values; None for a range with fractions."""
        if not self.is_range:
            return self.values
        low, high = self.values
        return range(low, high + 1) if isinstance(low, int) and isinstance(high, int) else None

    def has(self, value: object) -> bool:
        """Return whether a value lies in the space."""
        if not self.is_range:
            return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in self.values)
        low, high = self.values
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and low <= value <= high  # type: ignore[operator]


def read_spaces(given: Sequence[str]) -> list[Space]:
    """Read the spaces of several ``--over``. Raises ConfigError: an invalid space, or two for one setting."""
    spaces = [_read_space(text) for text in given]
    keys = [key for space in spaces for key in space.key.split(",")]
    twice = [key for key in keys if keys.count(key) > 1]
    if twice:
        raise ConfigError(f"--over {twice[0]} is given twice; put all its values into one: --over {twice[0]}=VALUE,VALUE")
    return spaces


def combinations_of(spaces: Sequence[Space]) -> list[dict[str, Value]] | None:
    """Return all combinations of values, in order; None if they are infinite or too many."""
    all_values = [space.all() for space in spaces]
    counted = [values for values in all_values if values is not None]
    if len(counted) < len(spaces) or math.prod(map(len, counted)) > _MOST_COMBINATIONS:
        return None
    keys = [space.key for space in spaces]
    return [dict(zip(keys, values, strict=True)) for values in itertools.product(*counted)]


def _read_space(text: str) -> Space:
    key, equals, said = text.partition("=")
    parts = [".".join(piece.strip() for piece in part.split(".")) for part in key.split(",")]
    key, said = ",".join(parts), said.strip()
    if not equals or not said or not all("." in part for part in parts):
        places = [place_of_setting(part) for part in parts]
        meant = f" (did you mean {','.join(places) + '=' + said!r}?)" if said and all(places) else ""
        raise ConfigError(f"--over {text!r}: expected {_SYNTAX}, such as optimizer.learning_rate=log:0.5..40{meant}")
    if (found := _RANGE.fullmatch(said)) is not None:
        low, high = (_value(key, part) for part in found.groups()[1:])
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (low, high))
        if not numbers or low >= high or (found[1] and low <= 0):  # type: ignore[operator]
            raise ConfigError(
                f"--over {text!r}: a range has two numbers, the smaller one first, and above 0 where logarithms are drawn, "
                "such as optimizer.learning_rate=log:0.5..40"
            )
        return Space(key, (low, high), True, bool(found[1]))
    if said.startswith("log:"):
        raise ConfigError(f"--over {text!r}: log: is for ranges; write {key}=log:LOW..HIGH, or {key}={said[4:]}")
    values = tuple(_value(key, part) for part in said.split(","))
    if len({(type(value), value) for value in values}) < max(2, len(values)):
        raise ConfigError(f"--over {text!r}: two different values at least, each once; to set one value use --set {key}=VALUE")
    return Space(key, values, False)


def _value(key: str, text: str) -> Value:
    """Read a value like ``--set``. Raises ConfigError: it is not a plain value, or the key cannot be set."""
    value: Any = apply_overrides({}, overrides_of({key: text.strip()}))
    for part in key.split(",")[0].split("."):
        value = value[part]
    if not isinstance(value, int | float | bool | str):
        raise ConfigError(f"--over {key}: {text!r} is no number, truth value or text; expected {_SYNTAX}")
    return value


def overrides_of(settings: Mapping[str, Value]) -> list[str]:
    """Return ``--set`` arguments with exact numbers."""
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in settings.items()}
    return [f"{part}={text}" for key, text in texts.items() for part in key.split(",")]
