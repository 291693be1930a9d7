"""The subcommands of ``sememekit recipes``: list, show and validate recipes, without building a model."""

import json as json_module
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from sememekit.commands._completion import complete_recipe
from sememekit.commands._exit import FAILED
from sememekit.commands._options import Json, Word, example, has_word
from sememekit.commands._printing import print_json, print_table, say
from sememekit.config import Record, check_table, list_recipes, load_recipe, names_in, recipe_names
from sememekit.errors import ConfigError

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A shipped recipe, a .toml file, or a row of it, FILE.toml:ROW.", autocompletion=complete_recipe
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...",
        help="Recipes to check, .toml files with all their rows; default: all that ship.",
        autocompletion=complete_recipe,
    ),
]

command = typer.Typer(help="List, show and validate the recipes.", epilog=example("sememekit recipes list"))


class RecipeCheck(Record):
    """Whether one recipe can be read."""

    recipe: str
    valid: bool
    problem: str = ""
    """Empty, or what is wrong: the file, the key, what was given and what is allowed."""


class RecipesReport(Record):
    """All recipes that were read."""

    checks: list[RecipeCheck]
    num_invalid: int


def validate_recipe(name: str) -> None:
    """Read one recipe, ``paper/row``, ``FILE.toml`` or ``FILE.toml:ROW``, as ``train`` or ``attack`` would. Raises ConfigError:
    names the file or table, the key, what was given and what is allowed.
    """
    from sememekit.attack import is_attack, read_attack_plan
    from sememekit.runs.plan import read_plan

    table = load_recipe(name)
    check_table(table, name)
    if is_attack(table):
        read_attack_plan(table, f"recipe {name!r}")
    else:
        read_plan(table, f"recipe {name!r}")


def validate_recipes(names: Sequence[str] = ()) -> RecipesReport:
    """Read the recipes named, every row of a ``.toml`` file, or all that ship; a wrong one does not end the work."""
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


@command.command("list", epilog=example("sememekit recipes list", "sememekit recipes list small"))
def list_all(word: Word = None, json: Json = False) -> None:
    """List all recipes, with the number that each should reproduce; with a WORD those that have it in a name or summary."""
    found = list_recipes()
    recipes = [recipe for recipe in found if has_word(word, recipe.name, recipe.summary)]
    if not recipes:
        raise ConfigError(f"no recipe has {word!r} in its name or summary; 'sememekit recipes list' shows all {len(found)}")
    if json:
        say(json_module.dumps({"recipes": [recipe.model_dump(mode="json") for recipe in recipes]}, ensure_ascii=False))
        return
    claims = [(one.claim.metric, one.claim.value, one.claim.tolerance) if one.claim else None for one in recipes]
    claimed = [f"{found[0]} {found[1]:g} ± {found[2]:g}" if found else "" for found in claims]
    rows = [(recipe.name, recipe.summary, claim) for recipe, claim in zip(recipes, claimed, strict=True)]
    print_table("", ("recipe", "what it is", "claim"), rows, numeric=3)


@command.command("show", epilog=example("sememekit recipes show ours/pd-softmax"))
def show(name: Name, json: Json = False) -> None:
    """A recipe as it is after merging it over its bases."""
    table = load_recipe(name)
    say(json_module.dumps(table, ensure_ascii=False) if json else toml_text(table))


@command.command("validate", epilog=example("sememekit recipes validate", "sememekit recipes validate mine.toml"))
def validate(names: Names = None, json: Json = False) -> None:
    """Read recipes into the settings of the classes that they name; exit code 1 when one is wrong."""
    report = validate_recipes(names or ())
    if json:
        print_json(report)
    else:
        for check in report.checks:
            say(f"{'ok  ' if check.valid else 'fail'} {check.recipe}{': ' if check.problem else ''}{check.problem}")
    if report.num_invalid:
        raise typer.Exit(FAILED)


def toml_text(table: dict[str, Any], path: str = "") -> str:
    """A table of plain values as TOML, so that what ``recipes show`` prints is a recipe again."""
    values = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"[{path}]"] if path and (values or not table) else []
    lines += [f"{key} = {_toml_value(value)}" for key, value in values.items()]
    blocks = ["\n".join(lines)] if lines else []
    for key, value in table.items():
        if isinstance(value, dict):
            blocks.append(toml_text(value, f"{path}.{key}" if path else key))
    return "\n\n".join(blocks)


def _toml_value(value: object) -> str:
    """JSON and TOML agree on plain values, except that TOML wants DEL escaped."""
    return json_module.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
