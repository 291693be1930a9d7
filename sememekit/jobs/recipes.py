"""Check recipes, and write tables as TOML."""

import json
from collections.abc import Sequence
from typing import Any

from sememekit.attack import is_attack, read_attack_plan
from sememekit.config import Record, check_table, load_recipe, names_in, recipe_names
from sememekit.errors import ConfigError
from sememekit.runs.plan import read_plan


class RecipeCheck(Record):
    """The check of one recipe."""

    recipe: str
    valid: bool
    problem: str = ""
    """The error, with file, key, given and allowed values; empty if there is none."""


class RecipesReport(Record):
    """All recipes that were read."""

    checks: list[RecipeCheck]
    num_invalid: int


def validate_recipes(names: Sequence[str] = ()) -> RecipesReport:
    """Check the named recipes, every row of a ``.toml`` file, or all shipped recipes; errors are collected."""
    checks = []
    for name in names or recipe_names():
        try:
            rows = names_in(name)
        except ConfigError:  # a file that cannot be read counts as one, whose check says why
            rows = [name]
        for row in rows:
            try:
                table = load_recipe(row)
                check_table(table, row)
                (read_attack_plan if is_attack(table) else read_plan)(table, f"recipe {row!r}")
                checks.append(RecipeCheck(recipe=row, valid=True))
            except ConfigError as error:
                checks.append(RecipeCheck(recipe=row, valid=False, problem=str(error)))
    return RecipesReport(checks=checks, num_invalid=sum(not check.valid for check in checks))


def toml_text(table: dict[str, Any], path: str = "") -> str:
    """Return a table of plain values as TOML, so that the output of ``recipes show`` is a recipe again."""
    values = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"[{path}]"] if path and (values or not table) else []
    # JSON and TOML agree on plain values, except that TOML wants DEL escaped
    dumped = {key: json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") for key, value in values.items()}
    lines += [f"{key} = {value}" for key, value in dumped.items()]
    blocks = ["\n".join(lines)] if lines else []
    for key, value in table.items():
        if isinstance(value, dict):
            blocks.append(toml_text(value, f"{path}.{key}" if path else key))
    return "\n\n".join(blocks)
