"""Recipes: the settings of a training or an attack, each merged over its base; plain data, without torch.

``sememekit.runs.build`` reads the merged table into the settings of the classes that it names. Files and rows:
``recipe_files``; rules of merging: ``tables``.
"""

from collections import Counter
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from sememekit.config.recipe_files import Place, Shelf
from sememekit.config.settings import Settings, read_settings
from sememekit.config.tables import Table, merge_tables
from sememekit.errors import ConfigError


class Claim(Settings):
    """The published number that a recipe is meant to reproduce."""

    paper: str
    """"Gu et al. 2018"."""
    table: str
    """"Table 1"."""
    row: str
    """As printed in that table."""
    metric: str
    """"test perplexity"."""
    value: float
    """The number that is printed there."""
    tolerance: float = 0.0
    """Largest difference from ``value`` that counts as reproduced, in the unit of the metric."""
    note: str = ""
    """What a reader must know for a fair comparison."""


class RecipeInfo(BaseModel):
    """What ``recipes list`` shows of one recipe."""

    model_config = ConfigDict(frozen=True)

    name: str
    """``paper/row``: what ``--recipe`` takes."""
    path: Path
    row: str
    """``[row.NAME]`` of that file; empty for the recipe at its top."""
    summary: str
    """The first comment line of the file, or of those directly above the row."""
    claim: Claim | None


def resources_folder() -> Path:
    """The folder ``resources``: inside the installed package, or at the top of a source tree. Raises ConfigError where it is
    missing."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "resources", package.parent / "resources"):
        if (folder / "recipes").is_dir():
            return folder
    raise ConfigError(f"the folder 'resources' is missing beside {package}; install sememekit again")


def recipes_folder() -> Path:
    """Where the shipped recipes lie."""
    return resources_folder() / "recipes"


def recipe_names(folder: Path | None = None) -> list[str]:
    """Names of the shipped recipes, sorted: of files and of the rows in them."""
    return Shelf(folder or recipes_folder()).names()


def names_in(name: str) -> list[str]:
    """The recipes behind a name: a ``.toml`` file of the user's own with all its rows, any other name alone. Raises ConfigError
    for a file that is absent or cannot be read."""
    if not name.endswith(".toml"):
        return [name]
    file = Shelf(recipes_folder()).find(name).file
    return [name, *(f"{name}:{row}" for row in file.rows)]


def list_recipes(folder: Path | None = None) -> list[RecipeInfo]:
    """Every shipped recipe, sorted by name. Raises ConfigError for one that is no recipe, or two of one name."""
    shelf = Shelf(folder or recipes_folder())
    names = shelf.names()
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ConfigError(f"{shelf.folder}: two recipes are called {twice[0]!r}; rename the file or the row [row.NAME]")
    found = []
    for place in map(shelf.find, names):
        table = _merged(place, shelf)
        claim = Claim(**table["claim"]) if "claim" in table else None
        found.append(RecipeInfo(name=place.name, path=place.file.path, row=place.row, summary=place.summary, claim=claim))
    return found


def load_recipe(name: str, folder: Path | None = None) -> Table:
    """The plain table of a recipe, merged over its bases: ``paper/row`` of a shipped recipe, a ``.toml`` file, or
    ``FILE.toml:ROW``. Raises ConfigError for an unknown name, a file that is not TOML, an unknown table, or bases that go in a
    circle."""
    shelf = Shelf(folder or recipes_folder())
    return _merged(shelf.find(name), shelf)


def _merged(place: Place, shelf: Shelf) -> Table:
    chain = [place]
    while (base := shelf.base_of(chain[-1])) is not None:
        if base.key in {link.key for link in chain}:
            names = " -> ".join(link.name for link in [*chain, base])
            raise ConfigError(f"{place.where}: bases go in a circle: {names}; let one of them have no base")
        chain.append(base)
    merged: Table = {}
    for link in reversed(chain):
        table = link.table()
        table.pop("base", None)
        merged = merge_tables(merged, table)
    if "claim" in merged:
        read_settings(Claim, merged["claim"], f"{place.where}: [claim]")
    return merged
