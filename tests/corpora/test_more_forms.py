"""Forms of labelled texts and pairs as other people give them out, and the messages where something is missing."""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.corpora.examples.labelled import read_labelled
from sememekit.data.prepared import PreparedData
from sememekit.errors import DataError
from sememekit.files import RunWarning
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.text.vectors import read_vectors
from tests.commands.refusals import refusal

GOOD, BAD = "房间 很 好", "房间 很 差"
ROWS = [(f"{GOOD if number % 2 else BAD} {number}", str(number % 2)) for number in range(60)]
Write = Callable[[Path, Sequence[tuple[str, str]]], None]


def json_lines(*keys: str) -> Write:
    def write(path: Path, rows: Sequence[tuple[str, ...]]) -> None:
        path.write_text("".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows), encoding="utf-8")

    return write


def as_parquet(path: Path, rows: Sequence[tuple[str, str]]) -> None:
    texts, labels = zip(*rows, strict=True)
    parquet.write_table(pyarrow.table({"idx": range(len(rows)), "text": texts, "label": [*map(int, labels)]}), path)


def as_folder(path: Path, rows: Sequence[tuple[str, str]]) -> None:
    for number, (text, label) in enumerate(rows):
        (path / label).mkdir(parents=True, exist_ok=True)
        (path / label / f"{number:02}_7.txt").write_text(text + "\n", encoding="utf-8")


def table(header: str) -> Write:
    def write(path: Path, rows: Sequence[tuple[str, str]]) -> None:
        path.write_text(f"{header}\n" + "".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")

    return write


FORMS: dict[str, tuple[str, Write]] = {
    "clue": ("{}.json", json_lines("sentence", "label")),
    "ndjson": ("{}.ndjson", json_lines("content", "label")),
    "parquet": ("{}-00000-of-00001.parquet", as_parquet),
    "folders": ("{}", as_folder),
    "text_a": ("{}.tsv", table("text_a\tlabel")),
}


def data_of(dataset: str, source: Path, out: Path, **options: object) -> PreparedData:
    preprocess(dataset, source, out, PreprocessSettings(**{"segmenter": "none", **options}))  # type: ignore[arg-type]
    return PreparedData.open(out)


@pytest.mark.parametrize("form", FORMS)
def test_labelled_texts_of_a_folder(tmp_path: Path, form: str) -> None:
    name, write = FORMS[form]
    (tmp_path / "in").mkdir()
    for split, rows in (("train", ROWS[:40]), ("dev", ROWS[40:50]), ("test", ROWS[50:])):
        write(tmp_path / "in" / name.format(split), rows)
    data = data_of("classification", tmp_path / "in", tmp_path / "out")
    examples = data.signature.examples
    assert examples is not None
    assert {split: one.of_label for split, one in examples.splits.items()} == {
        "train": {"0": 20, "1": 20},
        "valid": {"0": 5, "1": 5},
        "test": {"0": 5, "1": 5},
    }
    read = {(row.texts[0], row.label) for row in read_labelled(tmp_path / "in" / name.format("test")).rows}
    assert read == set(ROWS[50:])


def test_reviews_as_they_are_unpacked_are_divided_where_no_valid_is_there(tmp_path: Path) -> None:
    of_label = [(text, "pos" if label == "1" else "neg") for text, label in ROWS]
    as_folder(tmp_path / "in" / "train", [*of_label[:40], ("no label", "unsup")])
    as_folder(tmp_path / "in" / "test", of_label[40:])
    with pytest.warns(RunWarning, match="of 20 examples of train, one is valid; --valid FILE names others"):
        data = data_of("imdb", tmp_path / "in", tmp_path / "out")
    examples = data.signature.examples
    assert examples is not None
    assert {split: one.examples for split, one in examples.splits.items()} == {"train": 38, "valid": 2, "test": 20}
    assert (examples.labels, examples.left_out) == (("negative", "positive"), {"unsup": 1})
    (tmp_path / "in" / "test" / "pos" / "41_7.txt").write_bytes(b"caf\xe9")
    with pytest.warns(RunWarning), pytest.raises(DataError, match=r"test/pos/41_7\.txt: not UTF-8 at byte 3 of it"):
        data_of("imdb", tmp_path / "in", tmp_path / "other")


def pairs_of(folder: Path, labels: Sequence[object], keys: tuple[str, ...] = ("sentence1", "sentence2", "label")) -> Path:
    folder.mkdir()
    for split in ("train", "dev", "test"):
        rows = [(GOOD, f"{BAD} {number}", label) for number, label in enumerate(labels)]
        json_lines(*keys)(folder / f"{split}.json", rows)  # type: ignore[arg-type]
    return folder


def test_numbers_of_the_hub_are_labels_of_inference(tmp_path: Path) -> None:
    data = data_of("nli", pairs_of(tmp_path / "in", [0, 1, 2, -1, 0]), tmp_path / "out")
    examples = data.signature.examples
    assert examples is not None
    assert examples.splits["train"].of_label == {"entailment": 2, "neutral": 1, "contradiction": 1}
    assert examples.left_out == {"-1": 3}


@pytest.mark.parametrize("keys", [("sentence1", "sentence2", "label"), ("question1", "question2", "is_duplicate")])
def test_pairs_with_labels_of_ones_own(tmp_path: Path, keys: tuple[str, ...]) -> None:
    source, out = pairs_of(tmp_path / "in", ["0", "1", "1"], keys), str(tmp_path / "out")
    told = refusal("preprocess", "nli", str(source), "--segmenter", "none", "--out", out)
    advice = "sememekit preprocess text-pairs"
    assert "the labels of train are 0, 1, without 'contradiction' of this set: " in told
    assert advice in told
    typed = [*shlex.split(advice)[1:], str(source), "--segmenter", "none", "--out", out]
    assert CliRunner().invoke(app, typed).exit_code == 0
    assert PreparedData.open(tmp_path / "out").signature.examples.splits["train"].of_label == {"0": 1, "1": 2}  # type: ignore[union-attr]


def test_another_label_names_the_set_for_it(tmp_path: Path) -> None:
    told = refusal("preprocess", "nli", str(pairs_of(tmp_path / "in", ["same", "other"])), "--out", str(tmp_path / "out"))
    assert "unknown label 'same'; allowed: contradiction, entailment, neutral, -, -1; pairs with labels of your own" in told


@pytest.mark.parametrize("form", ["header", "json", "secret"])
def test_a_test_file_without_labels_is_left_out_as_the_message_says(tmp_path: Path, form: str) -> None:
    table("text\tlabel")(tmp_path / "train.tsv", ROWS[:40])
    table("text\tlabel")(tmp_path / "dev.tsv", ROWS[40:])
    name, content = {
        "header": ("test.tsv", "id\ttext_a\n" + "".join(f"{number}\t{text}\n" for number, (text, _) in enumerate(ROWS))),
        "json": ("test.json", "".join(json.dumps({"id": 1, "text": text}) + "\n" for text, _ in ROWS)),
        "secret": ("test.json", "".join(json.dumps({"label": None, "text": text}) + "\n" for text, _ in ROWS)),
    }[form]
    (tmp_path / name).write_text(content, encoding="utf-8")
    told = refusal("preprocess", "classification", str(tmp_path), "--segmenter", "none", "--out", str(tmp_path / "out"))
    if form == "secret":
        assert f"{name}:1: the label is empty; mend it, or leave it out with --errors skip" in told
        return
    assert f"{name}:1: {'has none of the keys' if form == 'json' else 'the header has no column'} 'label'" in told
    assert (
        "leave this file out: name the others with --train FILE and --valid FILE in place of the folder; a model labels it by: "
        in told
    )
    assert told.endswith(f"sememekit predict RUN {tmp_path / name}\n")
    named = ["--train", str(tmp_path / "train.tsv"), "--valid", str(tmp_path / "dev.tsv")]
    done = CliRunner().invoke(
        app, ["preprocess", "classification", *named, "--segmenter", "none", "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.stderr


def test_a_label_in_the_place_of_the_text_prints_no_list_of_texts(tmp_path: Path) -> None:
    for split, rows in (("train", ROWS), ("dev", [("新 房间", "0")])):
        (tmp_path / f"{split}.tsv").write_text("".join(f"{label}\t{text}\n" for text, label in rows), encoding="utf-8")
    typed = ["preprocess", "classification", str(tmp_path), "--segmenter", "none", "--out", str(tmp_path / "out")]
    told = CliRunner().invoke(app, typed).stderr.splitlines()[-1]
    assert "train has 60 labels, such as " in told
    assert len(told) < 400


def test_an_empty_text_is_named_by_its_line_before_an_attack(tmp_path: Path) -> None:
    table("text\tlabel")(tmp_path / "data.tsv", [ROWS[0], (" ", "1")])
    with pytest.raises(DataError, match=r"data\.tsv:3: a text is empty; mend the line, or delete it"):
        read_labelled(tmp_path / "data.tsv")


def test_a_pipe_is_no_missing_file(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe: a pipe or a device, which is read but once"):
        read_labelled(tmp_path / "pipe")


def test_vectors_may_be_packed_with_gzip(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "v.txt.gz", "wt", encoding="utf-8") as file:
        file.write("2 3\n好 1 2 3\n差 4 5 6\n")
    assert read_vectors(tmp_path / "v.txt.gz").words == ("好", "差")
    (tmp_path / "v.txt.gz").write_bytes((tmp_path / "v.txt.gz").read_bytes()[:-12])
    with pytest.raises(DataError, match="not an intact gz file"):
        read_vectors(tmp_path / "v.txt.gz")
    (tmp_path / "plain.gz").write_text("好 1 2 3\n", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read: Not a gzipped file"):
        read_vectors(tmp_path / "plain.gz")


def test_wikitext_before_its_rare_words_were_replaced(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / f"wiki.{split}.raw").write_text(" = A title = \n\n a b c .\n", encoding="utf-8")
    assert data_of("wikitext", tmp_path, tmp_path / "out", segmenter=None).signature.splits["train"].sentences == 3
