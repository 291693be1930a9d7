"""Typed settings, recipes and look-up of variants. Nothing here imports torch."""

from sememekit.config.arguments import checked_arguments
from sememekit.config.described import Setting, describe_settings, summary_of
from sememekit.config.recipes import Claim, RecipeInfo, list_recipes, load_recipe, names_in, recipe_names, resources_folder
from sememekit.config.settings import LARGEST_SEED, OnlyWith, Record, Seed, Settings, collected, nearest, read_settings, unread
from sememekit.config.tables import (
    ADAPTATION_SLOTS,
    COMMAND_SLOTS,
    USUAL_VARIANTS,
    apply_overrides,
    choose_variant,
    differences,
    differing,
    merge_tables,
    named_variants,
    place_of_setting,
    read_overrides,
    settings_typed_as_options,
    with_setting,
)
from sememekit.config.variants import check_code, installed_variants, is_own, load_variant, trusted_code, trusting_code

__all__ = [
    "ADAPTATION_SLOTS",
    "COMMAND_SLOTS",
    "LARGEST_SEED",
    "USUAL_VARIANTS",
    "Claim",
    "OnlyWith",
    "RecipeInfo",
    "Record",
    "Seed",
    "Setting",
    "Settings",
    "apply_overrides",
    "check_code",
    "checked_arguments",
    "choose_variant",
    "collected",
    "describe_settings",
    "differences",
    "differing",
    "installed_variants",
    "is_own",
    "list_recipes",
    "load_recipe",
    "load_variant",
    "merge_tables",
    "named_variants",
    "names_in",
    "nearest",
    "place_of_setting",
    "read_overrides",
    "read_settings",
    "recipe_names",
    "resources_folder",
    "settings_typed_as_options",
    "summary_of",
    "trusted_code",
    "trusting_code",
    "unread",
    "with_setting",
]
