"""Typed settings, recipes and look-up of variants. Nothing here imports torch."""

from sememekit.config.recipes import Claim, RecipeInfo, list_recipes, load_recipe, names_in, recipe_names, resources_folder
from sememekit.config.settings import OnlyWith, Record, Settings, collected, nearest, read_settings, unread
from sememekit.config.tables import (
    USUAL_VARIANTS,
    apply_overrides,
    choose_variant,
    merge_tables,
    named_variants,
    read_overrides,
)
from sememekit.config.variants import check_code, load_variant, trusted_code, trusting_code

__all__ = [
    "USUAL_VARIANTS",
    "Claim",
    "OnlyWith",
    "RecipeInfo",
    "Record",
    "Settings",
    "apply_overrides",
    "check_code",
    "choose_variant",
    "collected",
    "list_recipes",
    "load_recipe",
    "load_variant",
    "merge_tables",
    "named_variants",
    "names_in",
    "nearest",
    "read_overrides",
    "read_settings",
    "recipe_names",
    "resources_folder",
    "trusted_code",
    "trusting_code",
    "unread",
]
