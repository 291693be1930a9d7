"""Marks of the ends of sentences that stand in a text are taken off: the end is read anyway."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit import load_run
from sememekit.analysis.explanations.words import explain
from sememekit.analysis.score import score
from sememekit.data.prepared import PreparedData
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.text.form import has_ends, without_ends

LINES = [f"a{number % 7} b{number % 5} <unk> c ." for number in range(60)]


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("<s> a b </s>", "a b"),
        ("a b <eos>", "a b"),
        ("<bos>今天</s> <eos>", "今天"),
        ("a <s> b", "a <s> b"),
        ("<unk> a <unk>", "<unk> a <unk>"),
        ("<eos>", ""),
        (" a  b ", " a  b "),
    ],
)
def test_marks_at_the_ends_alone_are_taken_off(line: str, bare: str) -> None:
    assert (without_ends(line), has_ends(line)) == (bare, line != bare)


def prepared(folder: Path, lines: list[str], **options: object) -> PreparedData:
    folder.mkdir()
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    preprocess("plain", folder / "text.txt", folder / "data", PreprocessSettings(min_count=1, **options))  # type: ignore[arg-type]
    return PreparedData.open(folder / "data")


@pytest.mark.parametrize("marked", ["{} <eos>", "<s> {} </s>"])
@pytest.mark.parametrize("segmenter", ["none", "characters", "sentencepiece"])
def test_a_marked_text_is_the_text(tmp_path: Path, marked: str, segmenter: str) -> None:
    options = {"segmenter": segmenter, **({"pieces": 18} if segmenter == "sentencepiece" else {})}
    plain = prepared(tmp_path / "plain", LINES, **options)
    other = prepared(tmp_path / "marked", [marked.format(line) for line in LINES], **options)
    assert [other.tokens(split).tolist() for split in ("train", "valid", "test")] == [
        plain.tokens(split).tolist() for split in ("train", "valid", "test")
    ]
    assert (plain.signature.faults.end_marks, other.signature.faults.end_marks) == (0, len(LINES))


def test_a_text_that_gets_no_ends_keeps_its_marks(tmp_path: Path) -> None:
    data = prepared(tmp_path / "own", [f"{line} <eos>" for line in LINES], end_of_sentence=False)
    assert "<eos>" in data.vocabulary
    assert data.signature.faults.end_marks == 0


def test_score_perplexity_and_explain_read_one_end(ending: Path) -> None:
    run = load_run(ending, device="cpu")
    plain = [(row.token, row.nats) for row in score(ending, ["我 吃 梨 。"])]
    assert plain[-1][0] == "<eos>"
    for marked in ("我 吃 梨 。 <eos>", "<s> 我 吃 梨 。 </s>"):
        assert [(row.token, row.nats) for row in score(ending, [marked])] == plain
        assert run.perplexity(marked) == run.perplexity("我 吃 梨 。")
    words = [word.read_as for word in explain(ending, "<s> 我 吃").context]
    assert words == [word.read_as for word in explain(ending, "我 吃").context]
    assert [word.read_as for word in explain(ending, "我 吃 </s>").context][-1] == "<eos>"
