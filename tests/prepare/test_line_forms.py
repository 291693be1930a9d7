"""Columns, tags, trees and numbers that are read as words are reported, with a command that takes the text out."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.prepare.segmentation import LONGEST, form_of_lines

TEXT = [f"the dog {number % 7} saw a cat in town {number % 5} ." for number in range(60)]
RAW = [f"今天老师看报纸第{number}次" for number in range(60)]


def tokens(line: str, row: str) -> str:
    words = line.split()
    return "".join(row.format(number, word, "NN" if number % 2 else "O") + "\n" for number, word in enumerate(words, 1))


FORMS: dict[str, tuple[str, str, Callable[[int, str], str]]] = {
    "columns": ("text.txt", "2 columns with TAB between", lambda number, line: f"{number}\t{line}"),
    "conll": ("text.txt", "a token a line", lambda number, line: tokens(line, "{0}\t{1}\t_\t{2}")),
    "ner": ("text.txt", "are a token and its tag", lambda number, line: tokens(line, "{1} {2}")),
    "tags": ("text.txt", "a tag behind '_'", lambda number, line: " ".join(f"{word}_NN" for word in line.split())),
    "slashes": ("text.txt", "a tag behind '/'", lambda number, line: " ".join(f"{word}/n" for word in line.split())),
    "trees": ("text.txt", "trees in brackets", lambda number, line: f"( (S {' '.join(f'(NN {w})' for w in line.split())} ) )"),
    "numbers": ("text.txt", "begin with their number", lambda number, line: f"{number} {line}"),
    "csv": ("it's.csv", "which begins with 'id,review'", lambda number, line: f'{number},"{line}"'),
}


def told(path: Path, out: Path) -> str:
    done = CliRunner().invoke(app, ["preprocess", "plain", str(path), "--segmenter", "none", "--out", str(out), "--force"])
    assert done.exit_code == 0, done.stderr
    return next((line for line in done.stderr.splitlines() if "is taken out by: " in line), "")


@pytest.mark.parametrize("form", FORMS)
def test_the_command_in_the_remark_gives_the_text(tmp_path: Path, form: str) -> None:
    name, what, line = FORMS[form]
    path, text = tmp_path / name, tmp_path / "text alone"
    head = "id,review\n" if name.endswith(".csv") else ""
    path.write_text(head + "\n".join(line(number, one) for number, one in enumerate(TEXT, 1)) + "\n", encoding="utf-8")
    remark = told(path, tmp_path / "out")
    assert what in remark
    command = remark.partition("is taken out by: ")[2].replace("TEXT", shlex.quote(str(text)))
    assert subprocess.run(["sh", "-c", command], capture_output=True).returncode == 0
    found = [" ".join(one.split()) for one in text.read_text(encoding="utf-8").splitlines() if one.strip()]
    assert found == TEXT
    assert told(text, tmp_path / "out") == ""


@pytest.mark.parametrize("text", [TEXT, RAW, [f"(a) see {n} (b)" for n in range(60)], [f"{n % 9} {n}" for n in range(60)]])
def test_running_text_is_none_of_them(text: list[str]) -> None:
    assert form_of_lines(text, "text.txt") == ""


def test_few_lines_and_long_ones_do_no_harm() -> None:
    assert form_of_lines([f"1\t{line}" for line in TEXT[:10]], "text.txt") == ""
    assert "2 columns" in form_of_lines([f"1\t{'(' * LONGEST * 4}"] * 30, "text.txt")
    assert "begins with 'a,b'" in form_of_lines(["a,b", *[f"1,{'x' * (1 << 18)}"] * 30], "t.csv")
