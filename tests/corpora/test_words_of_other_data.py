"""Pairs and texts that are read with the words of data prepared before, and how those words were counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from tests.pair_files import records, side_by_side, words


def test_a_test_set_with_the_words_of_other_data(tmp_path: Path) -> None:
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "giga")
    source = records(
        tmp_path / "duc.jsonl",
        [{"text": 'The "U.S." city (Paris) ran in 1998.', "summaries": ["A one.", "B two", "C", "D “four”"]}],
    )
    with pytest.raises(ConfigError, match=r"--vocabulary RUN"):
        preprocess("duc", source, tmp_path / "duc")
    preprocess("duc", source, tmp_path / "duc", PreprocessSettings(vocabulary=tmp_path / "giga"))
    giga, duc = PreparedData.open(tmp_path / "giga"), PreparedData.open(tmp_path / "duc")
    assert duc.splits == ("test",)
    assert duc.vocabulary.fingerprint == giga.vocabulary.fingerprint
    assert duc.signature.segmenter == giga.signature.segmenter
    assert duc.signature.options["segmenter"] == "gigaword"
    originals = duc.examples("test").originals
    assert originals is not None
    assert originals[0].source == ("the", "``", "u.s.", "''", "city", "-lrb-", "paris", "-rrb-", "ran", "in", "####", ".")
    assert originals[0].references == ("A one.", "B two", "C", "D “four”")
    assert words(duc, "test", 0, 0)[4:8] == ["city", "-lrb-", "<unk>", "-rrb-"]


def test_words_are_counted_as_often_as_they_are_predicted(tmp_path: Path) -> None:
    folder = side_by_side(tmp_path / "in")
    preprocess("gigaword", folder, tmp_path / "out", PreprocessSettings(max_vocabulary=20))
    data = PreparedData.open(tmp_path / "out")
    examples, vocabulary = data.examples("train"), data.vocabulary
    predicted = [word for index in range(len(examples)) for word in [*words(data, "train", index, 1), "</s>"]]
    assert dict(zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True)) == {
        word: predicted.count(word) for word in vocabulary.tokens
    }
    assert vocabulary.token(0) == "</s>", "the most frequent of what is predicted comes first"
    assert "train" in vocabulary, "a word of the sources alone is kept, with the count 0"
    assert vocabulary.counts[vocabulary.id("train")] == 0
    assert data.signature.vocabulary_splits == ("train",)
    preprocess("gigaword", folder, tmp_path / "small", PreprocessSettings(max_vocabulary=20, shard_bytes=200))
    assert PreparedData.open(tmp_path / "small").vocabulary == vocabulary, "shards do not show"


def test_a_text_in_the_words_of_pairs_ends_its_sentences_as_targets_end(tmp_path: Path) -> None:
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "pairs")
    (tmp_path / "titles").mkdir()
    (tmp_path / "titles" / "train.txt").write_text("city says no\nDogs run\n")
    for name, segmenter in (("cut", "none"), ("alike", None)):
        preprocess(
            "plain",
            tmp_path / "titles",
            tmp_path / name,
            PreprocessSettings(vocabulary=tmp_path / "pairs", segmenter=segmenter),
        )
    data = PreparedData.open(tmp_path / "alike")
    assert data.vocabulary.decode(data.tokens("train")) == ["city", "says", "no", "</s>", "dogs", "run", "</s>"]
    assert data.vocabulary.end_id == data.vocabulary.id("</s>")
    assert (data.signature.end_of_sentence, data.signature.options["end_mark"]) == (True, "</s>")
    assert data.signature.vocabulary_splits == ()
    cut = PreparedData.open(tmp_path / "cut")
    assert cut.vocabulary.decode(cut.tokens("train"))[4] == "<unk>", "with --segmenter none the text is taken as it is"
    assert cut.signature.segmenter == "white space"


def test_a_text_in_the_words_of_peoples_daily_has_its_form(tmp_path: Path) -> None:
    month = tmp_path / "month.txt"
    month.write_text(
        "１９９８年/t 王/nr 小明/nr 买/v 了/u ３/m 本/q 书/n 。/w １月/t ２日/t 开门/v 。/w\n" * 30, encoding="utf-8"
    )
    preprocess("peoples-daily", month, tmp_path / "month", PreprocessSettings(segmenter="none", end_of_sentence=False))
    text = tmp_path / "own.txt"
    text.write_text("１９９７年 １月 ３１日 买 了 １２ 本 书 。\n", encoding="utf-8")
    settings = PreprocessSettings(vocabulary=tmp_path / "month", end_of_sentence=False)
    preprocess("plain", None, tmp_path / "own", settings, files={"test": [text]})
    data = PreparedData.open(tmp_path / "own")
    assert data.vocabulary.decode(data.tokens("test")) == ["<year>", "1月", "<date>", "买", "了", "<N>", "本", "书", "。"]
    assert data.form() == PreparedData.open(tmp_path / "month").form()
    preprocess("peoples-daily", month, tmp_path / "again", settings)
    tokens = [PreparedData.open(tmp_path / name).tokens("test").tolist() for name in ("month", "again")]
    assert tokens[0] == tokens[1], "data of the same form are taken"
    (tmp_path / "ptb").mkdir()
    for split in ("train", "valid", "test"):
        (tmp_path / "ptb" / f"ptb.{split}.txt").write_text("a b\n")
    with pytest.raises(ConfigError, match=r"its text is in another form .* take 'sememekit preprocess plain'"):
        preprocess("ptb", tmp_path / "ptb", tmp_path / "no", settings)


def test_words_of_other_data_that_do_not_fit(tmp_path: Path) -> None:
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "giga")
    source = records(tmp_path / "duc.jsonl", [{"text": "a", "summaries": ["b"]}])
    with pytest.raises(DataError, match=r"--segmenter none: .* has another segmenter, English as in Gigaword.*leave it out"):
        preprocess("duc", source, tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "giga", segmenter="none"))
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match=r"other: no file name contains the name of a split"):
        preprocess("duc", tmp_path / "other", tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "giga"))
    with pytest.raises(ConfigError, match=r"leave --min-count, --max-vocabulary, --hold-out and --chunks out"):
        preprocess("duc", source, tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "giga", min_count=2))
    with pytest.raises(DataError, match=r"neither prepared data .* nor a run"):
        preprocess("duc", source, tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "in"))
    with pytest.raises(DataError, match=r"no such folder"):
        preprocess("duc", source, tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "nowhere"))
    (tmp_path / "talk.txt").write_text("# 1\nA|hi|x\nB|ho|x\n")
    with pytest.raises(DataError, match=r"lack <same>, <other>, which switchboard needs"):
        preprocess("switchboard", tmp_path / "talk.txt", tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "giga"))
