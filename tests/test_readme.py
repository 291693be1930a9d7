"""The README's script runs as printed, and its commands exist as it spells them."""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FLAGS = ROOT / "tests" / "cli" / "flags.txt"


def chain() -> str:
    found = re.search(r"<!-- chain:.*?-->\n```sh\n(.*?)```", README, re.DOTALL)
    assert found, "the README has lost its script"
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
    for _ in range(2000):
        person, verb, thing, place = (generator.choice(group) for group in groups)
        lines.append(f"{place} 的 {person} 今天 {verb} {thing} 。")
    return "\n".join(lines) + "\n"


def test_the_chain_runs_as_printed(tmp_path: Path) -> None:
    (tmp_path / "chain.sh").write_text(chain(), encoding="utf-8")
    (tmp_path / "news.txt").write_text(small_text(), encoding="utf-8")
    environment = {
        **os.environ,
        "SIZE": "32",
        "EPOCHS": "6",
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


def commands() -> list[str]:
    lines = [line.split("  #")[0].split(" #")[0].strip() for line in README.splitlines() if line.startswith("sememekit ")]
    assert len(lines) > 12
    return lines


@pytest.mark.parametrize("line", commands())
def test_each_command_of_the_readme_exists_with_these_flags(line: str) -> None:
    words = shlex.split(line.split("<")[0].split(">")[0])
    known = [entry.split() for entry in FLAGS.read_text(encoding="utf-8").splitlines()]
    matches = [entry for entry in known if words[: len(entry_name(entry))] == entry_name(entry)]
    assert matches, f"no such command: {line}"
    flags = [word.split("=")[0] for word in words if word.startswith("--")]
    assert set(flags) <= set(matches[0]), f"unknown flag in: {line}"


def entry_name(entry: list[str]) -> list[str]:
    """The words of a pinned command before its arguments and flags: "sememekit recipes list"."""
    return [word for word in entry if word.isascii() and word.replace("-", "").islower() and not word.startswith("-")]
