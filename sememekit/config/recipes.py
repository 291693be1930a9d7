"""Recipes: settings of a training or an attack as plain tables, each merged over its base.

``sememekit.runs.plan`` reads the merged table into settings of classes. ``tables`` has the rules of merging."""

import re
import tomllib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from pydantic import Field

from sememekit.config.settings import Record, Settings, nearest, read_settings
from sememekit.config.tables import SLOTS, Table, merge_tables
from sememekit.errors import ConfigError
from sememekit.files import read_text

ENDING = ".toml"  # suffix of recipe files; a name with it is a path, ``mine.toml`` or ``mine.toml:ROW``


@dataclass(frozen=True)
class RecipeFile:
    """One file, read: the recipe at its top, and rows ``[row.NAME]``, each of which is merged over another recipe."""

    path: Path
    text: str
    own: Table
    rows: Table


@dataclass(frozen=True)
class Place:
    """The place of one recipe."""

    name: str  # name as typed: ``paper/row``, ``mine.toml`` or ``mine.toml:ROW``
    file: RecipeFile
    row: str = ""  # row of the file; empty for the file's own recipe

    @property
    def where(self) -> str:
        return f"{self.file.path}: [row.{self.row}]" if self.row else str(self.file.path)

    @property
    def key(self) -> tuple[Path, str]:
        return self.file.path.resolve(), self.row

    @property
    def summary(self) -> str:
        """The first comment line of the file, or of those directly above the row."""
        text, head = self.file.text, r"^[ \t]*\[\s*row\s*\."
        if self.row:
            own = re.search(rf"{head}\s*[\"']?{re.escape(self.row)}[\"']?\s*[\].]", text, re.MULTILINE)
            comments = own and re.search(r"(?:^#.*\n)+\Z", text[: own.start()], re.MULTILINE)
        else:
            comments = re.search(r"^#.*", re.split(head, text, maxsplit=1, flags=re.MULTILINE)[0], re.MULTILINE)
        return comments[0].splitlines()[0].lstrip("# ").strip() if comments else ""

    def table(self) -> Table:
        """The tables of this recipe alone, and its ``base``. Raises ConfigError for a table that no recipe has."""
        table = self.file.rows[self.row] if self.row else self.file.own
        for key, value in table.items():
            if key == "base":
                continue
            if key not in (*SLOTS, "cost"):
                allowed = ("base", "cost", *SLOTS) if self.row else ("base", "cost", "row", *SLOTS)
                raise ConfigError(f"{self.where}: unknown table {key!r}{nearest(key, allowed)}; allowed: {', '.join(allowed)}")
            if not isinstance(value, dict):
                raise ConfigError(f"{self.where}: {key!r} must be a table, [{key}], given {value!r}")
        return dict(table)

    def cost(self) -> "Cost | None":
        """The cost of this recipe, which is not inherited."""
        cost = self.table().get("cost")
        return cost and read_settings(Cost, cost, f"{self.where}: [cost]")


class Shelf:
    """The recipes below a folder (default: the shipped ones) and in the user's own files. Each file is read once.

    A file ``paper/table.toml`` is the recipe ``paper/table``; its row ``[row.NAME]`` is the recipe ``paper/NAME``."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or resources_folder() / "recipes"
        self._files: dict[Path, RecipeFile] = {}

    def names(self) -> list[str]:
        """Return every recipe below the folder, sorted; an unreadable file counts as one, which raises the error if opened."""
        names = list(self._named)
        for path in self._named.values():
            with suppress(ConfigError):
                names += [self._name(path, row) for row in self.open(path).rows]
        return sorted(names)

    def find(self, name: str, asked: Place | None = None) -> Place:
        """Find a recipe by name. With ``asked``, the recipe whose base is wanted, the name may also be a row of its file.
        Raises ConfigError for an unknown name, or a name that two files have."""
        where = f"{asked.where}: key 'base': " if asked else ""
        if name.endswith(ENDING) or f"{ENDING}:" in name:
            return self._own(name, where)
        rows = tuple(asked.file.rows) if asked else ()
        if asked and name in rows:
            return self._place(asked.file, name)
        places = self._shipped(name)
        if len(places) > 1:
            given = " and ".join(place.where for place in places)
            raise ConfigError(f"{where}two recipes are called {name!r}: {given}; rename one of them")
        if not places:
            known = self.names()
            raise ConfigError(
                f"{where}unknown recipe {name!r}{nearest(name, [*rows, *known])}; 'sememekit recipes list' shows all "
                f"{len(known)}, and a path ending in .toml takes a recipe of your own"
            )
        return places[0]

    def base_of(self, place: Place) -> Place | None:
        """Return the base of a recipe; without ``base`` a row has the top of its file. ConfigError: ``base`` is no name."""
        name = place.table().get("base")
        if name is None:
            return self._place(place.file) if place.row else None
        if not isinstance(name, str):
            raise ConfigError(f"{place.where}: key 'base' must name a recipe such as \"sdlm/pd-medium\", given {name!r}")
        return self.find(name, place)

    def open(self, path: Path) -> RecipeFile:
        """Read a file, without merging."""
        if path not in self._files:
            self._files[path] = read_file(path)
        return self._files[path]

    def _name(self, path: Path, row: str = "") -> str:
        own = path.relative_to(self.folder).with_suffix("").as_posix()
        return own[: own.rfind("/") + 1] + row if row else own

    def _place(self, file: RecipeFile, row: str = "") -> Place:
        if file.path.is_relative_to(self.folder):
            return Place(self._name(file.path, row), file, row)
        return Place(f"{file.path}:{row}" if row else str(file.path), file, row)

    @cached_property
    def _named(self) -> dict[str, Path]:
        return {self._name(path): path for path in sorted(self.folder.rglob(f"*{ENDING}"))}

    def _shipped(self, name: str) -> list[Place]:
        if name in self._named:
            return [self._place(self.open(self._named[name]))]
        folder, _, row = name.rpartition("/")
        beside = [path for own, path in self._named.items() if row and own.rpartition("/")[0] == folder]
        return [self._place(file, row) for file in map(self.open, beside) if row in file.rows]

    def _own(self, name: str, where: str) -> Place:
        text, colon, row = name.partition(f"{ENDING}:")
        path = Path(text + ENDING if colon else name)
        if not path.is_file():
            raise ConfigError(f"{where}no recipe file {str(path)!r} in {Path.cwd()}")
        file = self.open(path)
        if colon and row not in file.rows:
            has = f"its rows: {', '.join(file.rows)}" if file.rows else "it has none"
            raise ConfigError(f"{where}{path} has no row {row!r}{nearest(row, list(file.rows))}; {has}")
        return self._place(file, row)


_parsed = lru_cache(maxsize=256)(tomllib.loads)  # parsing is most of the cost of a recipe; a result must not be changed


def read_file(path: Path) -> RecipeFile:
    """One file, as TOML with named rows. Raises ConfigError: it cannot be read, is no TOML, or has rows that are no tables."""
    text = read_text(path, ConfigError)
    try:
        own = dict(_parsed(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    except ValueError:
        raise ConfigError(f"{path}: a number of more digits than any setting takes; correct it") from None
    except RecursionError:
        raise ConfigError(f"{path}: values are nested too deeply for a recipe; tables inside tables are enough") from None
    rows = own.pop("row", {})
    if not isinstance(rows, dict):
        raise ConfigError(f"{path}: 'row' must hold tables, [row.NAME], given {rows!r}")
    for row, table in rows.items():
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: rows are tables, [row.NAME]: given {row} = {table!r}")
        if not re.fullmatch(r"[\w-]+", row):
            raise ConfigError(f"{path}: [row.{row!r}]: the name of a row has letters, digits, '-' and '_' only")
    return RecipeFile(path, text, own, rows)


class Claim(Settings):
    """The published number that a recipe is meant to reproduce."""

    paper: str
    """"Gu et al. 2018"."""
    table: str
    """"Table 1"."""
    row: str
    """The row as printed in that table."""
    metric: str
    """"test perplexity"."""
    value: float
    """The printed number."""
    tolerance: float = 0.0
    """Largest difference from ``value`` that counts as reproduced, in the unit of the metric."""
    note: str = ""
    """A caveat for a fair comparison."""

    @property
    def place(self) -> str:
        return f"{self.paper}, Table {self.table.removeprefix('Table ')}"


class Cost(Settings):
    """The cost of a training or an attack by a recipe, for ``recipes list``; see docs/reproducing.md."""

    epochs: int = Field(default=0, ge=0)
    """Epochs of the schedule or, if measured, the mean number of trained epochs; 0 for an attack."""
    cpu_hours: float = Field(gt=0.0)
    """Hours on two cores or, if measured, on one core."""
    gpu_hours: float | None = Field(default=None, gt=0.0)
    """Estimated hours on a GPU; None if a CPU suffices."""
    measured: bool = False
    """True if the hours on a CPU were measured; otherwise they are estimates."""
    unit: str = ""
    """Unit of the hours, such as 1,000 texts (default: one training)."""

    def __str__(self) -> str:
        hours = [(self.cpu_hours, "CPU"), (self.gpu_hours, "GPU")]
        shown = [f"{one:,g} h {of}" if one >= 1 else f"{max(60 * one, 1):.0f} min {of}" for one, of in hours if one]
        epochs = f"{self.epochs} epoch{'s' * (self.epochs != 1)}: " if self.epochs else ""
        return f"{epochs}{', '.join(shown)}{self.unit and ' per ' + self.unit}{', measured' if self.measured else ''}"


class RecipeInfo(Record):
    """The row of one recipe in ``recipes list``."""

    name: str
    """``paper/row``: what ``--recipe`` takes."""
    path: Path
    row: str
    """``[row.NAME]`` of that file; empty for the recipe at its top."""
    summary: str
    """The first comment line of the file, or of those directly above the row."""
    claim: Claim | None
    cost: Cost | None


def resources_folder() -> Path:
    """The folder ``resources``: in the installed package, or at the top of a source tree. Raises ConfigError: it is missing."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "resources", package.parent / "resources"):
        if (folder / "recipes").is_dir():
            return folder
    raise ConfigError(f"the folder 'resources' is missing beside {package}; install sememekit again")


def recipe_names(folder: Path | None = None) -> list[str]:
    """Names of the shipped recipes, sorted: of files and of the rows in them."""
    return Shelf(folder).names()


def names_in(name: str) -> list[str]:
    """Return the recipes of a name: all rows of a user's ``.toml`` file, or the name itself. ConfigError: no such file."""
    if not name.endswith(".toml"):
        return [name]
    return [name, *(f"{name}:{row}" for row in Shelf().find(name).file.rows)]


def list_recipes(folder: Path | None = None) -> list[RecipeInfo]:
    """Every shipped recipe, sorted by name. Raises ConfigError for an invalid recipe, or two recipes of one name."""
    shelf = Shelf(folder)
    names = shelf.names()
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ConfigError(f"{shelf.folder}: two recipes are called {twice[0]!r}; rename the file or the row [row.NAME]")
    found = []
    for place in map(shelf.find, names):
        table = _merged(place, shelf)
        claim = Claim(**table["claim"]) if "claim" in table else None
        own = {"name": place.name, "path": place.file.path, "row": place.row, "summary": place.summary}
        found.append(RecipeInfo(**own, claim=claim, cost=place.cost()))
    return found


def load_recipe(name: str, folder: Path | None = None) -> Table:
    """The plain table of a recipe, merged over its bases: ``paper/row`` of a shipped recipe, a ``.toml`` file, or
    ``FILE.toml:ROW``. Raises ConfigError for an unknown name or table, a file that is not TOML, or circular bases."""
    shelf = Shelf(folder)
    return _merged(shelf.find(name), shelf)


def _merged(place: Place, shelf: Shelf) -> Table:
    chain = [place]
    while (base := shelf.base_of(chain[-1])) is not None:
        if base.key in {link.key for link in chain}:
            names = " -> ".join(link.name for link in [*chain, base])
            raise ConfigError(f"{place.where}: bases form a circle: {names}; let one of them have no base")
        chain.append(base)
    merged: Table = {}
    place.cost()
    for link in reversed(chain):
        merged = merge_tables(merged, {slot: keys for slot, keys in link.table().items() if slot not in ("base", "cost")})
    if "claim" in merged:
        read_settings(Claim, merged["claim"], f"{place.where}: [claim]")
    return merged
