from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.text.sentencepieces import SentencePieces, train_sentencepieces

LINES = [
    f"{who}昨天{did}了一本{what}。"
    for who in ["我", "他", "老师", "学生"]
    for did in "看读写买"
    for what in ["书", "小说", "信"]
]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def sentences_of(folder: Path) -> set[str]:
    data = PreparedData.open(folder)
    text = " ".join(" ".join(data.vocabulary.decode(data.tokens(split))) for split in data.splits)
    return {sentence.strip() for sentence in text.split("<eos>") if sentence.strip()}


def test_the_report_is_the_signature_that_was_written(text: Path, tmp_path: Path) -> None:
    report = preprocess(
        "plain", text, tmp_path / "out", PreprocessSettings(segmenter="fmm"), lexicon_words=["昨天", "老师", "一本", "小说"]
    )
    assert report.signature == PreparedData.open(tmp_path / "out").signature
    assert report.folder == str(tmp_path / "out")
    assert "老师 昨天 看 了 一本 小说 。" in sentences_of(tmp_path / "out")
    assert report.signature.lexicon_words == 4
    assert report.signature.lexicon_coverage is None  # the words outside the list are kept
    assert report.model_dump(mode="json")["signature"]["splits"]["train"]["sentences"] == 43


def test_a_lexicon_by_its_specification_equals_its_words(text: Path, tmp_path: Path) -> None:
    table = tmp_path / "lexicon.txt"
    table.write_text("昨天\n时间\n老师\n人\n", encoding="utf-8")
    by_name = preprocess("plain", text, tmp_path / "a", PreprocessSettings(segmenter="fmm", lexicon=f"list:{table}"))
    by_words = preprocess("plain", text, tmp_path / "b", PreprocessSettings(segmenter="fmm"), lexicon_words=["老师", "昨天"])
    assert by_name.signature == by_words.signature


def test_jieba_cuts_plain_text(text: Path, tmp_path: Path) -> None:
    report = preprocess("plain", text, tmp_path / "out", PreprocessSettings(segmenter="jieba"))
    assert "老师 昨天 读 了 一本 小说 。" in sentences_of(tmp_path / "out")
    assert report.signature.segmenter.startswith("jieba ")


def test_sentencepiece_learns_from_train_and_stays_in_the_folder(text: Path, tmp_path: Path) -> None:
    first = preprocess("plain", text, tmp_path / "a", PreprocessSettings(segmenter="sentencepiece", pieces=32))
    preprocess("plain", text, tmp_path / "b", PreprocessSettings(segmenter="sentencepiece", pieces=32))
    model = tmp_path / "a" / "sentencepiece.model"
    assert model.read_bytes() == (tmp_path / "b" / "sentencepiece.model").read_bytes()
    segmenter = SentencePieces(model)
    assert first.signature.segmenter == segmenter.description
    assert first.signature.vocabulary_size <= 32 + 1  # <unk> is among the pieces, <eos> is not
    assert sentences_of(tmp_path / "a") == {" ".join(segmenter.segment(line)) for line in LINES}


def test_sentencepiece_sees_nothing_but_train(text: Path, tmp_path: Path) -> None:
    preprocess("plain", text, tmp_path / "words", PreprocessSettings(segmenter="none", seed=7))
    data = PreparedData.open(tmp_path / "words")
    train = [line.strip() for line in " ".join(data.vocabulary.decode(data.tokens("train"))).split("<eos>")[:-1]]
    assert 0 < len(train) < len(LINES)
    preprocess("plain", text, tmp_path / "pieces", PreprocessSettings(segmenter="sentencepiece", pieces=32, seed=7))
    model = (tmp_path / "pieces" / "sentencepiece.model").read_bytes()
    assert model == train_sentencepieces(train, 32, seed=7)
    assert model != train_sentencepieces(LINES, 32, seed=7)


def test_fmm_without_a_lexicon_says_what_to_give(text: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--lexicon FORMAT:PATH"):
        preprocess("plain", text, tmp_path / "out", PreprocessSettings(segmenter="fmm"))
    assert not (tmp_path / ".out.partial").exists()


@pytest.mark.parametrize("words", [[], ["", " "]])
def test_an_empty_lexicon_is_refused(words: list[str], text: Path, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, DataError), match=r"no words|this one is empty"):
        preprocess("plain", text, tmp_path / "out", PreprocessSettings(segmenter="fmm"), lexicon_words=words)


def test_two_lexicons_are_refused(text: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not both"):
        preprocess("plain", text, tmp_path / "out", PreprocessSettings(segmenter="fmm", lexicon="open"), lexicon_words=["a"])
