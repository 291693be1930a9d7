"""``preprocess --column``: one text of each example as running text; and raw Chinese in examples is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings


def pairs(folder: Path) -> Path:
    path = folder / "pairs.jsonl"
    names = [f"{first}{second}" for first in "abcdef" for second in "klmnopqrst"]
    rows = ({"source": f"the dog of house {name} sleeps", "target": f"dog {name} sleeps"} for name in names)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def words(data: PreparedData, split: str) -> list[str]:
    return [data.vocabulary.tokens[index] for index in data.tokens(split)]


def test_the_titles_of_pairs_are_sentences_with_ends(tmp_path: Path) -> None:
    source = pairs(tmp_path)
    whole = preprocess("gigaword", source, tmp_path / "pairs").signature
    assert whole.examples is not None
    preprocess("gigaword", source, tmp_path / "titles", PreprocessSettings(column="target"))
    data = PreparedData.open(tmp_path / "titles")
    found = words(data, "train")
    assert found[:1] == ["dog"]
    assert found[2:5] == ["sleeps", "<eos>", "dog"]
    assert not {"the", "of", "house", "<s>"} & set(data.vocabulary.tokens)
    assert data.signature.examples is None
    for split, summary in whole.examples.splits.items():  # in the same splits
        assert data.signature.splits[split].sentences == summary.examples
    assert "the target of each example alone" in data.signature.normalisation


def test_with_the_vocabulary_of_the_pairs_titles_end_as_theirs_do(tmp_path: Path) -> None:
    source = pairs(tmp_path)
    preprocess("gigaword", source, tmp_path / "pairs")
    chosen = PreprocessSettings(column="target", vocabulary=tmp_path / "pairs")
    preprocess("gigaword", None, tmp_path / "titles", chosen, files={"test": [source]})
    data = PreparedData.open(tmp_path / "titles")
    assert data.vocabulary.fingerprint == PreparedData.open(tmp_path / "pairs").vocabulary.fingerprint
    assert words(data, "test")[2:4] == ["sleeps", "</s>"]


@pytest.mark.parametrize(
    ("dataset", "message"),
    [("gigaword", "--column title: the examples have source, target"), ("ptb", "ptb is text without columns")],
)
def test_a_column_that_is_not_there_is_told(tmp_path: Path, dataset: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        preprocess(dataset, pairs(tmp_path), tmp_path / "out", PreprocessSettings(column="title"))
    assert not (tmp_path / "out").exists()


def test_labels_of_a_column_are_kept_in_its_order(tmp_path: Path) -> None:
    """Each sentence keeps its label through the division of one file, and a changed label is found."""
    rows = [(f"a {genre} text of house {number}", genre) for number in range(40) for genre in ("news", "old  prose", "talk")]
    source = tmp_path / "texts.tsv"
    source.write_text("text\tgenre\n" + "".join(f"{text}\t{genre}\n" for text, genre in rows), encoding="utf-8")
    chosen = PreprocessSettings(column="text", segmenter="none")
    preprocess("classification", source, tmp_path / "out", chosen)
    data = PreparedData.open(tmp_path / "out")
    for split in data.splits:
        sentences = " ".join(words(data, split)).split(" <eos>")[:-1]
        wanted = [" ".join(sentence.split()[1:]).split(" text")[0] for sentence in sentences]
        assert wanted == list(data.sentence_labels(split))
    assert set(data.sentence_labels("train")) == {"news", "old prose", "talk"}
    path = data.folder / "test.sentence-labels.txt"
    path.write_text(path.read_text(encoding="utf-8").replace("news", "talk"), encoding="utf-8")
    with pytest.raises(DataError, match="changed or damaged after it was written"):
        data.sentence_labels("test")
    preprocess("gigaword", pairs(tmp_path), tmp_path / "titles", PreprocessSettings(column="target"))
    assert PreparedData.open(tmp_path / "titles").sentence_labels("test") == (), "pairs have no labels"


def test_raw_chinese_examples_are_told_what_to_type(tmp_path: Path) -> None:
    raw = tmp_path / "reviews.tsv"
    raw.write_text("".join(f"这部电影我{'很' if i % 2 else '不'}喜欢看\t{i % 2}\n" for i in range(60)), encoding="utf-8")
    with pytest.raises(DataError, match=r"no blanks between words.*--segmenter jieba"):
        preprocess("classification", raw, tmp_path / "out")
    assert preprocess("classification", raw, tmp_path / "out", PreprocessSettings(segmenter="jieba")).signature.examples
    asked = preprocess("classification", raw, tmp_path / "asked", PreprocessSettings(segmenter="english")).signature
    assert asked.splits["train"].types == 2, "who asks for it gets it"
