"""Typed settings, recipes and look-up of variants. Nothing here imports torch."""

from sememekit.config.recipes import Claim, list_recipes, load_recipe, names_in, recipe_names, resources_folder
from sememekit.config.settings import (
    LARGEST_SEED,
    OnlyWith,
    Record,
    Seed,
    Settings,
    first_problem,
    nearest,
    read_settings,
    record_of,
    unread,
)
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
)
from sememekit.config.variants import (
    check_code,
    check_table,
    imported,
    installed_variants,
    is_own,
    load_variant,
    name_of,
    named_in,
    trusted_code,
    trusting_code,
)
