from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.errors import DataError
from sememekit.text.form import classify, join_names, parse_tagged, split_sentences, stands_alone, to_half_width, without_ends


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("１２", "<N>"),
        ("３．５％", "<N>"),
        ("１３·４亿", "<N>"),
        ("１／３", "<N>"),
        ("５２３６万", "<N>"),
        ("４∶０", "<N>"),
        ("一", "<N>"),
        ("九", "<N>"),
        ("三百亿", "<N>"),
        ("百分之六十", "<N>"),
        ("第十七", "<N>"),
        ("第１０８", "<N>"),
        ("第一", "第一"),
        ("第二", "第二"),
        ("两", "两"),
        ("几", "几"),
        ("１９９８年", "<year>"),
        ("一九九八年", "<year>"),
        ("十年", "十年"),
        ("３１日", "<date>"),
        ("三十一日", "<date>"),
        ("１８时", "<time>"),
        ("十八时", "<time>"),
        ("１２月", "12月"),
        ("十二月", "十二月"),
        ("一个", "一个"),
        ("四川", "四川"),
        ("ＶＣＤ", "VCD"),
        ("ＩＳＯ９００１", "ISO9001"),
        ("今日", "今日"),
        ("，", "，"),
        ("％", "%"),
    ],
)
def test_words_and_their_classes(word: str, expected: str) -> None:
    assert classify(to_half_width(word)) == expected


def test_only_letters_digits_and_the_marks_of_numbers_change_width() -> None:
    assert to_half_width("Ａｚ０９％．／，：；（）！？「」　") == "Az09%./，：；（）！？「」　"


@given(st.text())
def test_half_width_keeps_the_length_and_is_done_once(text: str) -> None:
    once = to_half_width(text)
    assert len(once) == len(text)
    assert to_half_width(once) == once


@given(st.text(min_size=1, max_size=8))
def test_a_class_is_never_classified_again(word: str) -> None:
    assert classify(classify(word)) == classify(word)


@pytest.mark.parametrize("word", ["<N>", "<time>", "12月", "十二月", "1月份", "，", "——", "℃", "……"])
def test_what_stands_without_a_lexicon(word: str) -> None:
    assert stands_alone(word)


@pytest.mark.parametrize("word", ["月", "本月", "字", "VCD", "12", "<unk>", "a，"])
def test_what_needs_a_lexicon(word: str) -> None:
    assert not stands_alone(word)


def test_tags_compounds_and_line_numbers_are_taken_off() -> None:
    line = "19980101-01-001-001/m [北方/n 大学/n]nt 的/u [/w 书/n ]/w １／３/m"
    assert parse_tagged(line) == [
        ("北方", "n"),
        ("大学", "n"),
        ("的", "u"),
        ("[", "w"),
        ("书", "n"),
        ("]", "w"),
        ("１／３", "m"),
    ]
    assert parse_tagged("   ") == []
    assert parse_tagged("//w") == [("/", "w")]
    assert parse_tagged("[北/n 京/n]ns 好/a") == [("北", "n"), ("京", "n"), ("好", "a")]
    assert parse_tagged("[/w 好/a") == [("[", "w"), ("好", "a")]


@pytest.mark.parametrize("line", ["我们/r 没有", "/n", "字/"])
def test_an_item_without_a_tag_is_refused(line: str) -> None:
    with pytest.raises(DataError, match="expected word/TAG, found"):
        parse_tagged(line)


def names(line: str) -> list[str]:
    return join_names(parse_tagged(line))


def test_surnames_join_the_name_that_follows_and_nothing_else() -> None:
    assert names("王/nr 小明/nr 说/v") == ["王小明", "说"]
    assert names("王/nr 小明/nr 李/nr 红/nr") == ["王小明", "李红"]
    assert names("欧阳/nr 明/nr") == ["欧阳明"]
    assert names("安徒生/nr 王/nr 明/nr") == ["安徒生", "王明"]
    assert names("王/nr 、/w 李/nr") == ["王", "、", "李"]
    assert names("王/nr 安徒生/nr") == ["王", "安徒生"]
    assert names("王/nr 老/a 明/nr") == ["王", "老", "明"]


def test_sentences_keep_their_closing_marks() -> None:
    words = ["“", "好", "。", "”", "他", "说", "！", "？", "走", "了", "。", "）", "没", "完"]
    assert [" ".join(sentence) for sentence in split_sentences(words)] == ["“ 好 。 ”", "他 说 ！ ？", "走 了 。 ）", "没 完"]
    assert list(split_sentences([])) == []


@given(st.lists(st.sampled_from(["字", "。", "！", "”", "“", "）", "，"]), max_size=30))
def test_sentences_together_are_the_paragraph(words: list[str]) -> None:
    sentences = list(split_sentences(words))
    assert [word for sentence in sentences for word in sentence] == words
    assert all(sentences)
    assert all("。" in sentence or "！" in sentence for sentence in sentences[:-1])


@pytest.mark.parametrize(
    ("line", "bare"), [("<s> a b </s>", "a b"), ("<s><s> a", "a"), ("a </s> </s>", "a"), ("a b", "a b"), ("a <s> b", "a <s> b")]
)
def test_marks_of_a_sentence_go_and_its_words_stay(line: str, bare: str) -> None:
    assert without_ends(line) == bare
