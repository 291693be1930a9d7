"""``__all__`` of every package is complete and importable; ruff keeps it sorted."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "sememekit"


def packages() -> list[str]:
    found = (path.parent.relative_to(PACKAGE.parent).as_posix().replace("/", ".") for path in PACKAGE.rglob("__init__.py"))
    return sorted(found)


def public_names(path: Path) -> set[str]:
    """Names without an underscore that the file itself defines."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign():
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("name", packages())
def test_the_public_names_of_a_package(name: str) -> None:
    module = import_module(name)
    path = PACKAGE.parent / name.replace(".", "/") / "__init__.py"
    offered = list(getattr(module, "__all__", []))
    assert len(set(offered)) == len(offered)
    assert [item for item in offered if item not in vars(module)] == []
    assert public_names(path) <= set(offered), "say what is public, or begin its name with an underscore"
