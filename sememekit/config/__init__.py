"""Typed settings, recipes and look-up of variants. Nothing here imports torch."""

from sememekit.config.recipes import (
    USUAL_VARIANTS,
    Claim,
    RecipeInfo,
    apply_overrides,
    choose_variant,
    list_recipes,
    load_recipe,
    merge_tables,
    named_variants,
    recipe_names,
)
from sememekit.config.resources import resources_folder
from sememekit.config.settings import OnlyWith, Settings, collected, nearest, read_settings, unread
from sememekit.config.variants import check_code, load_variant, trusting_code

__all__ = [
    "USUAL_VARIANTS",
    "Claim",
    "OnlyWith",
    "RecipeInfo",
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
    "nearest",
    "read_settings",
    "recipe_names",
    "resources_folder",
    "trusting_code",
    "unread",
]
