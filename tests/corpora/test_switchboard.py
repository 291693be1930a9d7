"""Switchboard: turns of a talk become pairs of what was said before and the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from tests.pair_files import records, side_by_side


def test_both_forms_of_switchboard_are_the_same_pairs(tmp_path: Path) -> None:
    turns = [("A", "Okay, uh,"), ("A", "do you?"), ("B", " "), ("B", "no"), ("A", "oh")]
    for name in ("text", "json"):
        (tmp_path / name).mkdir()
    for split in ("train", "valid"):
        block = "# 7\n" + "".join(f"{who}|{what}|x\n" for who, what in turns) + "\n# 8\nA|hi|x\nB|hi|x\n"
        (tmp_path / "text" / f"{split}.txt").write_text(block)
        record = {"utts": [[who, what, ["x", [0.1]]] for who, what in turns]}
        records(tmp_path / "json" / f"{split}.jsonl", [record, {"utts": [["A", "hi"], ["B", "hi"]]}])
    found = []
    for name in ("text", "json"):
        report = preprocess("switchboard", tmp_path / name, tmp_path / f"{name}.out", PreprocessSettings(turns=2))
        assert report.signature.examples is not None
        assert "up to 2 turns" in report.signature.normalisation
        assert report.signature.examples.left_out == {"utterance without words": 2}
        originals = PreparedData.open(tmp_path / f"{name}.out").examples("train").originals
        assert originals is not None
        found.append([(" ".join(wording.source), wording.references) for wording in originals])
    assert found[0] == found[1]
    assert found[0] == [
        ("<same> okay , uh ,", ("do you?",)),
        ("<other> okay , uh , <other> do you ?", ("no",)),
        ("<same> do you ? <other> no", ("oh",)),
        ("<other> hi", ("hi",)),
    ]


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("A|no tag", r"train\.txt:2: 2 fields with \| between, 3 are needed"),
        ("|what|x", r"train\.txt:2: the speaker is empty"),
    ],
)
def test_bad_turns_are_named(tmp_path: Path, line: str, pattern: str) -> None:
    for split in ("train", "valid"):
        (tmp_path / f"{split}.txt").write_text(f"# 1\n{line}\nB|x|y\n")
    with pytest.raises(DataError, match=pattern):
        preprocess("switchboard", tmp_path, tmp_path / "out")


def test_turns_are_for_dialogues(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gigaword has no turns"):
        preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "out", PreprocessSettings(turns=2))
    records(tmp_path / "train.jsonl", [{"utts": [["A"]]}])
    with pytest.raises(DataError, match=r"train\.jsonl:1: utterance 1 is not \[speaker, text, \.\.\.\]"):
        preprocess("switchboard", tmp_path / "train.jsonl", tmp_path / "out")
