"""Recipes: one TOML file for each row of a paper's table, with at most one base, and overrides from the command line.

A recipe is plain data. It is merged and checked for its shape here, without torch; ``sememekit.build`` reads the merged table
into the settings of the classes that it names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from sememekit.config.resources import resources_folder
from sememekit.config.settings import Settings, nearest, read_settings
from sememekit.errors import ConfigError

ATTACK_SLOTS = ("goal", "search", "candidates", "constraints", "attack")
"""The tables of recipes that describe an attack instead of a training."""

SLOTS = ("claim", "data", "graph", "clusters", "task", "encoder", "decoder", "optimizer", "schedule", "run", *ATTACK_SLOTS)
"""The tables that a recipe may have."""

VARIANT_SLOTS = ("task", "encoder", "decoder", "optimizer", "goal", "search", "candidates")
"""The tables whose key ``name`` chooses what the other keys mean: another name replaces the whole table."""

USUAL_VARIANTS = {
    "task": "language_model",
    "encoder": "lstm",
    "decoder": "softmax",
    "optimizer": "sgd",
    "goal": "untargeted",
    "search": "genetic",
    "candidates": "sememe",
}
"""The variant of a table that names none, so that naming it changes nothing."""

Table = dict[str, Any]


class Claim(Settings):
    """The published number that a recipe is after."""

    paper: str
    """Who and when: "Gu et al. 2018"."""
    table: str
    """The table of the paper: "Table 1"."""
    row: str
    """The row of that table, as it is printed there."""
    metric: str
    """What is measured: "test perplexity"."""
    value: float
    """The printed number."""
    tolerance: float = 0.0
    """How far from ``value`` a measured number may lie and still count as reproduced, in the unit of the metric."""
    note: str = ""
    """Whatever a reader must know to compare fairly."""


class RecipeInfo(BaseModel):
    """What ``recipes list`` shows of one recipe."""

    model_config = ConfigDict(frozen=True)

    name: str
    """``paper/row``: what ``--recipe`` takes."""
    path: Path
    summary: str
    """The first comment line of the file."""
    claim: Claim | None


def recipes_folder() -> Path:
    """Where the recipes lie that ship with sememekit."""
    return resources_folder() / "recipes"


def recipe_names(folder: Path | None = None) -> list[str]:
    """Names of the shipped recipes, sorted; reads no file, so that completion in a shell is instant."""
    folder = folder or recipes_folder()
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml"))


def list_recipes(folder: Path | None = None) -> list[RecipeInfo]:
    """Every shipped recipe, sorted by name.

    Raises:
        ConfigError: when one of them is not a recipe; the message names the file and the key.
    """
    folder = folder or recipes_folder()
    return [_describe(name, folder) for name in recipe_names(folder)]


def load_recipe(name: str, folder: Path | None = None) -> Table:
    """The plain table of a recipe, merged over its base.

    Args:
        name: ``paper/row`` of a shipped recipe, or the path of a ``.toml`` file.
        folder: where ``paper/row`` is looked up; the shipped recipes unless given.

    Raises:
        ConfigError: for an unknown name, a file that is not TOML, an unknown table, or a base that has a base.
    """
    folder = folder or recipes_folder()
    path = _find(name, folder, where="")
    table = _read(path)
    base_name = table.pop("base", None)
    if base_name is not None:
        if not isinstance(base_name, str):
            raise ConfigError(f"{path}: key 'base' must name a recipe such as \"sdlm/pd-medium\", given {base_name!r}")
        base_path = _find(base_name, folder, where=f"{path}: key 'base': ")
        base = _read(base_path)
        if "base" in base:
            raise ConfigError(
                f"{path}: its base {base_name!r} has a base of its own ({base['base']!r}); only one level is allowed: "
                f"name {base['base']!r} here and repeat what {base_name!r} changes"
            )
        table = merge_tables(base, table)
    if "claim" in table:
        read_settings(Claim, table["claim"], f"{path}: [claim]")
    return table


def merge_tables(base: Mapping[str, Any], over: Mapping[str, Any]) -> Table:
    """``over`` on top of ``base``, key by key; neither is changed.

    Two rules go beyond that. A table that names another variant replaces the base's table whole, because the other keys
    belong to the old variant. And a claim belongs to one row of one paper: without a ``[claim]`` of its own a recipe has none.
    """
    merged = {slot: deepcopy(table) for slot, table in base.items() if slot != "claim" or slot in over}
    for slot, table in over.items():
        below = merged.get(slot, {})
        other_variant = slot in VARIANT_SLOTS and "name" in table and table["name"] != _variant_of(slot, below)
        merged[slot] = deepcopy(dict(table)) if other_variant else _merge_keys(below, table)
    return merged


def apply_overrides(table: Mapping[str, Any], overrides: Sequence[str]) -> Table:
    """The table with each ``slot.key=value`` applied; the given table stays as it is.

    A value is read as TOML (``0.5``, ``true``, ``[1, 2]``, ``"text"``); what is not TOML is taken as a bare string. Setting
    the ``name`` of a slot to another variant replaces what the given table has in the slot, but never another override: names
    come first, then keys, a table before the keys inside it. So the order in which overrides are given does not matter, except
    that the last of several values of one key holds.

    Raises:
        ConfigError: for an override that is not ``slot.key=value``, an unknown slot, or a key below a plain value.
    """
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
    """slot -> the variant that overrides such as ``encoder.name=gru`` choose in it; the last of several holds.

    Raises:
        ConfigError: for an override that is not ``slot.key=value``, or an unknown slot.
    """
    split = [_split_override(override) for override in overrides]
    return {keys[0]: value for keys, value in split if _names_variant(keys, value)}


def choose_variant(table: Mapping[str, Any], slot: str, name: str) -> Table:
    """The table with ``name`` in ``slot``: the slot's other keys stay only when they were of this variant already.

    Raises:
        ConfigError: when the slot does not choose between variants.
    """
    if slot not in VARIANT_SLOTS:
        raise ConfigError(
            f"[{slot}] does not choose a variant{nearest(slot, VARIANT_SLOTS)}; allowed: {', '.join(VARIANT_SLOTS)}"
        )
    result = deepcopy(dict(table))
    keys = result.get(slot, {})
    result[slot] = {**keys, "name": name} if _variant_of(slot, keys) == name else {"name": name}
    return result


def _variant_of(slot: str, keys: Mapping[str, Any]) -> Any:
    """The variant that a table chooses: the one that it names, or the usual one."""
    return keys.get("name", USUAL_VARIANTS[slot])


def _names_variant(keys: Sequence[str], value: object) -> bool:
    return keys[0] in VARIANT_SLOTS and list(keys[1:]) == ["name"] and isinstance(value, str)


def _merge_keys(below: Mapping[str, Any], over: Mapping[str, Any]) -> Table:
    """Key-wise merge, also inside nested tables."""
    merged = deepcopy(dict(below))
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = _merge_keys(merged[key], value)
        else:
            merged[key] = deepcopy(value)
    return merged


def _split_override(override: str) -> tuple[list[str], Any]:
    """``encoder.hidden_size=200`` as ``(["encoder", "hidden_size"], 200)``."""
    path, equals, text = override.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if not equals or len(keys) < 2 or not all(keys):
        raise ConfigError(f"--set {override!r}: expected slot.key=value, for example encoder.hidden_size=200")
    allowed = [slot for slot in SLOTS if slot != "claim"]
    if keys[0] not in allowed:
        raise ConfigError(
            f"--set {override!r}: unknown slot {keys[0]!r}{nearest(keys[0], allowed)}; allowed: {', '.join(allowed)}"
        )
    return keys, _read_value(text.strip())


def _read_value(text: str) -> Any:
    """A TOML value, or the text itself."""
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # a number of more digits than Python converts is a ValueError
        return text
    value = table["value"]
    # A line break could smuggle in further keys; dates have no place in a recipe.
    if len(table) > 1 or isinstance(value, date | datetime | time):
        return text
    return value


def _find(name: str, folder: Path, where: str) -> Path:
    """The file of a recipe. ``where`` opens the message of the error."""
    if name.endswith(".toml"):
        path = Path(name)
        if path.is_file():
            return path
        raise ConfigError(f"{where}no recipe file {name!r} in {Path.cwd()}")
    known = recipe_names(folder)
    if name not in known:
        raise ConfigError(
            f"{where}unknown recipe {name!r}{nearest(name, known)}; 'sememekit recipes list' shows all {len(known)}, "
            "and a path ending in .toml takes a recipe of your own"
        )
    return folder / f"{name}.toml"


def _read(path: Path) -> Table:
    """One file, as TOML with only known tables in it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 (byte {error.start}); save the recipe as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    except ValueError:
        raise ConfigError(f"{path}: a number of more digits than any setting takes; correct it") from None
    except RecursionError:
        raise ConfigError(f"{path}: values are nested too deeply for a recipe; tables inside tables are enough") from None
    for key, value in table.items():
        if key == "base":
            continue
        if key not in SLOTS:
            allowed = ("base", *SLOTS)
            raise ConfigError(f"{path}: unknown table {key!r}{nearest(key, allowed)}; allowed: {', '.join(allowed)}")
        if not isinstance(value, dict):
            raise ConfigError(f"{path}: {key!r} must be a table, [{key}], given {value!r}")
    return table


def _describe(name: str, folder: Path) -> RecipeInfo:
    table = load_recipe(name, folder)
    path = folder / f"{name}.toml"
    comments = (line.lstrip("# ").strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.startswith("#"))
    claim = Claim(**table["claim"]) if "claim" in table else None
    return RecipeInfo(name=name, path=path, summary=next(comments, ""), claim=claim)
