"""Examples with labels: from files of every form to the prepared folder."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from sememekit.corpora.examples import ExampleSet
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from tests.small_examples import write_pairs, write_reviews


def texts(data: PreparedData, split: str) -> list[tuple[str, ...]]:
    """Every example of a split as words, its label last."""
    examples, summary = data.examples(split), data.signature.examples
    assert summary is not None
    assert summary.labels is not None
    return [
        (
            *(" ".join(data.vocabulary.decode(examples.text(index, number))) for number in range(examples.num_texts)),
            summary.labels[examples.labels[index]],
        )
        for index in range(len(examples))
    ]


class Headlines(ExampleSet):
    """Two texts side by side and no label, as headline data come."""

    texts = ("article", "title")
    headers: ClassVar = (("article",), ("title",))
    label_headers: ClassVar = ()
    columns: ClassVar = ("article", "title")
    beside: ClassVar = ("article.", "title.")
    segmenters: ClassVar = ("none",)


def test_a_set_of_your_own_without_labels(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        (tmp_path / f"article.{split}.txt").write_text("a long story\nanother\n")
        (tmp_path / f"title.{split}.txt").write_text("a story\nmore\n")
    preprocess("tests.corpora.test_examples:Headlines", tmp_path, tmp_path / "out")
    data = PreparedData.open(tmp_path / "out")
    examples, summary = data.examples("train"), data.signature.examples
    assert summary is not None
    assert (summary.labels, len(examples.labels), len(examples)) == (None, 0, 2)
    assert [data.vocabulary.decode(examples.text(0, side)) for side in (0, 1)] == [["a", "long", "story"], ["a", "story"]]
    assert not list((tmp_path / "out").glob("*.labels.bin"))


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def small_table(folder: Path, rows: list[str], name: str = "train.tsv") -> Path:
    folder.mkdir(exist_ok=True)
    for split in ("train.tsv", "dev.tsv"):
        (folder / split).write_text("A b\tC d\tneutral\n" * 2, encoding="utf-8")
    (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def test_the_official_form(tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "snli")
    report = preprocess("snli", source, tmp_path / "out")
    data = PreparedData.open(tmp_path / "out")
    summary = report.signature.examples
    assert summary is not None
    assert summary.left_out == {"-": 3}
    assert summary.texts == ("premise", "hypothesis")
    assert {split: counts.examples for split, counts in summary.splits.items()} == {"train": 60, "valid": 20, "test": 20}
    assert sum(summary.splits["train"].of_label.values()) == 60
    records = [json.loads(line) for line in (source / "snli_1.0_train.jsonl").read_text().splitlines()]
    wanted = [record for record in records if record["gold_label"] != "-"]
    found = texts(data, "train")
    assert [row[2] for row in found] == [record["gold_label"] for record in wanted]
    for row, record in zip(found, wanted, strict=True):
        assert row[0] == record["sentence1"].lower().replace("doesn't", "does n't")
    assert {"it 's nice outside !"} <= {row[1] for row in found}
    assert "<s>" in data.vocabulary
    assert "woman" not in data.vocabulary, "pairs that are left out give no words"


def test_three_files_side_by_side_are_the_same_examples(tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "snli")
    (tmp_path / "three").mkdir()
    for split in ("train", "dev", "test"):
        records = [json.loads(line) for line in (source / f"snli_1.0_{split}.jsonl").read_text().splitlines()]
        for start, key in (("s1", "sentence1"), ("s2", "sentence2"), ("labels", "gold_label")):
            (tmp_path / "three" / f"{start}.{split}").write_text("".join(record[key] + " \n" for record in records))
    preprocess("snli", source, tmp_path / "one")
    preprocess("snli", tmp_path / "three", tmp_path / "other")
    one, other = PreparedData.open(tmp_path / "one"), PreparedData.open(tmp_path / "other")
    assert one.signature.examples == other.signature.examples
    assert [texts(one, split) for split in one.splits] == [texts(other, split) for split in other.splits]


def test_tables_with_and_without_a_header_and_quotes(tmp_path: Path) -> None:
    folder = small_table(
        tmp_path / "in",
        ["genre\tgold_label\tsentence2\tsentence1", 'x\tneutral\t"He said ""no"", twice"\tA "b" c', 'y\tentailment\tC\t"open'],
    )
    preprocess("nli", folder, tmp_path / "out")
    assert texts(PreparedData.open(tmp_path / "out"), "train") == [
        ('a " b " c', 'he said " no " , twice', "neutral"),
        ('" open', "c", "entailment"),
    ]
    assert texts(PreparedData.open(tmp_path / "out"), "valid") == [("a b", "c d", "neutral")] * 2


@pytest.mark.parametrize(
    ("rows", "pattern"),
    [
        (
            ["a\tb\tneutral", "a\tb\tmaybe"],
            r"train\.tsv:2: unknown label 'maybe'; allowed: contradiction, entailment, neutral, -",
        ),
        (["a\tb\tneutral", "a\t \tneutral"], r"train\.tsv:2: the hypothesis is empty; .*--errors skip"),
        (["a\tb\tneutral", "a\tneutral"], r"train\.tsv:2: 2 columns with TAB between, 3 are needed"),
        (["sentence1\tsentence2", "a\tb"], r"train\.tsv:1: the header has no column .*gold_label.*"),
        (["just text"], r"train\.tsv:1: 1 column.*premise, hypothesis, label"),
        (["a" * (1 << 20) + "\tb\tneutral"], r"train\.tsv:1: a line above 1 MiB"),
        (["a\tb\t-"], r"no examples are left for the split 'train'"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, rows: list[str], pattern: str) -> None:
    with pytest.raises(DataError, match=pattern):
        preprocess("nli", small_table(tmp_path / "in", rows), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_empty_texts_can_be_left_out_and_are_counted(tmp_path: Path) -> None:
    folder = small_table(tmp_path / "in", ["a\tb\tneutral", "a\t\tneutral", "\tb\tentailment"])
    summary = preprocess("nli", folder, tmp_path / "out", PreprocessSettings(errors="skip")).signature.examples
    assert summary is not None
    assert summary.left_out == {"empty hypothesis": 1, "empty premise": 1}
    assert summary.splits["train"].examples == 1


def test_json_lines_of_joined_files_may_have_a_mark_before_a_later_line(tmp_path: Path) -> None:
    record = '\ufeff{"sentence1": "a", "sentence2": "b", "gold_label": "neutral"}\n'
    for split in ("train", "dev"):
        (tmp_path / f"{split}.jsonl").write_text(2 * record, encoding="utf-8")
    report = preprocess("snli", tmp_path, tmp_path / "out")
    assert report.signature.splits["train"].tokens == 4
    assert report.signature.faults.byte_order_marks == 4


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("{", r"train\.jsonl:2: not JSON"),
        ("[1]", r"train\.jsonl:2: not a JSON object"),
        ('{"sentence1": "a", "gold_label": "-"}', r"train\.jsonl:2: has none of the keys 'hypothesis', 'sentence2'"),
        (
            '{"sentence1": "a", "sentence2": null, "gold_label": "-"}',
            r"train\.jsonl:2: 'sentence2' must be a string, given None",
        ),
    ],
)
def test_bad_json_is_named(tmp_path: Path, line: str, pattern: str) -> None:
    good = '{"sentence1": "a", "sentence2": "b", "gold_label": "neutral"}\n'
    for split in ("train", "dev"):
        (tmp_path / f"{split}.jsonl").write_text(good)
    (tmp_path / "train.jsonl").write_text(good + line + "\n")
    with pytest.raises(DataError, match=pattern):
        preprocess("snli", tmp_path, tmp_path / "out")


def test_files_of_unequal_length_side_by_side(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        for start, text in (("s1", "a\nb\n"), ("s2", "c\nd\n"), ("labels", "neutral\nneutral\n")):
            (tmp_path / f"{start}.{split}").write_text(text)
    (tmp_path / "s2.dev").write_text("c\n")
    with pytest.raises(DataError, match=r"s2\.dev: ends after 1 lines"):
        preprocess("snli", tmp_path, tmp_path / "out")
    (tmp_path / "s2.dev").unlink()
    with pytest.raises(DataError, match=r"s2\.dev: no such file"):
        preprocess("snli", tmp_path, tmp_path / "out")


def test_a_truncated_archive_is_an_error(tmp_path: Path) -> None:
    small_table(tmp_path / "in", ["a\tb\tneutral"])
    packed = lzma.compress(b"a\tb\tneutral\n" * 5000)
    (tmp_path / "cut.tsv.xz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"cut\.tsv\.xz: ends before its end mark"):
        preprocess("nli", tmp_path / "in", tmp_path / "out", files={"train": [tmp_path / "cut.tsv.xz"]})


def test_several_files_make_a_split(tmp_path: Path) -> None:
    folder = small_table(tmp_path / "in", ["a\tb\tneutral"])
    (tmp_path / "more.tsv").write_text("sentence2\tsentence1\tlabel\nz\ty\tentailment\n")
    preprocess("nli", folder, tmp_path / "out", files={"train": [folder / "train.tsv", tmp_path / "more.tsv"]})
    data = PreparedData.open(tmp_path / "out")
    assert texts(data, "train") == [("a", "b", "neutral"), ("y", "z", "entailment")]
    assert [source.name for source in data.signature.sources] == ["train.tsv", "more.tsv", "dev.tsv"]


def test_labels_of_a_free_set_are_those_of_train(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("fine\tgood\nso so\tmiddling\n")
    (tmp_path / "valid.tsv").write_text("fine\tgood\n")
    preprocess("classification", tmp_path, tmp_path / "out")
    assert texts(PreparedData.open(tmp_path / "out"), "train") == [("fine", "good"), ("so so", "middling")]
    (tmp_path / "valid.tsv").write_text("fine\tsuperb\n")
    with pytest.raises(DataError, match=r"valid\.tsv:1: unknown label 'superb'; allowed \(in the training split\): good, mid"):
        preprocess("classification", tmp_path, tmp_path / "again")


def test_one_file_is_divided_by_examples(tmp_path: Path) -> None:
    rows = [f"word{index} again\t{'up' if index % 2 else 'down'}" for index in range(200)]
    (tmp_path / "all.tsv").write_text("\n".join(rows) + "\n")
    preprocess("classification", tmp_path / "all.tsv", tmp_path / "out", PreprocessSettings(seed=7))
    data = PreparedData.open(tmp_path / "out")
    found = [texts(data, split) for split in data.splits]
    assert [len(part) for part in found] == [180, 10, 10]
    assert sorted(row for part in found for row in part) == sorted(tuple(row.split("\t")) for row in rows)


def test_same_input_same_bytes_whatever_the_shards_and_workers(tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "snli")
    preprocess("snli", source, tmp_path / "one")
    preprocess("snli", source, tmp_path / "many", PreprocessSettings(shard_bytes=300))
    preprocess("snli", source, tmp_path / "pool", PreprocessSettings(shard_bytes=2000, workers=2))
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "many") == folder_bytes(tmp_path / "pool")


def test_offsets_are_those_of_the_texts(tmp_path: Path) -> None:
    preprocess("snli", write_pairs(tmp_path / "snli"), tmp_path / "out")
    examples = PreparedData.open(tmp_path / "out").examples("train")
    assert isinstance(examples.offsets, np.memmap)
    assert examples.offsets[0] == 0
    assert examples.offsets[-1] == len(examples.tokens)
    assert examples.lengths().shape == (60, 2)
    assert examples.lengths().min() > 0


def test_a_torn_folder_and_a_stream_are_told_apart(tmp_path: Path) -> None:
    preprocess("sst2", write_reviews(tmp_path / "in"), tmp_path / "out")
    (tmp_path / "out" / "valid.labels.bin").write_bytes(b"\0\0")
    with pytest.raises(DataError, match=r"valid\.labels\.bin: has 2 bytes, .* asks for 30"):
        PreparedData.open(tmp_path / "out")
    (tmp_path / "text.txt").write_text("a b c\n" * 40)
    preprocess("plain", tmp_path / "text.txt", tmp_path / "stream")
    with pytest.raises(DataError, match=r"a stream of words.*preprocess snli\|sst2"):
        PreparedData.open(tmp_path / "stream").examples("train")


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["dev.tsv"], r"no file for the split 'train' .*--train FILE"),
        (["train.tsv"], r"no file for the split 'valid' .*'dev'.*--valid FILE"),
        (
            ["train.tsv", "old.train.tsv", "dev.tsv"],
            r"several files could be the split 'train' \(old\.train\.tsv, train\.tsv\)",
        ),
    ],
)
def test_files_that_are_not_clear(tmp_path: Path, names: list[str], pattern: str) -> None:
    for name in names:
        (tmp_path / name).write_text("a\tb\tneutral\n")
    with pytest.raises(DataError, match=pattern):
        preprocess("nli", tmp_path, tmp_path / "out")


@pytest.mark.parametrize("dataset", ["nli", "plain", "ptb"])
def test_prepared_data_are_no_source(tmp_path: Path, dataset: str) -> None:
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    (prepared / "signature.json").touch()
    (prepared / "train.txt").write_text("a\tb\tneutral\n")
    told = rf"prepared: prepared data already, which other commands take with --data \S+; 'preprocess {dataset}' needs the text"
    with pytest.raises(DataError, match=told):
        preprocess(dataset, prepared, tmp_path / "out")


def test_flags_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--train: ptb is text without labels"):
        preprocess("ptb", tmp_path, tmp_path / "out", files={"train": [tmp_path / "x"]})
    with pytest.raises(ConfigError, match="SOURCE is missing"):
        preprocess("nli", None, tmp_path / "out")
