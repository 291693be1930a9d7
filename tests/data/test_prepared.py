from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from sememekit.data.prepared import PreparedData, token_type
from sememekit.errors import DataError
from sememekit.jobs.preprocess import preprocess
from tests.small_examples import write_reviews


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    for split, text in (("train", "一 个 字 一\n两 个 字\n"), ("valid", "一 字\n"), ("test", "个 个\n")):
        (source / f"{split}.txt").write_text(text, encoding="utf-8")
    preprocess("peoples-daily", source, tmp_path / "prepared")
    return tmp_path / "prepared"


def test_a_folder_opens_and_gives_its_words(folder: Path) -> None:
    data = PreparedData.open(folder)
    assert data.splits == ("train", "valid", "test")
    assert data.vocabulary.decode(data.tokens("train")) == ["一", "个", "字", "一", "两", "个", "字"]
    assert data.vocabulary.decode(data.tokens("test")) == ["个", "个"]
    tokens = data.tokens("train")
    assert isinstance(tokens, np.memmap)
    assert tokens.dtype == np.dtype("<u2")
    assert not tokens.flags.writeable
    assert data.signature.splits["valid"].types == 2


def test_a_split_that_is_not_there_is_named_with_the_others(folder: Path) -> None:
    with pytest.raises(DataError, match=r"no split 'dev'; name another one \(--split\): train, valid, test"):
        PreparedData.open(folder).tokens("dev")


def test_data_that_take_the_place_of_others_are_not_read_by_who_uses_these(folder: Path, tmp_path: Path) -> None:
    """A training reads its text again in every epoch; --force or a person may have put another folder there."""
    data = PreparedData.open(folder)
    before = data.tokens("train").tolist()
    folder.rename(tmp_path / "former")
    (tmp_path / "source" / "train.txt").write_text("两 两 两\n", encoding="utf-8")
    preprocess("peoples-daily", tmp_path / "source", folder)
    assert data.tokens("train").tolist() == before
    with pytest.raises(DataError, match=r"test\.bin: changed or damaged after it was written"):
        data.tokens("test")  # first used now
    shutil.rmtree(folder)
    assert data.tokens("train").tolist() == before
    with pytest.raises(DataError, match=r"valid\.bin.*; put it back, or "):
        data.tokens("valid")


def test_wide_ids_begin_above_65536_words() -> None:
    assert token_type(1 << 16).itemsize == 2
    assert token_type((1 << 16) + 1).itemsize == 4
    assert np.array([(1 << 16) - 1]).astype(token_type(1 << 16))[0] == (1 << 16) - 1


def change(folder: Path, **values: object) -> None:
    path = folder / "signature.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}), encoding="utf-8")


def test_everything_that_is_no_whole_folder_is_refused_with_the_next_command(folder: Path, tmp_path: Path) -> None:
    def broken(name: str) -> Path:
        return Path(shutil.copytree(folder, tmp_path / name))

    cases: list[tuple[Path, str]] = [
        (tmp_path / "absent", "no such folder.*SOURCE --out"),
        (folder / "train.bin", "a file, where"),
    ]
    bare = tmp_path / "bare"
    bare.mkdir()
    cases.append((bare, "it has no signature.json"))
    a_run = tmp_path / "run"
    a_run.mkdir()
    (a_run / "plan.json").touch()
    cases.append((a_run, "a run, where a prepared-data folder is needed; give the one that it was trained on, or write it"))
    short = broken("short")
    (short / "valid.bin").write_bytes(b"\0\0")
    cases.append((short, r"valid.bin: has 2 bytes, signature.json asks for 4"))
    missing = broken("missing")
    (missing / "test.bin").unlink()
    cases.append((missing, r"test.bin: is missing"))
    other_words = broken("words")
    (other_words / "vocabulary.tsv").write_text("一\t3\n<unk>\t0\n", encoding="utf-8")
    cases.append((other_words, "fingerprint"))
    torn = broken("torn")
    (torn / "signature.json").write_bytes((folder / "signature.json").read_bytes()[:100])
    cases.append((torn, "torn or not JSON"))
    newer = broken("newer")
    change(newer, format=2)
    cases.append((newer, "version 2, this sememekit reads 1"))
    strange = broken("strange")
    change(strange, mood="good")
    cases.append((strange, "key 'mood'"))
    escape = broken("escape")
    change(escape, splits={"../train": json.loads((folder / "signature.json").read_text())["splits"]["train"]})
    cases.append((escape, "cannot be the name of a split"))
    array = broken("array")
    (array / "signature.json").write_text("[]")
    cases.append((array, "holds no JSON object"))
    for path, message in cases:
        with pytest.raises(DataError, match=message) as caught:
            PreparedData.open(path)
        assert "sememekit preprocess" in str(caught.value)


def test_a_split_without_its_examples_is_named(tmp_path: Path) -> None:
    preprocess("sst2", write_reviews(tmp_path / "source"), tmp_path / "data")
    folder = tmp_path / "data"
    table = json.loads((folder / "signature.json").read_text())
    del table["examples"]["splits"]["test"]
    content = json.dumps(table).encode()
    (folder / "signature.json").write_bytes(content)
    (folder / "signature.sha256").write_text(f"{hashlib.sha256(content).hexdigest()}  signature.json\n")
    data = PreparedData.open(folder)
    assert len(data.examples("train")) > 0
    with pytest.raises(DataError, match=r"signature\.json lacks the examples of the split 'test'; .*sememekit preprocess"):
        data.examples("test")
