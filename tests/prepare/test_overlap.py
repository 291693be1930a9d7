"""The overlap of held-out text with train, against sets of tuples."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.data.prepared import PreparedData
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare import overlap
from sememekit.prepare.overlap import NGRAM, overlap_with_train
from sememekit.prepare.settings import PreprocessSettings

runner = CliRunner()


def write_text(folder: Path, shared: int, words: int = 6) -> Path:
    """Three files of random words; the first ``shared`` lines of train stand in test, too."""
    folder.mkdir()
    source = random.Random(2)
    lines = [" ".join(source.choice("abcdefgh"[:words]) for _ in range(source.randint(3, 30))) for _ in range(120)]
    for name, part in (("train", lines[:80]), ("valid", lines[80:100]), ("test", [*lines[:shared], *lines[100:]])):
        (folder / f"{name}.txt").write_text("\n".join(part) + "\n", encoding="utf-8")
    return folder


def ngrams(data: PreparedData, split: str) -> list[tuple[int, ...]]:
    tokens = data.tokens(split).tolist()
    return [tuple(tokens[begin : begin + NGRAM]) for begin in range(len(tokens) - NGRAM + 1)]


@pytest.mark.parametrize("at_once", [7, 1 << 20])
def test_ngrams_are_those_of_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """N-grams may cross the borders of blocks."""
    monkeypatch.setattr(overlap, "_TOKENS_AT_ONCE", at_once)
    preprocess("plain", write_text(tmp_path / "text", 12), tmp_path / "data")
    data = PreparedData.open(tmp_path / "data")
    known = set(ngrams(data, "train"))
    found = overlap_with_train(data)
    for split in ("valid", "test"):
        own = ngrams(data, split)
        assert (found[split].shared, found[split].of) == (sum(one in known for one in own), len(own))
        assert found[split].unit == "n-grams"
    assert found["valid"].share < 0.01 < 0.2 < found["test"].share < 0.8


def test_of_a_large_text_a_sixteenth_is_looked_up_the_same_in_every_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preprocess("plain", write_text(tmp_path / "text", 12, words=8), tmp_path / "data")
    data = PreparedData.open(tmp_path / "data")
    whole = overlap_with_train(data)["test"]
    monkeypatch.setattr(overlap, "_LARGE", 100)
    monkeypatch.setattr(overlap, "_EVERY", 3)
    part = overlap_with_train(data)["test"]
    assert whole.of / 5 < part.of < whole.of / 2
    assert part.share == pytest.approx(whole.share, abs=0.15)
    whole_train = data.tokens("train")
    monkeypatch.setattr(PreparedData, "tokens", lambda self, split: whole_train if split == "train" else whole_train[5:])
    assert overlap_with_train(data)["test"].share == 1.0, "which are looked up does not depend on where they stand"


@pytest.mark.parametrize("at_once", [3, 1 << 14])
def test_examples_are_those_of_sets_whatever_their_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """Texts that differ only in where the first one ends are others."""
    monkeypatch.setattr(overlap, "_EXAMPLES_AT_ONCE", at_once)
    folder = tmp_path / "pairs"
    folder.mkdir()
    names = {
        "train": [
            ("a b", "c", "neutral"),
            ("a", "b c", "entailment"),
            ("d", "e", "neutral"),
            ("f", "d", "entailment"),
            ("b", "b", "neutral"),
        ]
    }
    names["valid"] = [("a", "b c", "neutral"), ("d e", "f", "entailment")]
    names["test"] = [
        ("a b", "c", "entailment"),
        ("e", "d", "neutral"),
        ("a b c", "c", "entailment"),
        ("d", "e", "neutral"),
        ("b b", "a", "neutral"),
    ]
    for split, rows in names.items():
        (folder / f"{split}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    preprocess("nli", folder, tmp_path / "data", PreprocessSettings(segmenter="none"))
    found = overlap_with_train(PreparedData.open(tmp_path / "data"))
    assert {split: (one.unit, one.shared, one.of) for split, one in found.items()} == {
        "valid": ("examples", 1, 2),
        "test": ("examples", 2, 5),
    }


def test_it_is_told_where_it_is_more_than_texts_repeat_by_themselves(tmp_path: Path) -> None:
    leaking = write_text(tmp_path / "leaking", 12)
    done = runner.invoke(app, ["preprocess", "plain", str(leaking), "--out", str(tmp_path / "one")])
    assert done.exit_code == 0, done.stderr
    assert "16-grams of test, too: figures of test are not of new text" in done.stderr
    assert "of valid, too" not in done.stderr
    clean = write_text(tmp_path / "clean", 0)
    done = runner.invoke(app, ["preprocess", "plain", str(clean), "--out", str(tmp_path / "two")])
    assert "too: figures" not in done.stderr


def test_a_test_set_alone_has_nothing_to_compare_with(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text", 0)
    preprocess("plain", text, tmp_path / "data")
    chosen = PreprocessSettings(vocabulary=tmp_path / "data")
    report = preprocess("plain", None, tmp_path / "test", chosen, files={"test": [text / "train.txt"]})
    assert report.overlap == {}
