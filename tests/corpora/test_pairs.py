"""Pairs of source and target: from files of every form to the prepared folder, and what is kept beside the ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sememekit.data.examples import Original, Originals
from sememekit.data.prepared import PreparedData
from sememekit.errors import DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from tests.pair_files import ARTICLES, TITLES, records, side_by_side, words


def test_files_side_by_side_and_the_words_beside_them(tmp_path: Path) -> None:
    test = records(tmp_path / "test.jsonl", [{"id": "1", "text": "Japan's UNK  said 12,5 .", "summaries": ["UNK Wins!"]}])
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "out", files={"test": [test]})
    data = PreparedData.open(tmp_path / "out")
    summary = data.signature.examples
    assert summary is not None
    assert (summary.texts, summary.labels, summary.keeps_text) == (("source", "target"), None, True)
    assert {split: counts.examples for split, counts in summary.splits.items()} == {"train": 10, "valid": 10, "test": 1}
    assert words(data, "train", 0, 0) == ["train", ":", *ARTICLES[0].split()], "text of Gigaword comes out as it went in"
    assert words(data, "train", 1, 1) == TITLES[1].split()
    originals = data.examples("test").originals
    assert originals is not None
    assert list(originals) == [Original(("japan", "'s", "<unk>", "said", "##,#", "."), ("UNK Wins!",))]
    assert words(data, "test", 0, 0) == ["<unk>", "<unk>", "<unk>", "said", "<unk>", "."]
    assert "japan" not in data.vocabulary, "the vocabulary is that of train"
    assert len(data.examples("train").labels) == 0


def test_wordings_are_read_a_line_at_a_time_and_stand_beside_their_ids(tmp_path: Path) -> None:
    rows = [{"source": f"a{i} b{i} c", "references": [f"T  {i}", f"other “{i}”"]} for i in range(60)]
    source = records(tmp_path / "all.jsonl", rows)
    preprocess("gigaword", source, tmp_path / "out", PreprocessSettings(segmenter="none", shard_bytes=200, workers=1))
    preprocess("gigaword", source, tmp_path / "again", PreprocessSettings(segmenter="none", shard_bytes=1 << 20))
    for path in (tmp_path / "out").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), "shards do not show"
    data = PreparedData.open(tmp_path / "out")
    seen = set()
    for split in data.splits:
        examples = data.examples(split)
        assert examples.originals is not None
        assert len(examples.originals) == len(examples)
        for index in reversed(range(len(examples))):
            wording = examples.originals[index]
            number = wording.source[0][1:]
            seen.add(int(number))
            assert wording == Original((f"a{number}", f"b{number}", "c"), (f"T {number}", f"other “{number}”"))
            assert len(wording.source) == len(examples.text(index, 0))
            if split == "train":
                assert words(data, split, index, 0) == list(wording.source)
                assert words(data, split, index, 1) == ["T", number], "the first reference is the target"
        with pytest.raises(IndexError):
            examples.originals[len(examples)]
    assert seen == set(range(60))
    text = tmp_path / "out" / "train.texts.jsonl"
    text.write_bytes(text.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"train\.texts\.jsonl: (is missing|has \d+ bytes), signature"):
        PreparedData.open(tmp_path / "out")


def test_an_article_of_ten_thousand_words_stays_whole(tmp_path: Path) -> None:
    folder = side_by_side(tmp_path / "in")
    path = folder / "train.article.txt"
    path.write_text(path.read_text().replace(ARTICLES[0], "very " * 9_999 + "long", 1))
    preprocess("gigaword", folder, tmp_path / "out", PreprocessSettings(segmenter="none"))
    examples = PreparedData.open(tmp_path / "out").examples("train")
    assert examples.lengths()[0].tolist() == [10_002, 3]
    assert examples.originals is not None
    assert examples.originals[0].source[-1] == "long"


def test_training_pairs_that_are_held_out_too_are_left_out(tmp_path: Path) -> None:
    folder = side_by_side(tmp_path / "in")
    held = (folder / "valid.article.filter.txt").read_text().splitlines()[0]
    with (folder / "train.article.txt").open("a") as article, (folder / "train.title.txt").open("a") as title:
        article.write(f"{held}\n{held}\n")
        title.write(f"{TITLES[0]}\nanother title\n")
    report = preprocess("gigaword", folder, tmp_path / "out")
    assert report.signature.examples is not None
    assert report.signature.examples.splits["train"].examples == 11, "the same article with another title stays"
    assert report.signature.examples.left_out == {"training example that occurs in valid or test": 1}


def test_training_pairs_of_a_divided_file_that_are_held_out_too_are_left_out(tmp_path: Path) -> None:
    """Forty pairs, each five times, in one file that is divided at random: no pair is on both sides."""
    names = [f"cat{chr(97 + number // 8)}{chr(97 + number % 8)}" for number in range(40)]
    rows = [{"text": f"the {name} sat down", "summary": f"{name} sat"} for name in names * 5]
    report = preprocess("gigaword", records(tmp_path / "all.jsonl", rows), tmp_path / "out")
    summary = report.signature.examples
    assert summary is not None
    data = PreparedData.open(tmp_path / "out")
    found = {split: {wording.source for wording in data.examples(split).originals or ()} for split in summary.splits}
    assert not found["train"] & (found["valid"] | found["test"])
    assert found["train"]
    left_out = summary.left_out["training example that occurs in valid or test"]
    assert sum(split.examples for split in summary.splits.values()) + left_out == 200
    once = preprocess("gigaword", records(tmp_path / "once.jsonl", rows[:40]), tmp_path / "apart").signature.examples
    assert once is not None
    assert once.left_out == {}, "nothing is left out for itself"
    with pytest.raises(DataError, match=r"too few examples to divide, .*training example that occurs in valid or test: "):
        preprocess("gigaword", records(tmp_path / "same.jsonl", rows[:1] * 200), tmp_path / "nothing")


@pytest.mark.parametrize(
    ("row", "pattern"),
    [
        ({"text": "a", "summaries": []}, r"test\.jsonl:2: no reference; a pair needs one at least"),
        ({"text": "a", "summaries": ["b", " "]}, r"test\.jsonl:2: reference 2 of 2 is empty"),
        ({"text": "a", "summary": " "}, r"test\.jsonl:2: the target is empty; .*--errors skip"),
        ({"text": " ", "summary": "a"}, r"test\.jsonl:2: the source is empty"),
        ({"text": "a"}, r"test\.jsonl:2: has none of the keys 'references', 'summaries'.*it has 'text'"),
        ({"text": 3, "summary": "a"}, r"test\.jsonl:2: the source must be a string, given 3"),
        ({"text": "a", "summaries": [1]}, r"test\.jsonl:2: the target must be a string or a list of strings"),
        (["a", "b"], r"test\.jsonl:2: not a JSON object"),
    ],
)
def test_bad_records_are_named(tmp_path: Path, row: object, pattern: str) -> None:
    test = records(tmp_path / "test.jsonl", [{"text": "good", "summary": "fine"}, row])
    with pytest.raises(DataError, match=pattern):
        preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "out", files={"test": [test]})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("titles", "pattern"),
    [
        (TITLES * 4, r"train\.title\.txt: ends after 8 lines, and the files beside it are longer"),
        (TITLES * 6, r"train\.article\.txt: ends after 10 lines, and the files beside it are longer"),
        (["x"] * 4 + [" "] + ["x"] * 5, r"train\.title\.txt:5: the target is empty"),
    ],
)
def test_files_that_do_not_fit_each_other(tmp_path: Path, titles: list[str], pattern: str) -> None:
    with pytest.raises(DataError, match=pattern):
        preprocess("gigaword", side_by_side(tmp_path / "in", titles), tmp_path / "out")


def test_a_missing_file_of_titles_is_named(tmp_path: Path) -> None:
    folder = side_by_side(tmp_path / "in")
    (folder / "train.title.txt").unlink()
    with pytest.raises(DataError, match=r"train\.title\.txt: no such file"):
        preprocess("gigaword", folder, tmp_path / "out")


PRINTED = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff"), min_size=1).filter(str.strip)


@settings(max_examples=20, deadline=None)
@given(rows=st.lists(st.tuples(PRINTED, st.lists(PRINTED, min_size=1, max_size=3)), min_size=1, max_size=4))
def test_whatever_was_written_comes_back(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, list[str]]]) -> None:
    folder = tmp_path_factory.mktemp("written")
    for split in ("train", "valid"):
        records(folder / f"{split}.jsonl", [{"text": f"{split} {text}", "references": own} for text, own in rows])
    preprocess("gigaword", folder, folder / "out", PreprocessSettings(segmenter="none"))
    originals = PreparedData.open(folder / "out").examples("train").originals
    assert originals is not None
    expected = [Original(("train", *text.split()), tuple(" ".join(one.split()) for one in own)) for text, own in rows]
    assert list(originals) == expected


def test_half_a_surrogate_pair_in_json(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    rows = [f'{{"source": "a{number} b", "target": "t \\ud83d\\ude00"}}\n' for number in range(40)]
    rows[20] = '{"source": "half \\ud800 pair", "target": "t"}\n'
    path.write_text("".join(rows), encoding="utf-8")
    with pytest.raises(DataError, match=r"all\.jsonl:21: half a surrogate pair \(\\ud800\).*--errors replace or --errors skip"):
        preprocess("gigaword", path, tmp_path / "out", PreprocessSettings(segmenter="none"))
    assert not (tmp_path / "out").exists()
    signature = preprocess(
        "gigaword", path, tmp_path / "replaced", PreprocessSettings(segmenter="none", errors="replace")
    ).signature
    assert signature.faults.invalid_utf8 == 1
    assert signature.examples is not None
    assert sum(split.examples for split in signature.examples.splits.values()) == 40
    signature = preprocess(
        "gigaword", path, tmp_path / "skipped", PreprocessSettings(segmenter="none", errors="skip")
    ).signature
    assert signature.faults.skipped_lines == 1
    assert "😀" in PreparedData.open(tmp_path / "skipped").vocabulary


def test_damaged_line_ends_are_no_want_of_memory(tmp_path: Path) -> None:
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "out")
    texts, lines = (
        tmp_path / "out" / "train.texts.jsonl",
        np.memmap(tmp_path / "out" / "train.lines.bin", dtype="<i8", mode="r+"),
    )
    for damage in (2**61, -5):
        lines[1] = damage
        lines.flush()
        with pytest.raises(
            DataError, match=r"train\.texts\.jsonl: the file of line ends beside it is damaged: line 1 should lie"
        ):
            Originals(texts, np.fromfile(texts, dtype=np.uint8), lines)[0]
