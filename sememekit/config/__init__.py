"""Typed settings, recipes and look-up of variants. Nothing here imports torch."""

from sememekit.config.recipes import (
    Claim,
    RecipeInfo,
    apply_overrides,
    choose_variant,
    list_recipes,
    load_recipe,
    merge_tables,
    recipe_names,
)
from sememekit.config.resources import resources_folder
from sememekit.config.settings import Settings, nearest, read_settings
from sememekit.config.variants import check_code, load_variant, trusting_code

__all__ = [
    "Claim",
    "RecipeInfo",
    "Settings",
    "apply_overrides",
    "check_code",
    "choose_variant",
    "list_recipes",
    "load_recipe",
    "load_variant",
    "merge_tables",
    "nearest",
    "read_settings",
    "recipe_names",
    "resources_folder",
    "trusting_code",
]
