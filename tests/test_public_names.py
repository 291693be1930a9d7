"""``__all__`` of every package that has one is complete and importable; ruff keeps it sorted."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import sememekit

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
    assert [item for item in offered if not hasattr(module, item)] == []
    assert not offered or public_names(path) <= set(offered), "say what is public, or begin its name with an underscore"


def test_the_package_offers_its_parts_when_they_are_asked_for() -> None:
    code = (
        "import os, sys; before = dict(os.environ); import sememekit; assert dict(os.environ) == before; "
        "assert not {'torch', 'numpy', 'pydantic'} & set(sys.modules); from sememekit import SDLM, Run; "
        "print(SDLM.__module__, Run.__module__, sorted(set(dir(sememekit)) - set(sememekit.__all__)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert found.stdout == "sememekit.decoders.sdlm sememekit.notebook.run ['__version__']\n"
    with pytest.raises(AttributeError, match=r"no attribute 'SLDM'; public names: .*SDLM"):
        sememekit.SLDM  # noqa: B018


def test_a_run_is_opened_without_the_modules_of_attacks() -> None:
    code = (
        "import sys, sememekit; sememekit.load_run; assert 'sememekit.notebook.attacks' not in sys.modules; "
        "from sememekit.notebook import attack_classifier; assert attack_classifier is sememekit.attack_classifier"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match=r"no attribute 'attack'; public names: AttackResult, Run"):
        import_module("sememekit.notebook").attack  # noqa: B018


def test_type_checkers_are_told_the_same_names() -> None:
    told = {}
    for node in ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            told |= {alias.asname: f"{node.module}.{alias.name}" for alias in node.names}
    assert set(told) == set(sememekit.__all__)
    for name, place in told.items():
        module, _, item = place.rpartition(".")
        assert getattr(import_module(module), item) is getattr(sememekit, name)
