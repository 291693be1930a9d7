"""Chinese pairs in every form of files, and pairs with an empty side: the remedy in a message is one that is taken."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.data.prepared import PreparedData
from sememekit.tasks.headline import rouge_settings
from tests.commands.refusals import refusal

PAIRS = [(f"{city}市政府昨天发布了新政策，编号{number}。", f"{city}市发布新政策") for number, city in enumerate("北上广武" * 6)]
SPLITS = {"train": PAIRS[:16], "valid": PAIRS[16:20], "test": PAIRS[20:]}


def write(folder: Path, form: str) -> Path:
    folder.mkdir()
    for split, rows in SPLITS.items():
        if form == "beside":
            for side, ending in enumerate(("src", "tgt")):
                (folder / f"{split}.{ending}").write_text("".join(row[side] + "\n" for row in rows), encoding="utf-8")
        elif form == "lcsts of the hub":
            lines = [json.dumps({"text": text, "summary": title}, ensure_ascii=False) for text, title in rows]
            (folder / f"{split}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
        elif form == "csl":
            lines = [json.dumps({"id": 1, "abst": text, "title": title}, ensure_ascii=False) for text, title in rows]
            (folder / f"{split}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
        else:
            mark = "," if form == "csv" else "\t"
            head = "content,title\n" if form == "csv" else ""
            (folder / f"{split}.{form}").write_text(head + "".join(f"{a}{mark}{b}\n" for a, b in rows), encoding="utf-8")
    return folder


@pytest.mark.parametrize("form", ["beside", "lcsts of the hub", "csl", "tsv", "csv"])
def test_each_segmenter_of_the_message_is_taken(tmp_path: Path, form: str) -> None:
    typed = ["preprocess", "gigaword", str(write(tmp_path / "in", form)), "--out", str(tmp_path / "out")]
    told = refusal(*typed)
    first, others = re.findall(r"add --segmenter (\w+) \(or ([^)]*)\)", told)[0]
    names = [first, *others.split(", ")]
    assert names == ["jieba", "characters", "sentencepiece", "fmm with --lexicon"]
    for name in names if form == "beside" else names[:2]:
        more = ["--lexicon", "open"] if name.endswith("--lexicon") else ["--pieces", "40"] if name == "sentencepiece" else []
        done = CliRunner().invoke(app, [*typed, "--segmenter", name.split()[0], *more, "--force"])
        assert done.exit_code == 0, done.stderr
        examples = PreparedData.open(tmp_path / "out").signature.examples
        assert examples is not None
        assert examples.splits["train"].examples == 16
        assert [kind for kind, _ in rouge_settings(PreparedData.open(tmp_path / "out"))] == ["characters"]


def test_short_turns_of_a_dialogue_without_blanks_are_seen(tmp_path: Path) -> None:
    turns = "".join(f"A|你好吗{number}老师|q\nB|我很好{number}谢谢|s\n" for number in range(8))
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text(f"# {split}\n{turns}", encoding="utf-8")
    typed = ["preprocess", "switchboard", str(tmp_path), "--out", str(tmp_path / "out")]
    assert "have no blanks between words" in refusal(*typed)
    assert CliRunner().invoke(app, [*typed, "--segmenter", "characters"]).exit_code == 0


@pytest.mark.parametrize(("side", "ending"), [(0, "src"), (1, "tgt")])
def test_a_pair_with_an_empty_side_is_named_and_skipped(tmp_path: Path, side: int, ending: str) -> None:
    write(tmp_path / "in", "beside")
    path = tmp_path / "in" / f"train.{ending}"
    lines = path.read_bytes().split(b"\n")
    lines[2], lines[4] = b" ", b"\xff\xfe"
    path.write_bytes(b"\n".join(lines))
    typed = ["preprocess", "gigaword", str(tmp_path / "in"), "--segmenter", "characters", "--out", str(tmp_path / "out")]
    told = refusal(*typed)
    assert (
        f"train.{ending}:3: the {'target' if side else 'source'} is empty; mend it, or leave it out with --errors skip" in told
    )
    done = CliRunner().invoke(app, [*typed, "--errors", "skip"])
    assert done.exit_code == 0, done.stderr
    signature = PreparedData.open(tmp_path / "out").signature
    assert signature.examples is not None
    assert signature.examples.splits["train"].examples == 14
    assert signature.examples.left_out == {f"empty {'target' if side else 'source'}": 1}
    assert signature.faults.skipped_lines == 1


def test_a_line_that_is_blank_in_both_files_is_no_pair(tmp_path: Path) -> None:
    write(tmp_path / "in", "beside")
    for ending in ("src", "tgt"):
        path = tmp_path / "in" / f"train.{ending}"
        path.write_text("\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    typed = ["preprocess", "gigaword", str(tmp_path / "in"), "--segmenter", "characters", "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(app, typed).exit_code == 0


def test_a_split_of_one_token_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a b c\n" * 20, encoding="utf-8")
    (tmp_path / "valid.txt").write_text("a\n", encoding="utf-8")
    told = refusal("preprocess", "plain", str(tmp_path), "--no-end-of-sentence", "--out", str(tmp_path / "out"))
    assert "the split 'valid' has a single token, so there is nothing to predict; give more text for it: --valid FILE" in told


def test_a_file_of_words_is_no_vocabulary_and_the_message_says_what_it_is_for(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("老师\n苹果\n今天\n学生\n", encoding="utf-8")
    (tmp_path / "text.txt").write_text("今天老师吃苹果\n" * 40, encoding="utf-8")
    typed = ["preprocess", "plain", str(tmp_path / "text.txt"), "--out", str(tmp_path / "out")]
    told = refusal(*typed, "--vocabulary", str(tmp_path / "words.txt"))
    advice = told.rpartition("is cut use ")[2].split()
    assert CliRunner().invoke(app, [*typed, *advice]).exit_code == 0
    assert {"老师", "苹果"} <= set(PreparedData.open(tmp_path / "out").vocabulary.tokens)
