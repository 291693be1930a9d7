"""From what was typed to the plain table of a run or of an attack."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sememekit.errors import ConfigError

HUGGING_FACE = "hf"
"""The encoder whose name may be followed by the folder of its model: ``--encoder hf:PATH``."""


def typed_table(
    options: Mapping[str, Any],
    places: Mapping[str, tuple[str, ...]],
    variants: Sequence[str],
    below: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The recipe, then the options that name variants, then those that name things, then each ``--set``.

    Args:
        options: the ``locals()`` of a command, None for what was not typed: of it ``recipe``, ``overrides``, the slots of
            ``variants`` and the options of ``places`` are read.
        places: option -> the slot and the keys below it where its value goes.
        variants: slots whose option names a variant; another name than the recipe's replaces the table of the slot whole. A
            variant that ``overrides`` choose is chosen before any key is set. ``--encoder
            hf:PATH`` is the encoder hf with its path.
        below: a table that lies under the recipe.
    """
    from sememekit.config import apply_overrides, check_table, choose_variant, load_recipe, merge_tables, named_variants

    recipe, overrides = options.get("recipe"), options.get("overrides") or ()
    table = load_recipe(recipe) if recipe is not None else {}
    check_table(table, str(recipe))
    if below is not None:
        table = merge_tables(below, table)
    named = {slot: options[slot] for slot in variants if options.get(slot) is not None}
    kind, _, folder = str(named.get("encoder", "")).partition(":")
    if kind == HUGGING_FACE:
        named["encoder"] = kind
    for slot, name in {**named, **named_variants(overrides)}.items():
        table = choose_variant(table, slot, name)
    if kind == HUGGING_FACE and folder:
        table = _with(table, ("encoder", "path"), folder)
    for option, path in places.items():
        if options.get(option) is not None:
            table = _with(table, path, options[option])
    return apply_overrides(table, overrides)


def _with(table: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """The table with a value below some keys; files as they were typed."""
    key, *rest = path
    if rest:
        return {**table, key: _with(table.get(key, {}), rest, value)}
    if isinstance(value, list):
        return {**table, key: [str(item) for item in value]}
    return {**table, key: str(value) if isinstance(value, Path) else value}


def refuse_foreign_options(options: Mapping[str, Any], places: Mapping[str, tuple[str, ...]], table: Mapping[str, Any]) -> None:
    """Raise ConfigError for an option whose value the chosen variant has no key for; arguments as of :func:`typed_table`."""
    from sememekit.runs.plan import VARIANTS, variant

    for option, (slot, key) in places.items():
        if options.get(option) is None or slot not in VARIANTS:
            continue
        known, _, usual = VARIANTS[slot]
        name = str(table.get(slot, {}).get("name", usual))
        if key in variant(slot, name).Settings.model_fields:
            continue
        takers = [other for other in known if key in variant(slot, other).Settings.model_fields]
        raise ConfigError(f"--{option} is for --{slot} {' or '.join(takers)}, and this is {slot} {name!r}; leave it out")
