"""Texts in a column of JSON lines: endings, columns, byte-order marks and bad bytes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from tests.prepare.batches import BATCHES, write_batch


@pytest.mark.parametrize("policy", ["strict", "replace", "skip"])
def test_a_byte_order_mark_before_json_lines_is_taken_off_and_counted(policy: str, tmp_path: Path) -> None:
    lines = "".join(f"{json.dumps({'text': f'a b w{number}'})}\n" for number in range(40))
    (tmp_path / "plain.jsonl").write_text(lines)
    half = lines.index("\n", len(lines) // 2) + 1
    (tmp_path / "marked.jsonl").write_text(f"\ufeff{lines[:half]}\ufeff{lines[half:]}", encoding="utf-8")
    plain, marked = (
        preprocess("plain", tmp_path / f"{name}.jsonl", tmp_path / name, PreprocessSettings(errors=policy))
        for name in ("plain", "marked")
    )
    assert (plain.signature.faults.byte_order_marks, marked.signature.faults.byte_order_marks) == (0, 2)
    assert marked.signature.splits == plain.signature.splits


def test_a_column_of_another_name(tmp_path: Path) -> None:
    rows = [{"body": f"a b w{number}", "id": number} for number in range(40)]
    (tmp_path / "x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(DataError, match=r"x\.jsonl:1: no text in the column 'text', it has body, id; name the column with"):
        preprocess("plain", tmp_path / "x.jsonl", tmp_path / "out")
    report = preprocess("plain", tmp_path / "x.jsonl", tmp_path / "out", PreprocessSettings(column="body"))
    assert sum(split.sentences for split in report.signature.splits.values()) == 40
    assert report.signature.normalisation == "the column body"


def test_a_column_of_files_without_columns_is_refused(tmp_path: Path) -> None:
    write_batch(tmp_path / "part-0.txt", BATCHES[0])
    with pytest.raises(ConfigError, match=r"--column body: .*part-0\.txt has no columns, .*; leave --column out"):
        preprocess("plain", tmp_path, tmp_path / "out", PreprocessSettings(column="body"))


@pytest.mark.parametrize("name", ["x.json", "x.ndjson", "x.JSONL", "x.JSON.GZ"])
def test_lines_of_objects_under_other_endings(name: str, tmp_path: Path) -> None:
    lines = "".join(f"{json.dumps({'text': f'a b w{number}'})}\n" for number in range(40)).encode()
    (tmp_path / name).write_bytes(gzip.compress(lines) if name.endswith("GZ") else lines)
    preprocess("plain", tmp_path / name, tmp_path / "out", PreprocessSettings(min_count=2))
    assert set(PreparedData.open(tmp_path / "out").vocabulary.tokens) == {"a", "b", "<eos>", "<unk>"}


@pytest.mark.parametrize(("others", "refused"), [(21, True), (20, False)])
def test_columns_in_another_encoding_are_no_single_bytes_to_mend(others: int, refused: bool, tmp_path: Path) -> None:
    texts = (f'{{"text": "上海市 w{number}"}}\n'.encode("gb18030" if number < others else "utf-8") for number in range(40))
    (tmp_path / "x.jsonl").write_bytes(b"".join(texts))
    settings = PreprocessSettings(errors="replace")
    if refused:
        with pytest.raises(DataError, match=r"x\.jsonl: 21 of the first 40 lines are not UTF-8, .*iconv"):
            preprocess("plain", tmp_path / "x.jsonl", tmp_path / "out", settings)
    else:
        assert preprocess("plain", tmp_path / "x.jsonl", tmp_path / "out", settings).signature.faults.invalid_utf8 == others


def test_bad_bytes_in_columns_follow_the_policy(tmp_path: Path) -> None:
    good = b'{"text": "a good line"}\n' * 30
    (tmp_path / "x.jsonl").write_bytes(good + b'{"text": "caf\xe9 broken"}\n' + good)
    with pytest.raises(DataError, match=r"x\.jsonl:31: .*not UTF-8 at byte 13 of it; .*--errors replace or --errors skip"):
        preprocess("plain", tmp_path / "x.jsonl", tmp_path / "out")
    for policy, sentences, skipped in (("replace", 61, 0), ("skip", 60, 1)):
        report = preprocess("plain", tmp_path / "x.jsonl", tmp_path / policy, PreprocessSettings(errors=policy))
        faults = report.signature.faults
        assert (faults.invalid_utf8, faults.skipped_lines) == (1, skipped)
        assert sum(split.sentences for split in report.signature.splits.values()) == sentences
