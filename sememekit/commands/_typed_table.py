"""Build the plain table of a run or an attack from typed options."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sememekit.config import apply_overrides, check_table, choose_variant, load_recipe, merge_tables, named_variants
from sememekit.errors import ConfigError


def typed_table(
    recipe: str | None,
    overrides: Sequence[str] | None,
    variants: Mapping[str, str | None],
    values: Mapping[str, Any],
    below: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the recipe, overridden by options that name variants, then by other options, then by each ``--set``.

    ``variants``: slot -> the typed variant, or None; a name other than the recipe's replaces the whole table of the slot.
    Variants in ``overrides`` are chosen before keys are set. ``--encoder hf:PATH`` is the encoder hf with its path. ``values``:
    "slot.key" -> what was typed, or None. ``below``: a table under the recipe."""
    table = load_recipe(recipe) if recipe is not None else {}
    check_table(table, str(recipe))
    if below is not None:
        table = merge_tables(below, table)
    named = {slot: name for slot, name in variants.items() if name is not None}
    kind, _, folder = named.get("encoder", "").partition(":")
    if kind == "hf":
        named["encoder"] = kind
        values = {"encoder.path": folder or None, **values}
    for slot, name in {**named, **named_variants(overrides or ())}.items():
        table = choose_variant(table, slot, name)
    for path, value in values.items():
        if value is not None:
            table = _with(table, path.split("."), value)
    return apply_overrides(table, overrides or ())


def _with(table: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return the table with a value at a path of keys; file names stay as typed."""
    key, *rest = path
    if rest:
        return {**table, key: _with(table.get(key, {}), rest, value)}
    if isinstance(value, list):
        return {**table, key: [str(item) for item in value]}
    return {**table, key: str(value) if isinstance(value, Path) else value}


def check_vectors(vectors: Path | None, table: Mapping[str, Any]) -> None:
    """Raise ConfigError where ``--vectors`` was typed and the chosen task has no key for it."""
    from sememekit.runs.plan import VARIANTS, variant

    known, _, default = VARIANTS["task"]
    takers = [task for task in known if "vectors" in variant("task", task).Settings.model_fields]
    name = str(table.get("task", {}).get("name", default))
    if vectors is not None and "vectors" not in variant("task", name).Settings.model_fields:
        raise ConfigError(f"--vectors is for --task {' or '.join(takers)}, and this is task {name!r}; leave it out")
