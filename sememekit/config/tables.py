"""Tables of a plan as plain data: their names, merging, and overrides from the command line."""

import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import date, datetime, time
from difflib import get_close_matches
from typing import Any, Final

from sememekit.config.settings import NAMES_ELSEWHERE, names_here, nearest
from sememekit.errors import ConfigError

ATTACK_SLOTS = ("goal", "search", "candidates", "constraints", "attack")  # tables of a recipe for an attack

TRAIN_SLOTS = ("data", "graph", "clusters", "task", "encoder", "decoder", "optimizer", "schedule", "run")
"""Tables of a recipe for a run."""

RUN_SLOTS = (*TRAIN_SLOTS, *ATTACK_SLOTS)  # tables that a recipe and ``--set`` may change

ADAPTATION_SLOTS = ("cache", "dynamic", "tune")  # tables that ``--set`` changes with a cache or dynamic evaluation

COMMAND_SLOTS = {"train": TRAIN_SLOTS, "attack": ATTACK_SLOTS, "evaluate-ppl": ADAPTATION_SLOTS}
"""Command -> the slots of its ``--set``; ``sweep`` has the slots of ``train``."""

SLOTS = ("claim", *RUN_SLOTS)  # the tables that a recipe may have

USUAL_VARIANTS = {
    "task": "language_model",
    "encoder": "lstm",
    "decoder": "softmax",
    "optimizer": "sgd",
    "goal": "untargeted",
    "search": "genetic",
    "candidates": "sememe",
}
"""Tables whose key ``name`` chooses a variant -> the variant without it; a changed ``name`` replaces the whole table."""

Table = dict[str, Any]


def merge_tables(base: Mapping[str, Any], over: Mapping[str, Any]) -> Table:
    """``over`` on top of ``base``, key by key; neither is changed.

    A table that names another variant replaces the base's whole table, because its keys belong to the old variant. A
    ``[claim]`` is not inherited, since it belongs to one row of one paper."""
    merged = {slot: deepcopy(table) for slot, table in base.items() if slot != "claim" or slot in over}
    for slot, table in over.items():
        below = merged.get(slot, {})
        other_variant = slot in USUAL_VARIANTS and "name" in table and table["name"] != below.get("name", USUAL_VARIANTS[slot])
        merged[slot] = deepcopy(dict(table)) if other_variant else _merge_keys(below, table)
    return merged


_MOST_DIFFERENCES = 6  # most differences in a message
_LONGEST_VALUE = 200  # so that a path is whole


def differing(there: Mapping[str, Any], given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the settings (slot, key) that differ between two tables. Different variants come first, by name alone, because
    their keys differ. ``prepare`` (how data were prepared) does not count."""
    slots = dict.fromkeys((*there, *given))
    other = {slot for slot in slots if there.get(slot, {}).get("name") != given.get(slot, {}).get("name")}
    return [
        (slot, key)
        for slot in sorted(slots, key=lambda slot: slot not in other)
        for key in (["name"] if slot in other else dict.fromkeys((*there.get(slot, {}), *given.get(slot, {}))))
        if key != "prepare" and _value(there, slot, key) != _value(given, slot, key)
    ]


def differences(there: Mapping[str, Any], given: Mapping[str, Any], settings: Sequence[tuple[str, str]] | None = None) -> str:
    """Describe the differences of two tables, as ``encoder.hidden_size is 32 there, given 64``, in ``settings`` of
    ``differing`` (default: all); "" without any."""
    found = []
    for slot, key in differing(there, given) if settings is None else settings:
        shown = (next(map(repr, _value(table, slot, key)), "not set") for table in (there, given))
        first, second = (one if len(one) <= _LONGEST_VALUE else f"{one[:_LONGEST_VALUE]}…" for one in shown)
        found.append(f"{slot}.{key} is {first} there, {'given ' if key in given.get(slot, {}) else 'and here '}{second}")
    more = f", and {len(found) - _MOST_DIFFERENCES} more" if len(found) > _MOST_DIFFERENCES else ""
    return "; ".join(found[:_MOST_DIFFERENCES]) + more


def _value(table: Mapping[str, Any], slot: str, key: str) -> tuple[Any, ...]:
    """Return (value,) of a setting, for comparison; () if it is not set."""
    keys = table.get(slot, {})
    return (keys[key],) if key in keys else ()


def apply_overrides(table: Mapping[str, Any], overrides: Sequence[str]) -> Table:
    """Return the table with each ``slot.key=value`` applied; the given table is not changed.

    A value is read as TOML (``0.5``, ``true``, ``[1, 2]``, ``"text"``), otherwise as a bare string. A new variant (``name``) of
    a slot drops the other keys of the given table, but no override: names are applied first, then keys, and a table before the
    keys inside it. So the order of overrides matters only for one key: its last value wins. Raises ConfigError for an override
    that is not ``slot.key=value``, an unknown slot, or a key below a plain value."""
    result = deepcopy(dict(table))
    for slot, name in named_variants(overrides).items():
        result = choose_variant(result, slot, name)
    split = [(override, *_split_override(override)) for override in overrides]
    for override, keys, value in sorted(split, key=lambda item: len(item[1])):
        if _names_variant(keys, value):
            continue
        inner = result
        for depth, key in enumerate(keys[:-1]):
            inner = inner.setdefault(key, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"--set {override}: {'.'.join(keys[: depth + 1])!r} is the value {inner!r}, not a table")
        inner[keys[-1]] = value
    return result


def named_variants(overrides: Sequence[str]) -> dict[str, str]:
    """Return slot -> the variant of overrides such as ``encoder.name=gru``; the last wins. Errors as ``apply_overrides``."""
    split = [_split_override(override) for override in overrides]
    return {keys[0]: value for keys, value in split if _names_variant(keys, value)}


def choose_variant(table: Mapping[str, Any], slot: str, name: str) -> Table:
    """Return the table with ``name`` in ``slot``; other keys stay only with the same variant. ConfigError: it has none."""
    if slot not in USUAL_VARIANTS:
        raise ConfigError(
            f"[{slot}] does not choose a variant{nearest(slot, USUAL_VARIANTS)}; allowed: {', '.join(USUAL_VARIANTS)}"
        )
    result = deepcopy(dict(table))
    keys = result.get(slot, {})
    result[slot] = {**keys, "name": name} if keys.get("name", USUAL_VARIANTS[slot]) == name else {"name": name}
    return result


def _names_variant(keys: Sequence[str], value: object) -> bool:
    return keys[0] in USUAL_VARIANTS and list(keys[1:]) == ["name"] and isinstance(value, str)


def _merge_keys(below: Mapping[str, Any], over: Mapping[str, Any]) -> Table:
    merged = deepcopy(dict(below))
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = _merge_keys(merged[key], value)
        else:
            merged[key] = deepcopy(value)
    return merged


_COMMON_KEYS: Final = {
    "task": ("batch_size", "chunk_length", "embedding_size"),
    "encoder": ("dropout", "hidden_size", "num_layers"),
    "decoder": ("samples",),
    "optimizer": ("clip", "learning_rate", "weight_decay"),
    "schedule": ("epochs",),
    "run": ("seed", "threads"),
}
PLACES_OF_KEYS: Final = {key: f"{slot}.{key}" for slot, keys in _COMMON_KEYS.items() for key in keys}
"""Common settings -> their place, for names without slot or from other programs."""


def place_of_setting(name: str) -> str:
    """Return the setting that a name without a slot, or a name from another program, most likely means; "" if unknown."""
    return next((PLACES_OF_KEYS[one] for one in names_here(name) if one in PLACES_OF_KEYS), "")


def settings_typed_as_options() -> dict[str, str]:
    """Map options typed in place of a setting, ``--batch-size`` or ``--batch_size``, to the setting."""
    names = {name: place for name in (*PLACES_OF_KEYS, *NAMES_ELSEWHERE) if (place := place_of_setting(name))}
    return {f"--{form}": place for name, place in names.items() for form in (name, name.replace("_", "-"))}


def read_overrides(overrides: Sequence[str], slots: Sequence[str]) -> Table:
    """Return slot -> key -> value for overrides ``slot.key=value``. ConfigError: another form, or another slot."""
    table: Table = {}
    for override in overrides:
        (slot, *keys), value = _split_override(override, slots)
        table.setdefault(slot, {})[".".join(keys)] = value
    return table


def _split_override(override: str, slots: Sequence[str] = RUN_SLOTS) -> tuple[list[str], Any]:
    path, equals, text = override.partition("=")
    keys = [key.strip() for key in path.split(".")]
    known = place_of_setting(keys[-1])
    meant = f" (did you mean {f'{known}={text}'!r}?)" if known and slots is RUN_SLOTS and equals else ""
    if not equals or len(keys) < 2 or not all(keys):
        example = "encoder.hidden_size=200" if slots is RUN_SLOTS else f"{slots[0]}.KEY=VALUE"
        raise ConfigError(f"--set {override!r}: expected slot.key=value{meant or f', for example {example}'}")
    if keys[0] not in slots:
        meant = "" if get_close_matches(keys[0], slots, n=1, cutoff=0.75) else meant  # a slip of the hand
        meant = meant or nearest(keys[0], slots)
        raise ConfigError(f"--set {override!r}: unknown slot {keys[0]!r}{meant}; allowed: {', '.join(slots)}")
    return keys, _read_value(text.strip())


def _read_value(text: str) -> Any:
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # a number of more digits than Python converts is a ValueError
        return text
    value = table["value"]
    # A line break could smuggle in further keys; dates have no place in a recipe.
    if len(table) > 1 or isinstance(value, date | datetime | time):
        return text
    return value
