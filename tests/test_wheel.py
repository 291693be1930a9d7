"""The wheel holds the package, the recipes, the open lexicon and the licence, and nothing of tests or runs."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_module_and_every_resource_is_in_the_wheel(names: set[str]) -> None:
    package = ROOT / "sememekit"
    modules = {path.relative_to(ROOT).as_posix() for kind in ("*.py", "*.html.j2") for path in package.rglob(kind)}
    assert "sememekit/reports/templates/layout.html.j2" in modules
    resources = {f"sememekit/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "resources").rglob("*") if path.is_file()}
    assert any(name.startswith("sememekit/resources/recipes/") for name in resources)
    assert modules | resources <= names


def test_every_page_of_the_documentation_and_the_tested_versions_are_in_the_wheel(names: set[str]) -> None:
    pages = {f"sememekit/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "docs").rglob("*") if path.is_file()}
    results = {page for page in pages if page.startswith("sememekit/docs/results/")}
    assert {"sememekit/docs/index.md", "sememekit/docs/pictures/explain.png"} <= pages
    assert (pages - results) | {"sememekit/constraints.txt"} <= names
    assert results
    assert not results & names, "figures stay in the repository"


def test_the_description_has_no_link_that_is_dead_on_a_package_index(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    assert "Description-Content-Type: text/markdown" in metadata
    assert "[data](docs/data.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "data (`docs/data.md`)" in metadata
    assert not re.search(r"\]\((?!https?:)", metadata)


def test_nothing_else_is_in_the_wheel(names: set[str]) -> None:
    others = {name for name in names if not name.startswith("sememekit/")}
    assert all(".dist-info/" in name for name in others), others
    assert any(name.endswith("licenses/LICENSE") for name in others)
    assert not any(name.endswith((".pyc", ".safetensors")) for name in names)
