"""The subcommands of ``sememekit recipes``: list, show and validate recipes, without building a model."""

import json as json_module
from typing import Annotated

import typer

from sememekit.claims.claims import load_claims
from sememekit.commands._completion import complete_recipe
from sememekit.commands._options import Json, Word, argument, example, has_word
from sememekit.commands._printing import print_json, print_table, say
from sememekit.config import list_recipes, load_recipe
from sememekit.errors import ConfigError
from sememekit.files import typed
from sememekit.signals import FAILED

Name = Annotated[str, argument("NAME", "A recipe, a .toml file, or its row FILE.toml:ROW.", autocompletion=complete_recipe)]
Names = Annotated[
    list[str] | None, argument("[NAME]...", "Recipes, .toml files with rows. Default: all.", autocompletion=complete_recipe)
]

command = typer.Typer(help="List, show and validate the recipes.", epilog=example("sememekit recipes list"))


@command.command("list", epilog=example("sememekit recipes list", "sememekit recipes list small"))
def list_all(word: Word = None, json: Json = False) -> None:
    """List all recipes, their cost and the number that each should reproduce; with a WORD those that have it.

    docs/results/tables.md leads from each table of a paper to its recipes, its claims and its results."""
    found, claims = list_recipes(), load_claims()
    recipes = [one for one in found if has_word(word, one.name, one.summary, one.claim.place if one.claim else "")]
    named = sum(has_word(word, name, claim.statement, claim.source, file.paper) for name, (file, claim) in claims.items())
    also = f"{named} claims have {word!r}, too: {typed('sememekit', 'reproduce', 'list', word or '')}" if word and named else ""
    if not recipes:
        everything = also or f"'sememekit recipes list' shows all {len(found)}"
        raise ConfigError(f"no recipe has {word!r} in its name, summary or table; {everything}")
    if json:
        say(json_module.dumps({"recipes": [recipe.model_dump(mode="json") for recipe in recipes]}, ensure_ascii=False))
        return
    values = [f"{one.claim.metric} {one.claim.value:g} ± {one.claim.tolerance:g}" if one.claim else "" for one in recipes]
    rows = [(one.name, one.summary, str(one.cost or ""), value) for one, value in zip(recipes, values, strict=True)]
    print_table("", ("recipe", "what it is", "cost", "claim"), rows, numeric=4, names=True)
    say("Costs are computed where they are not measured: docs/reproducing.md#costs")
    if also:
        say(f"{also} (a table may be measured with recipes of another one; docs/results/tables.md has both)")


@command.command("show", epilog=example("sememekit recipes show ours/pd-softmax"))
def show(name: Name, json: Json = False) -> None:
    """Print a recipe merged over its bases."""
    from sememekit.jobs.recipes import toml_text

    table = load_recipe(name)
    say(json_module.dumps(table, ensure_ascii=False) if json else toml_text(table))


@command.command("validate", epilog=example("sememekit recipes validate", "sememekit recipes validate mine.toml"))
def validate(names: Names = None, json: Json = False) -> None:
    """Check recipes against the settings of their classes; exit code 1 if one is wrong."""
    from sememekit.jobs.recipes import validate_recipes

    report = validate_recipes(names or ())
    if json:
        print_json(report)
    else:
        for check in report.checks:
            say(f"{'ok  ' if check.valid else 'fail'} {check.recipe}{': ' if check.problem else ''}{check.problem}")
    if report.num_invalid:
        raise typer.Exit(FAILED)
