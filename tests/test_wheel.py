"""The wheel holds the package, the recipes, the open lexicon and the licence, and nothing of tests or runs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_module_and_every_resource_is_in_the_wheel(names: set[str]) -> None:
    package = ROOT / "sememekit"
    modules = {path.relative_to(ROOT).as_posix() for kind in ("*.py", "*.html.j2") for path in package.rglob(kind)}
    assert "sememekit/reports/templates/layout.html.j2" in modules
    resources = {f"sememekit/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "resources").rglob("*") if path.is_file()}
    assert any(name.startswith("sememekit/resources/recipes/") for name in resources)
    assert modules | resources <= names


def test_nothing_else_is_in_the_wheel(names: set[str]) -> None:
    others = {name for name in names if not name.startswith("sememekit/")}
    assert all(".dist-info/" in name for name in others), others
    assert any(name.endswith("licenses/LICENSE") for name in others)
    assert not any(name.endswith((".pyc", ".safetensors")) for name in names)
