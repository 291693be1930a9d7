"""The files of a place and the split of each: by options, by their names, or by division."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.corpora.places import files_of_place
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.files import RunWarning
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from tests.prepare.batches import BATCHES, write_batch


def test_a_test_set_alone_takes_the_words_of_other_data(tmp_path: Path) -> None:
    """A test set is named as such, or lies in a folder; a file that is no split is divided, and the command says so."""
    write_batch(tmp_path / "all.txt", BATCHES[0])
    preprocess("plain", tmp_path / "all.txt", tmp_path / "data", PreprocessSettings(min_count=1))
    (tmp_path / "other").mkdir()
    text = write_batch(tmp_path / "other" / "test.txt", BATCHES[0])
    write_batch(tmp_path / "other" / "notes.txt", BATCHES[1])
    settings = PreprocessSettings(vocabulary=tmp_path / "data", segmenter="none")
    for source, files, name in ((None, {"test": [text]}, "named"), (tmp_path / "other", {}, "folder")):
        report = preprocess("plain", source, tmp_path / name, settings, files=files)
        assert {split: one.sentences for split, one in report.signature.splits.items()} == {
            "test": len(text.read_text(encoding="utf-8").splitlines())
        }
    said = [
        CliRunner()
        .invoke(app, ["preprocess", "plain", *given, "--vocabulary", str(tmp_path / "data"), "--out", str(tmp_path / name)])
        .stderr
        for given, name in ((["--test", str(text)], "quiet"), ([str(text)], "told"))
    ]
    assert "was divided" not in said[0]
    assert "the text was divided into train, valid and test; a test set is named so: --test FILE" in said[1]


def test_an_unknown_word_that_train_lacks_is_told(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a b c a b c\n" * 9, encoding="utf-8")
    (tmp_path / "test.txt").write_text("a b d e f\n", encoding="utf-8")
    for count, told in (("1", True), ("2", False)):
        (tmp_path / "train.txt").write_text("a b c a b c\n" * 9 + "z\n", encoding="utf-8")
        given = ["--segmenter", "none", "--min-count", count, "--out", str(tmp_path / count)]
        found = CliRunner().invoke(app, ["preprocess", "plain", str(tmp_path), *given])
        assert found.exit_code == 0, found.stderr
        assert ("train has no <unk>, and 50.0 % of test are" in found.stderr) is told


NAMED = {
    "exact": ["train.txt", "dev.txt", "test.txt.gz"],
    "parts": ["ptb.train.txt", "PTB.Valid.txt", "ptb-test.txt"],
    "columns": ["train-00000-of-00002.jsonl", "train-00001-of-00002.jsonl", "validation.ndjson", "test.jsonl.xz"],
    "preferred": ["train.txt", "train.chars.txt", "notes.txt", "val.txt", "test.txt"],
}


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize("url", [False, True])
def test_files_of_a_folder_that_are_named_as_splits_are_splits(kind: str, url: bool, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in NAMED[kind]:
        split = next(split for split in ("train", "test", "va", "dev", "notes") if split in name.lower())
        write_batch(tmp_path / "in" / name, [f"{split} {'chars' if 'chars' in name else 'word'}"] * 40)
    if url:
        pytest.importorskip("fsspec")
    preprocess(
        "plain", (tmp_path / "in").as_uri() if url else tmp_path / "in", tmp_path / "out", PreprocessSettings(min_count=1)
    )
    data = PreparedData.open(tmp_path / "out")
    assert {split: summary.sentences for split, summary in data.signature.splits.items()} == {
        "train": 80 if kind == "columns" else 40,
        "valid": 40,
        "test": 40,
    }
    assert set(data.vocabulary.decode(data.tokens("train"))) == {"train", "word", "<eos>"}
    if kind != "columns":
        assert [source.split for source in data.signature.sources] == ["train", "valid", "test"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a.test.txt", "a.valid.txt"], r"a\.valid\.txt is the split 'valid', and no file has 'train' in its name"),
        (["a.train.txt", "b.train.txt"], r"not clear which file is the split 'train' \(a\.train\.txt, b\.train\.txt\)"),
        (["train.txt", "dev.txt", "valid-2.txt"], r"not clear which file is the split 'valid' \(dev\.txt, valid-2\.txt\)"),
        (["train-test.txt"], r"not clear which file is the split 'train' \(train-test\.txt\)"),
        (
            ["speed-train.txt", "b.txt", "a.txt"],
            r"speed-train\.txt is the split 'train', and 2 are of no split, such as a\.",
        ),
    ],
)
def test_names_of_splits_that_are_not_clear_are_refused(names: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in names:
        write_batch(tmp_path / "in" / name, BATCHES[0])
    with pytest.raises(DataError, match=rf"{message}.*name the files with --train FILE, .*; .*a pattern: .*in/\*"):
        preprocess("plain", tmp_path / "in", tmp_path / "out")
    report = preprocess("plain", f"{tmp_path}/in/*", tmp_path / "out")
    assert {source.split for source in report.signature.sources} == {"all"}


def test_a_text_that_is_there_packed_as_well_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.txt.xz", "a.txt.gz", "a.txt", "b.txt.gz"):
        write_batch(tmp_path / "in" / name, BATCHES[0])
    with pytest.warns(RunWarning, match=r"a\.txt\.gz and 1 more: left out, for a\.txt beside it is taken to be the same"):
        report = preprocess("plain", tmp_path / "in", tmp_path / "out")
    assert [source.name for source in report.signature.sources] == ["a.txt", "b.txt.gz"]
    with pytest.warns(RunWarning, match="left out"):
        assert [path.name for path in files_of_place(f"{tmp_path}/in/a*")] == ["a.txt"]


def test_sources_of_plain_exclude_each_other(tmp_path: Path) -> None:
    text = write_batch(tmp_path / "a.txt", BATCHES[0])
    with pytest.raises(ConfigError, match="either SOURCE or --train"):
        preprocess("plain", text, tmp_path / "out", files={"train": [text]})
    with pytest.raises(ConfigError, match=r"--valid: --train is missing; .*--vocabulary RUN$"):
        preprocess("plain", None, tmp_path / "out", files={"valid": [text]})
    with pytest.raises(ConfigError, match="ptb is read from a folder or a file of this machine"):
        preprocess("ptb", "s3://bucket/ptb", tmp_path / "out")


def test_the_shards_of_billion_word_are_splits(tmp_path: Path) -> None:
    train, held = (tmp_path / f"{name}-monolingual.tokenized.shuffled" for name in ("training", "heldout"))
    train.mkdir()
    held.mkdir()
    for number in (1, 2, 99):
        (train / f"news.en-{number:05d}-of-00100").write_text("the cat sat\n" * 2 + f"rare{number}\n")
    for number in (0, 1, 9, 10):
        (held / f"news.en.heldout-{number:05d}-of-00050").write_text(f"the cat held{number}\n")
    report = preprocess("billion-word", tmp_path, tmp_path / "out")
    assert {split: summary.sentences for split, summary in report.signature.splits.items()} == {
        "train": 9,
        "valid": 2,
        "test": 1,
    }
    assert set(PreparedData.open(tmp_path / "out").vocabulary.tokens) == {"<unk>", "<eos>", "the", "cat", "sat"}
    write_batch(train / "news.en-00002-of-00100.gz", ["the cat sat"] * 3)
    with pytest.warns(RunWarning, match=r"news\.en-00002-of-00100\.gz: left out, for news\.en-00002-of-00100 beside it"):
        assert preprocess("billion-word", tmp_path, tmp_path / "again").signature.splits == report.signature.splits
    (train / "news.en-00002-of-00100.gz").unlink()
    for path in held.iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"no shards for the split 'valid'; looked for heldout-monolingual"):
        preprocess("billion-word", tmp_path, tmp_path / "out2")
