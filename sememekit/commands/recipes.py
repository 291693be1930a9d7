"""Are the recipes right? Each is read into the settings of the classes that it names, without building a model."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from sememekit.config import load_recipe, names_in, recipe_names
from sememekit.errors import ConfigError


class RecipeCheck(BaseModel):
    """What came of one recipe."""

    model_config = ConfigDict(frozen=True)

    recipe: str
    valid: bool
    problem: str = ""
    """Empty, or what is wrong: the file, the key, what was given and what is allowed."""


class RecipesReport(BaseModel):
    """What came of all recipes that were looked at."""

    model_config = ConfigDict(frozen=True)

    checks: list[RecipeCheck]
    num_invalid: int


def validate_recipe(name: str) -> None:
    """Read one recipe as ``train`` or ``attack`` would.

    Args:
        name: ``paper/row``, the path of a ``.toml`` file, or ``FILE.toml:ROW``.

    Raises:
        ConfigError: names the file or table, the key, what was given and what is allowed.
    """
    from sememekit.attack import is_attack, read_attack_plan
    from sememekit.runs.plan import read_plan

    table = load_recipe(name)
    if is_attack(table):
        read_attack_plan(table, f"recipe {name!r}")
    else:
        read_plan(table, f"recipe {name!r}")


def validate_recipes(names: Sequence[str] = ()) -> RecipesReport:
    """Read the recipes named, or all that ship with sememekit; a wrong one is reported and does not end the work.

    Args:
        names: as of ``validate_recipe``; a ``.toml`` file is read with every row in it.
    """
    checks = [_check(each) for name in names or recipe_names() for each in _names_in(name)]
    return RecipesReport(checks=checks, num_invalid=sum(not check.valid for check in checks))


def _names_in(name: str) -> list[str]:
    """The recipes of a name; a file that cannot be read counts as one, whose check says why."""
    try:
        return names_in(name)
    except ConfigError:
        return [name]


def _check(name: str) -> RecipeCheck:
    try:
        validate_recipe(name)
    except ConfigError as error:
        return RecipeCheck(recipe=name, valid=False, problem=str(error))
    return RecipeCheck(recipe=name, valid=True)
