"""Recipes: what a training or an attack is, row by row of a paper's table, each merged over its base.

A recipe is plain data. It is merged and checked for its shape here, without torch; ``sememekit.runs.build`` reads the merged
table into the settings of the classes that it names. Files and rows: ``recipe_files``; the rules of merging: ``tables``.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from sememekit.config.recipe_files import Place, Shelf
from sememekit.config.resources import resources_folder
from sememekit.config.settings import Settings, read_settings
from sememekit.config.tables import Table, merge_tables
from sememekit.errors import ConfigError


class Claim(Settings):
    """The published number that a recipe is after."""

    paper: str
    """Who and when: "Gu et al. 2018"."""
    table: str
    """The table of the paper: "Table 1"."""
    row: str
    """The row of that table, as it is printed there."""
    metric: str
    """What is measured: "test perplexity"."""
    value: float
    """The printed number."""
    tolerance: float = 0.0
    """How far from ``value`` a measured number may lie and still count as reproduced, in the unit of the metric."""
    note: str = ""
    """Whatever a reader must know to compare fairly."""


class RecipeInfo(BaseModel):
    """What ``recipes list`` shows of one recipe."""

    model_config = ConfigDict(frozen=True)

    name: str
    """``paper/row``: what ``--recipe`` takes."""
    path: Path
    """The file that holds it."""
    row: str
    """The row of that file, ``[row.NAME]``; empty for what stands at its top."""
    summary: str
    """The first comment line of the file, or of those directly above the row."""
    claim: Claim | None


def recipes_folder() -> Path:
    """Where the recipes lie that ship with sememekit."""
    return resources_folder() / "recipes"


def recipe_names(folder: Path | None = None) -> list[str]:
    """Names of the shipped recipes, sorted: of files and of the rows in them."""
    return Shelf(folder or recipes_folder()).names()


def names_in(name: str) -> list[str]:
    """The recipes that a name stands for: a ``.toml`` file of the user's own with all its rows, any other name alone. Raises
    ConfigError when the file is not there or cannot be read."""
    if not name.endswith(".toml"):
        return [name]
    file = Shelf(recipes_folder()).find(name).file
    return [name, *(f"{name}:{row}" for row in file.rows)]


def list_recipes(folder: Path | None = None) -> list[RecipeInfo]:
    """Every shipped recipe, sorted by name. Raises ConfigError when one of them is not a recipe, or two have one name; the
    message names the file and the key."""
    shelf = Shelf(folder or recipes_folder())
    names = shelf.names()
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ConfigError(f"{shelf.folder}: two recipes are called {twice[0]!r}; rename the file or the row [row.NAME]")
    return [_describe(shelf.find(name), shelf) for name in names]


def load_recipe(name: str, folder: Path | None = None) -> Table:
    """The plain table of a recipe, merged over its bases.

    Args:
        name: ``paper/row`` of a shipped recipe, the path of a ``.toml`` file, or ``FILE.toml:ROW`` for a row of it.
        folder: where ``paper/row`` is looked up; the shipped recipes unless given.

    Raises:
        ConfigError: for an unknown name, a file that is not TOML, an unknown table, or bases that go in a circle.
    """
    shelf = Shelf(folder or recipes_folder())
    return _merged(shelf.find(name), shelf)


def _chain(place: Place, shelf: Shelf) -> list[Place]:
    """A recipe, its base, the base of that, and so on to the one without."""
    chain = [place]
    while (base := shelf.base_of(chain[-1])) is not None:
        if base.key in {link.key for link in chain}:
            names = " -> ".join(link.name for link in [*chain, base])
            raise ConfigError(f"{place.where}: bases go in a circle: {names}; let one of them have no base")
        chain.append(base)
    return chain


def _merged(place: Place, shelf: Shelf) -> Table:
    merged: Table = {}
    for link in reversed(_chain(place, shelf)):
        table = link.table()
        table.pop("base", None)
        merged = merge_tables(merged, table)
    if "claim" in merged:
        read_settings(Claim, merged["claim"], f"{place.where}: [claim]")
    return merged


def _describe(place: Place, shelf: Shelf) -> RecipeInfo:
    table = _merged(place, shelf)
    claim = Claim(**table["claim"]) if "claim" in table else None
    return RecipeInfo(name=place.name, path=place.file.path, row=place.row, summary=place.summary, claim=claim)
