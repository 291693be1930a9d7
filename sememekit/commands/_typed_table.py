"""From what was typed to the plain table of a run or of an attack."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sememekit.errors import ConfigError

HUGGING_FACE = "hf"
"""The encoder whose name may be followed by the folder of its model: ``--encoder hf:PATH``."""


def typed_table(
    recipe: str | None,
    overrides: Sequence[str] | None,
    variants: Mapping[str, str | None],
    values: Mapping[str, Any],
    below: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The recipe, then the options that name variants, then those that name things, then each ``--set``.

    Args:
        recipe, overrides: as they were typed.
        variants: slot -> the variant that was typed, or None; another name than the recipe's replaces the table of the slot
            whole. A variant that ``overrides`` choose is chosen before any key is set. ``--encoder hf:PATH`` is the encoder hf
            with its path.
        values: "slot.key" -> what was typed, or None.
        below: a table that lies under the recipe.
    """
    from sememekit.config import apply_overrides, check_table, choose_variant, load_recipe, merge_tables, named_variants

    table = load_recipe(recipe) if recipe is not None else {}
    check_table(table, str(recipe))
    if below is not None:
        table = merge_tables(below, table)
    named = {slot: name for slot, name in variants.items() if name is not None}
    kind, _, folder = named.get("encoder", "").partition(":")
    if kind == HUGGING_FACE:
        named["encoder"] = kind
        values = {"encoder.path": folder or None, **values}
    for slot, name in {**named, **named_variants(overrides or ())}.items():
        table = choose_variant(table, slot, name)
    for path, value in values.items():
        if value is not None:
            table = _with(table, path.split("."), value)
    return apply_overrides(table, overrides or ())


def _with(table: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """The table with a value below some keys; files as they were typed."""
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
