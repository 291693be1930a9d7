"""The advice in a message of the readers is taken: what it says to type is typed, and does what was asked."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from tests.commands.refusals import refusal

WORDS = ["今天", "老师", "吃", "苹果", "学生", "喜欢", "医生", "电影"]
TEXT = "今天老师吃苹果\n学生喜欢苹果\n" * 30
CUT = "今天 老师 吃 苹果\n学生 喜欢 苹果\n" * 30


class Case(NamedTuple):
    """Files, what is typed, what the message must match, and what is typed then, made of the groups of the match."""

    files: dict[str, str]
    typed: list[str]
    told: str
    then: Callable[[list[str], re.Match[str]], list[str]]


def with_options(typed: list[str], found: re.Match[str]) -> list[str]:
    return [*typed, *shlex.split(found[1])]


def instead_of(old: str) -> Callable[[list[str], re.Match[str]], list[str]]:
    return lambda typed, found: [found[1] if part == old else part for part in typed]


def whole(typed: list[str], found: re.Match[str]) -> list[str]:
    return [("again" if part == "DIR" else part) for part in shlex.split(found[1])[1:]]


def lexicon(spec: str) -> list[str]:
    return ["preprocess", "plain", "raw.txt", "--segmenter", "fmm", "--lexicon", spec, "--out", "out"]


PLAIN = ["preprocess", "plain"]
LIST = "".join(f"{word}\n人 物\n" for word in WORDS) * 2
CASES = {
    "words without a format": Case(
        {"words.txt": "\n".join(WORDS) + "\n"},
        lexicon("words.txt"),
        r"format, as in (words:\S+);",
        instead_of("words.txt"),
    ),
    "words as a list": Case(
        {"words.txt": "\n".join(f"{word}{extra}" for extra in "甲乙丙丁戊己庚辛" for word in WORDS) + "\n"},
        lexicon("list:words.txt"),
        r"for --lexicon use (\S+);",
        instead_of("list:words.txt"),
    ),
    "words as a table": Case(
        {"words.txt": "\n".join(WORDS) + "\n"}, lexicon("table:words.txt"), r"use (words:\S+);", instead_of("table:words.txt")
    ),
    "a list as a table": Case(
        {"list.txt": LIST}, ["lookup", "苹果", "--source", "table:list.txt"], r"; use (list:\S+)", instead_of("table:list.txt")
    ),
    "a table as a list": Case(
        {"t.tsv": "".join(f"{word}\t人 物\n" for word in WORDS)},
        ["lookup", "苹果", "--source", "list:t.tsv"],
        r"use (table:)PATH",
        lambda typed, found: ["lookup", "苹果", "--source", "table:t.tsv"],
    ),
    "a sense file as a list": Case(
        {"senses.txt": "".join(f"{word} 1 2 人 物\n" for word in WORDS)},
        ["lookup", "苹果", "--source", "list:senses.txt"],
        r"; use (se-wrl:\S+)",
        instead_of("list:senses.txt"),
    ),
    "running text as LCSTS": Case(
        {"raw.txt": CUT},
        ["preprocess", "lcsts", "raw.txt", "--out", "out"],
        r"read running text by: (sememekit preprocess plain .*?);",
        whole,
    ),
    "raw text": Case({"raw.txt": TEXT}, [*PLAIN, "raw.txt", "--out", "out"], r"add (--segmenter jieba)", with_options),
    "fmm without a lexicon": Case(
        {"raw.txt": TEXT},
        [*PLAIN, "raw.txt", "--segmenter", "fmm", "--out", "out"],
        r"or (--lexicon open)",
        with_options,
    ),
    "a lexicon without a segmenter": Case(
        {"raw.txt": CUT},
        [*PLAIN, "raw.txt", "--segmenter", "none", "--lexicon", "open", "--out", "out"],
        r"add (--segmenter fmm)",
        lambda typed, found: ["fmm" if part == "none" else part for part in typed],
    ),
    "pieces beyond the text": Case(
        {"raw.txt": TEXT},
        [*PLAIN, "raw.txt", "--segmenter", "sentencepiece", "--pieces", "500", "--out", "out"],
        r"give --pieces (\d+) or fewer",
        lambda typed, found: [found[1] if part == "500" else part for part in typed],
    ),
    "a folder above": Case({"top/in/text.txt": CUT}, [*PLAIN, "top", "--out", "out"], r"such as (\S+)$", instead_of("top")),
    "another file for a split": Case(
        {"in/a_test.txt": CUT, "in/b_test.txt": CUT, "in/train.txt": CUT},
        [*PLAIN, "in", "--out", "out"],
        r"give a pattern: (\S+)$",
        lambda typed, found: [*PLAIN, shlex.split(found[1])[0], "--out", "out"],
    ),
    "another column": Case(
        {"a.jsonl": "".join(json.dumps({"content": line}) + "\n" for line in CUT.splitlines())},
        [*PLAIN, "a.jsonl", "--out", "out"],
        r"it has (\w+); name the column with --column",
        lambda typed, found: [*typed, "--column", found[1]],
    ),
    "a column of a text": Case(
        {"raw.txt": CUT},
        [*PLAIN, "raw.txt", "--column", "text2", "--out", "out"],
        r"(leave --column out)",
        lambda typed, found: [*PLAIN, "raw.txt", "--out", "out"],
    ),
    "a packed name": Case(
        {"raw.txt.gz": CUT},
        [*PLAIN, "raw.txt.gz", "--out", "out"],
        r"take (\.gz) off its name",
        lambda typed, found: [*PLAIN, "raw.txt", "--out", "out"],
    ),
    "two files for a split": Case(
        {f"in/{name}.tsv": "a b\tx\nc d\ty\n" * 20 for name in ("train.a", "train.b", "dev")},
        ["preprocess", "classification", "in", "--out", "out"],
        r"name them with (--train) FILE",
        lambda typed, found: [*typed, "--train", "in/train.a.tsv"],
    ),
    "no valid": Case(
        {"train.tsv": "a b\tx\nc d\ty\n" * 20},
        ["preprocess", "classification", "--train", "train.tsv", "--out", "out"],
        r"give it with (--valid) FILE",
        lambda typed, found: [*typed, "--valid", "train.tsv"],
    ),
    "a short text": Case(
        {"raw.txt": CUT[:40], "in/train.txt": CUT, "in/valid.txt": CUT, "in/test.txt": CUT},
        [*PLAIN, "raw.txt", "--out", "out"],
        r"or a folder with (train\.txt, valid\.txt and test\.txt)",
        lambda typed, found: [*PLAIN, "in", "--out", "out"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_the_message_says_is_what_works(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    monkeypatch.chdir(tmp_path)
    for path, content in {"raw.txt": TEXT, **case.files}.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content, encoding="utf-8")
    told = refusal(*case.typed).strip()
    found = re.search(case.told, told)
    assert found is not None, told
    if name == "a packed name":
        Path("raw.txt.gz").rename("raw.txt")
    done = CliRunner().invoke(app, case.then(case.typed, found))
    assert done.exit_code == 0, done.stderr


def test_cilin_becomes_a_table_by_the_command_of_the_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"Aa01A{number:02}= {word} {word}们\n" for number, word in enumerate(WORDS, start=1)]
    Path("cilin.txt").write_text("".join(lines), encoding="utf-8")
    told = refusal("lookup", "苹果", "--source", "list:cilin.txt")
    command = told.partition("make a table of it, ")[2].partition(", and use ")[0]
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
    assert "Aa01A04=" in CliRunner().invoke(app, ["lookup", "苹果", "--source", "table:cilin.tsv"]).stdout
