"""A room imports only from rooms with a lower number, not even inside a function; in a room no two files import each other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "sememekit"

ROOMS = {
    "errors": 0,
    "files": 0,
    "progress": 0,
    "figures": 0,
    "signals": 0,
    "config": 1,
    "engines": 2,
    "text": 2,
    "sememes": 3,
    "ranks": 3,
    "data": 4,
    "word_classes": 4,
    "layers": 4,
    "measure": 4,
    "search": 4,
    "corpora": 5,
    "encoders": 5,
    "decoders": 5,
    "claims": 5,
    "nn": 6,
    "prepare": 6,
    "tasks": 6,
    "training": 7,
    "attack": 7,
    "protocols": 7,
    "runs": 8,
    "analysis": 9,
    "reports": 10,
    "jobs": 11,
    "notebook": 11,
    "serve": 12,
    "commands": 13,
}
"""The table of docs/architecture.md, section "The rooms"."""

WITHOUT_TORCH = {room for room, floor in ROOMS.items() if floor <= 3 and room != "ranks"} | {
    *("data", "corpora", "prepare", "word_classes", "claims"),
}
"""Rooms that read and write data alone."""

ROOTS = {"__init__", "__main__"}
"""Files of the package itself: the version, and ``python -m sememekit``, which may import the commands alone."""


def imported_modules(path: Path, module: str) -> Iterator[tuple[int, str]]:
    """(line, dotted module) of every import of the file, wherever it stands, with relative imports made absolute."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = module.split(".")[: -node.level] if node.level else []
            if node.level and path.name == "__init__.py":
                start = module.split(".")[: len(module.split(".")) - node.level + 1]
            origin = ".".join([*start, *([node.module] if node.module else [])])
            # "from sememekit.tasks import base" names a module as well as "from sememekit.tasks.base import Task" does.
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and _is_import_call(node) and isinstance(node.args[0], ast.Constant):
            yield node.lineno, str(node.args[0].value)


def _is_import_call(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in {"import_module", "__import__"} and bool(node.args)


def breaches(package: Path) -> list[str]:
    """Every import of the package that its rooms do not allow, as "file:line: reason"."""
    found = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        module = ".".join([package.name, *(part for part in parts if part != "__init__")])
        room = parts[0]
        if room not in ROOMS and room not in ROOTS:
            found.append(f"{path.relative_to(package)}: no room is called {room!r}")
            continue
        for line, target in imported_modules(path, module):
            names = target.split(".")
            if names[0] == package.name and len(names) > 1:
                reason = _refusal(room, parts, names[1:])
                if reason:
                    found.append(f"{path.relative_to(package)}:{line}: {reason}")
            elif names[0] == "torch" and room in WITHOUT_TORCH:
                found.append(f"{path.relative_to(package)}:{line}: room {room!r} must not import torch")
    return found


def _refusal(room: str, parts: tuple[str, ...], target: list[str]) -> str:
    """Return the reason why a file of ``room`` may not import ``target``, or an empty string."""
    other = target[0]
    if other not in ROOMS:
        return ""  # the package itself: its version
    if room in ROOTS:
        return "" if (room, other) == ("__main__", "commands") else f"{room} imports {other}"
    if other == room or other == "errors":
        return ""
    if ROOMS[other] >= ROOMS[room]:
        return f"room {ROOMS[room]} ({room}) imports room {ROOMS[other]} ({other})"
    blind = room in {"training", "protocols"} and other == "tasks"
    only_base = blind or (room == "tasks" and other in {"encoders", "decoders"})
    if only_base and target[1:2] != ["base"]:
        return f"{room} may import {other}.base alone, not {'.'.join(target)}"
    return ""


def imports_of(package: Path) -> dict[str, set[str]]:
    """file -> the files of the package that it imports, anywhere in it: types alone and inside functions, too.

    A name in a package stands for what its ``__init__`` imports; a package itself is the file ``__init__``.
    """
    files = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).with_suffix("").parts
        files[".".join([package.name, *(part for part in parts if part != "__init__")])] = path
    return {
        module: {
            found for _, target in imported_modules(path, module) if (found := _file_of(target, files)) not in ("", module)
        }
        for module, path in files.items()
    }


def _file_of(target: str, files: dict[str, Path]) -> str:
    """The longest beginning of a dotted name that is a file of the package, or nothing; the root's version is no file."""
    while target and target not in files:
        target = target.rpartition(".")[0]
    return target if "." in target else ""


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Sets of files of which each imports, over others, itself."""
    reached = {module: set(targets) for module, targets in imports.items()}
    for middle in imports:
        for module in imports:
            if middle in reached[module]:
                reached[module] |= reached[middle]
    found = {frozenset(other for other in reached[module] if module in reached[other]) for module in imports}
    return sorted(sorted(circle) for circle in found if len(circle) > 1)


def test_no_file_imports_itself_over_others() -> None:
    assert circles(imports_of(PACKAGE)) == []


def test_the_rooms_of_the_package() -> None:
    assert breaches(PACKAGE) == []


def make_tree(root: Path, files: dict[str, str]) -> Path:
    package = root / "kit"
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return package


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("text/a.py", "import kit.sememes\n"),
        ("text/a.py", "def f():\n    from kit.runs import plan\n"),
        ("decoders/a.py", "from kit.encoders.base import Encoder\n"),
        ("decoders/a.py", "from kit import encoders\n"),
        ("decoders/a.py", "from ..encoders import base\n"),
        ("decoders/__init__.py", "from ..encoders import base\n"),
        ("tasks/a.py", "from kit.decoders.softmax import Softmax\n"),
        ("tasks/a.py", "from kit.decoders import DECODERS\n"),
        ("training/a.py", "from kit.tasks.language_model import LanguageModel\n"),
        ("training/a.py", "import kit.attack\n"),
        ("errors.py", "import kit.config\n"),
        ("reports/a.py", "from kit.commands import train\n"),
        ("reports/a.py", "from importlib import import_module\nimport_module('kit.commands')\n"),
        ("config/a.py", "def f():\n    import torch\n"),
        ("word_classes/a.py", "import torch\n"),
        ("drawer/a.py", ""),
        ("__init__.py", "from kit.runs import plan\n"),
    ],
)
def test_a_wrong_import_is_found(tmp_path: Path, name: str, text: str) -> None:
    assert len(breaches(make_tree(tmp_path, {name: text}))) == 1


@pytest.mark.parametrize(
    "back",
    [
        "from kit.text.a import A\n",
        "from . import a\n",
        "def f():\n    from kit.text import a\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from kit.text.a import A\n",
        "from kit.text import A\n",
    ],
)
def test_a_circle_inside_a_room_is_found(tmp_path: Path, back: str) -> None:
    files = {"text/__init__.py": "from kit.text.a import A\n", "text/a.py": "from kit.text.b import B\n", "text/c.py": ""}
    (found,) = circles(imports_of(make_tree(tmp_path, {**files, "text/b.py": back})))
    assert set(found) - {"kit.text"} == {"kit.text.a", "kit.text.b"}
    assert circles(imports_of(make_tree(tmp_path, {**files, "text/b.py": "from kit.text import c\n"}))) == []


def test_right_imports_pass(tmp_path: Path) -> None:
    files = {
        "__init__.py": "__version__ = '1'\n",
        "__main__.py": "from kit.commands._program import main\n",
        "text/a.py": "import numpy\nfrom kit.errors import DataError\nfrom kit.text import b\nfrom . import c\n",
        "text/b.py": "from kit import __version__\n",
        "tasks/a.py": "from kit.encoders.base import Encoder\nfrom kit.decoders import base\nfrom kit.tasks import b\n",
        "training/a.py": "import torch\nfrom kit.tasks.base import Task\n",
        "runs/build.py": "from kit.tasks.language_model import LanguageModel\nfrom kit.training import trainer\n",
        "commands/a.py": "def f():\n    from kit.reports.page import page\n",
    }
    assert breaches(make_tree(tmp_path, files)) == []


def calls_of_builtins(source: str) -> list[str]:
    """The builtins that a module calls to make code out of strings; methods of the same names are others."""
    made = {"eval", "exec", "compile", "__import__"}
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [func.id for func in calls if isinstance(func, ast.Name) and func.id in made]


def test_no_module_makes_code_out_of_strings() -> None:
    found = {str(path): calls_of_builtins(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    assert len(found) > 300
    assert {name: calls for name, calls in found.items() if calls} == {}
    assert calls_of_builtins("model.eval(); re.compile('a'); exec(eval('1'))") == ["exec", "eval"]


def pickles_read(source: str) -> list[str]:
    """The calls of a module that read pickles, by their usual names, and its own unpicklers."""
    named = re.compile(r"(pickle|marshal|joblib|dill|cloudpickle|shelve|torch|reader)\.(load|loads|open)|pickle\.Unpickler")
    nodes = list(ast.walk(ast.parse(source)))
    calls = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
    bases = [ast.unparse(base) for node in nodes if isinstance(node, ast.ClassDef) for base in node.bases]
    return [name for name in (*calls, *bases) if named.fullmatch(name)]


def test_a_pickle_is_read_where_the_architecture_says_so_alone() -> None:
    found = {str(path.relative_to(PACKAGE)): pickles_read(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    assert {name: calls for name, calls in found.items() if calls} == {
        "prepare/shards.py": ["pickle.loads"],  # a job that the same command made
        "runs/attacks/adapters.py": ["reader.load"],  # with --trust-code
        "sememes/formats/restricted_pickle.py": ["pickle.Unpickler"],  # it looks up no name
    }
    assert pickles_read("import pickle; pickle.loads(b''); torch.load('x'); json.loads('1')") == ["pickle.loads", "torch.load"]
