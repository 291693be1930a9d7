"""The README is short, names every command, and the links of all pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sememekit

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = (
    "README.md",
    "README.zh.md",
    "CONTRIBUTING.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
)
FLAGS = ROOT / "tests" / "commands" / "flags.txt"


def test_the_readme_is_short_and_names_every_command() -> None:
    assert len(README.splitlines()) <= 120
    table = re.findall(r"^\| .* \| (.*) \| .*\|$", README, re.MULTILINE)
    named = {name for cell in table for name in re.findall(r"`([a-z-]+)`", cell)}
    commands = {line.split()[1] for line in FLAGS.read_text(encoding="utf-8").splitlines()}
    assert named == commands


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.exists(), f"{page}: {target}"
        if anchor:
            heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}, f"{page}: {target}"


def test_the_index_names_every_page() -> None:
    linked = set(re.findall(r"\]\(((?:tutorials/|papers/)?[a-z-]+\.md)\)", (ROOT / "docs" / "index.md").read_text("utf-8")))
    pages = [path for folder in ("", "tutorials", "papers") for path in (ROOT / "docs" / folder).glob("*.md")]
    assert linked == {path.relative_to(ROOT / "docs").as_posix() for path in pages} - {"index.md"}


@pytest.mark.parametrize("page", [page for page in PAGES if "results" not in page])
def test_lines_fit_a_window(page: str) -> None:
    """Rows of tables and addresses cannot be broken; records of runs stay as they were."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    long = [line for line in lines if len(line) > 130 and not line.startswith("|") and "](" not in line]
    assert not long, f"{page}: {long}"


def test_the_python_page_names_what_the_package_exports() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert [name for name in sememekit.__all__ if f"`{name}`" not in page] == []
