"""The subcommands recipes list, show and validate."""

from __future__ import annotations

import json as json_module
from typing import Annotated

import typer

from sememekit.cli.options import Debug, Json, complete_recipe, example
from sememekit.cli.program import FAILED
from sememekit.cli.render import print_json, print_table, say, toml_text

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A shipped recipe, a .toml file, or a row of it, FILE.toml:ROW.",
        autocompletion=complete_recipe,
        show_default=False,
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...",
        help="Recipes to check, .toml files with all their rows; all that ship unless given.",
        autocompletion=complete_recipe,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    group = typer.Typer(help="List, show and validate the recipes.", epilog=example("sememekit recipes list"))
    group.command("list", epilog=example("sememekit recipes list"))(list_all)
    group.command("show", epilog=example("sememekit recipes show ours/pd-softmax"))(show)
    group.command("validate", epilog=example("sememekit recipes validate", "sememekit recipes validate mine.toml"))(validate)
    app.add_typer(group, name="recipes")


def list_all(json: Json = False, debug: Debug = False) -> None:
    """All recipes, with the number that each is after."""
    from sememekit.config import list_recipes

    recipes = list_recipes()
    if json:
        say(json_module.dumps({"recipes": [recipe.model_dump(mode="json") for recipe in recipes]}, ensure_ascii=False))
        return
    rows = [
        (
            recipe.name,
            recipe.summary,
            f"{recipe.claim.metric} {recipe.claim.value:g} ± {recipe.claim.tolerance:g}" if recipe.claim else "",
        )
        for recipe in recipes
    ]
    print_table("", ("recipe", "what it is", "claim"), rows, numeric=3)


def show(name: Name, json: Json = False, debug: Debug = False) -> None:
    """A recipe as it is after merging it over its bases."""
    from sememekit.config import load_recipe

    table = load_recipe(name)
    say(json_module.dumps(table, ensure_ascii=False) if json else toml_text(table))


def validate(names: Names = None, json: Json = False, debug: Debug = False) -> None:
    """Read recipes into the settings of the classes that they name; exit code 1 when one is wrong."""
    from sememekit.commands.recipes import validate_recipes

    report = validate_recipes(names or ())
    if json:
        print_json(report)
    else:
        for check in report.checks:
            say(f"{'ok  ' if check.valid else 'fail'} {check.recipe}{': ' if check.problem else ''}{check.problem}")
    if report.num_invalid:
        raise typer.Exit(FAILED)
