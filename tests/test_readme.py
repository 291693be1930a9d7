"""The script of docs/training.md runs as printed; the README is short, names every command, and its links lead somewhere."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sememekit

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TRAINING = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
PAGES = (
    "README.md",
    "README.zh.md",
    "CONTRIBUTING.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
)
FLAGS = ROOT / "tests" / "commands" / "flags.txt"


def chain() -> str:
    found = re.search(r"<!-- chain:.*?-->\n```sh\n(.*?)```", TRAINING, re.DOTALL)
    assert found, "docs/training.md has lost its script"
    return found[1]


def small_text() -> str:
    """Made-up news, so regular that a small model learns something from it."""
    generator = random.Random(1)
    groups = (
        ["记者", "工人", "农民", "学生", "老师"],
        ["买", "卖", "吃", "看", "喜欢"],
        ["苹果", "水果", "电影", "报纸", "米"],
        ["北京", "上海", "中国", "美国"],
    )
    lines = []
    for _ in range(500):
        person, verb, thing, place = (generator.choice(group) for group in groups)
        lines.append(f"{place} 的 {person} 今天 {verb} {thing} 。")
    return "\n".join(lines) + "\n"


def test_the_chain_runs_as_printed(tmp_path: Path) -> None:
    (tmp_path / "chain.sh").write_text(chain(), encoding="utf-8")
    (tmp_path / "news.txt").write_text(small_text(), encoding="utf-8")
    environment = {
        **os.environ,
        "SIZE": "16",
        "EPOCHS": "2",
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "chain.sh", "news.txt", "北京 的 记者 今天"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    perplexities = dict(line.split("\t") for line in done.stdout.splitlines() if line.startswith(("softmax\t", "sdlm\t")))
    assert set(perplexities) == {"softmax", "sdlm"}
    assert all(1.0 < float(value) < 30.0 for value in perplexities.values()), perplexities
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert "北京" in page


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


def test_the_chinese_readme_has_lines_that_a_test_runs() -> None:
    chinese = (ROOT / "README.zh.md").read_text(encoding="utf-8")
    run = "".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES if page != "README.zh.md")
    lines = [line for block in re.findall(r"```(?:sh|python)\n(.*?)```", chinese, re.DOTALL) for line in block.splitlines()]
    assert len(lines) > 8
    assert not [line for line in lines if line.partition("  #")[0] not in run]


@pytest.mark.parametrize("page", [page for page in PAGES if "results" not in page])
def test_lines_fit_a_window(page: str) -> None:
    """Rows of tables and addresses cannot be broken; records of runs stay as they were."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    long = [line for line in lines if len(line) > 130 and not line.startswith("|") and "](" not in line]
    assert not long, f"{page}: {long}"


def test_the_python_page_names_what_the_package_exports() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert [name for name in sememekit.__all__ if f"`{name}`" not in page] == []
