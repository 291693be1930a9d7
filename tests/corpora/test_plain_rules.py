"""Plain text: the rules that bring it into the form of a benchmark, text without blanks, and lexicons that are named twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sememekit.corpora.plain import Plain
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.segmentation import sentences_without_blanks
from sememekit.prepare.settings import PreprocessSettings
from sememekit.sememes import words_of_lexicons
from sememekit.text.form import TextForm
from sememekit.text.reading import Span
from sememekit.text.segmenters import WhiteSpace

LONG = " ".join(["word"] * 7)


def folder_of(folder: Path, **splits: str) -> Path:
    folder.mkdir()
    for split, text in splits.items():
        (folder / f"{split}.txt").write_text(text, encoding="utf-8")
    return folder


def words_of(folder: Path, split: str) -> list[str]:
    data = PreparedData.open(folder)
    return data.vocabulary.decode(data.tokens(split))


def test_lower_case_numbers_and_length_hold_for_all_splits(tmp_path: Path) -> None:
    text = f"We paid 12.50 Dollars , -3 % and 1998-99\n{LONG} 8\nA4 X25 7 1,000 .5 40%\n"
    source = folder_of(tmp_path / "in", train=text, valid=text, test=text)
    preprocess("plain", source, tmp_path / "out", PreprocessSettings(lower=True, numbers_to="N", max_length=9))
    for split in ("train", "valid", "test"):
        assert " ".join(words_of(tmp_path / "out", split)[:10]) == "we paid N dollars , N % and N <eos>", split
        assert words_of(tmp_path / "out", split)[-7:] == ["a4", "x25", "N", "N", "N", "N", "<eos>"]
    signature = preprocess(
        "plain", source, tmp_path / "short", PreprocessSettings(lower=True, numbers_to="N", max_length=7)
    ).signature
    assert words_of(tmp_path / "short", "test") == ["a4", "x25", "N", "N", "N", "N", "<eos>"]
    assert signature.normalisation == "lower case; numbers to N; sentences of more than 7 words left out"
    assert signature.faults.long_sentences == 6
    assert [signature.options[name] for name in ("lower", "numbers_to", "max_length")] == [True, "N", 7]


def test_a_text_in_their_words_is_brought_into_their_form(tmp_path: Path) -> None:
    preprocess(
        "plain",
        folder_of(tmp_path / "in", train="we paid 3 dollars\n"),
        tmp_path / "out",
        PreprocessSettings(lower=True, numbers_to="N"),
    )
    other = folder_of(tmp_path / "other", train="We Paid 99 Dollars\n")
    preprocess("plain", other, tmp_path / "again", PreprocessSettings(vocabulary=tmp_path / "out"))
    assert words_of(tmp_path / "again", "train") == ["we", "paid", "N", "dollars", "<eos>"]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_pieces_learn_from_the_text_in_that_form(kind: str, tmp_path: Path) -> None:
    lines = "".join(f"Some Words {number} and More\n{LONG} {LONG}\n" for number in range(40))
    source = folder_of(tmp_path / "in", train=lines)
    options: dict[str, Any] = {"segmenter": "sentencepiece", "pieces": 16, "piece_model": kind}
    report = preprocess(
        "plain", source, tmp_path / "out", PreprocessSettings(lower=True, numbers_to="N", max_length=10, **options)
    )
    vocabulary = PreparedData.open(tmp_path / "out").vocabulary
    assert not any(character.isdigit() or character in "SWM" for word in vocabulary.tokens for character in word)
    assert report.signature.faults.long_sentences == 40, "counted in words, not in pieces"
    assert report.signature.options.get("piece_model", "unigram") == kind


def test_rules_that_cannot_be(tmp_path: Path) -> None:
    source = folder_of(tmp_path / "in", train="a\n")
    with pytest.raises(ConfigError, match=r"--numbers-to 'a b': one word is needed"):
        preprocess("plain", source, tmp_path / "out", PreprocessSettings(numbers_to="a b"))
    with pytest.raises(ConfigError, match=r"--max-length 0: 1 or more"):
        preprocess("plain", source, tmp_path / "out", PreprocessSettings(max_length=0))
    with pytest.raises(ConfigError, match=r"--lower is for plain: ptb has its own rules"):
        preprocess("ptb", source, tmp_path / "out", PreprocessSettings(lower=True))
    assert next(Plain(source).with_rules(TextForm(numbers_to="\\1"), None).units("a 5", WhiteSpace())).words == ["a", "\\1"], (
        "a word, not a pattern"
    )


def test_the_vocabulary_is_that_of_train(tmp_path: Path) -> None:
    source = folder_of(tmp_path / "in", train="a b\n" * 3, valid="a c\n", test="d\n")
    report = preprocess("plain", source, tmp_path / "out")
    assert set(PreparedData.open(tmp_path / "out").vocabulary.tokens) == {"a", "b", "<eos>", "<unk>"}
    assert words_of(tmp_path / "out", "test") == ["<unk>", "<eos>"]
    assert report.signature.vocabulary_splits == ("train",)
    report = preprocess("ptb", source, tmp_path / "ptb")
    assert {"c", "d"} < set(PreparedData.open(tmp_path / "ptb").vocabulary.tokens)
    assert report.signature.vocabulary_splits == ("train", "valid", "test")


RAW = ["去年美国贸易逆差扩大。", "我们在北京开会，讨论 2015 年的计划和明年的工作安排。", "今日は天気がいいですね。"]


@pytest.mark.parametrize("line", RAW)
def test_text_without_blanks_is_told(line: str, tmp_path: Path) -> None:
    (tmp_path / "raw.txt").write_text(f"{line}\n" * 40, encoding="utf-8")
    with pytest.raises(DataError, match=r"raw\.txt: 40 of the first 40 sentences .* no blanks .* add --segmenter jieba \("):
        preprocess("plain", tmp_path / "raw.txt", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    preprocess("plain", tmp_path / "raw.txt", tmp_path / "whole", PreprocessSettings(segmenter="none"))
    preprocess("plain", tmp_path / "raw.txt", tmp_path / "cut", PreprocessSettings(segmenter="characters"))


@pytest.mark.parametrize(
    "line", ["去年 美国 贸易 逆差 扩大 。", "去 年 美 国", "plain English, no 中文", "希望", "中华人民共和国 成立 五十 周年"]
)
def test_text_with_blanks_is_taken(line: str, tmp_path: Path) -> None:
    (tmp_path / "cut.txt").write_text(f"{line}\n" * 40, encoding="utf-8")
    preprocess("plain", tmp_path / "cut.txt", tmp_path / "out")


def test_the_first_lines_of_a_text_in_another_script_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sememekit.prepare.segmentation._LINES_TO_SEE", 30)
    path = tmp_path / "mixed.txt"
    for plain, found in ((28, (2, 2)), (30, (0, 0))):
        path.write_text("plain English\n" * plain + f"{RAW[0]}\n" * 9, encoding="utf-8")
        assert sentences_without_blanks(Span(path, str(path), 0, path.stat().st_size), "strict") == found


def test_several_lexicons_give_all_their_words(tmp_path: Path) -> None:
    for name, word in (("one", "人民"), ("two", "天地")):
        (tmp_path / name).write_text(f"{word}\n人\n", encoding="utf-8")
    specs = [f"list:{tmp_path / name}" for name in ("one", "two")]
    assert words_of_lexicons(specs) == words_of_lexicons(specs[0]) | words_of_lexicons(specs[1])
    (tmp_path / "text.txt").write_text("人民天地人\n" * 40, encoding="utf-8")
    report = preprocess("plain", tmp_path / "text.txt", tmp_path / "out", PreprocessSettings(segmenter="fmm", lexicon=specs))
    assert words_of(tmp_path / "out", "valid")[:4] == ["人民", "天地", "人", "<eos>"]
    assert report.signature.lexicon_words == len(words_of_lexicons(specs))
    with pytest.raises(ConfigError, match=r"none cannot be combined with other lexicons"):
        preprocess(
            "plain", tmp_path / "text.txt", tmp_path / "out2", PreprocessSettings(segmenter="fmm", lexicon=["none", specs[0]])
        )
