from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.analysis.segmentation import boundary_rate, count_words, f1_difference, random_words, spans
from sememekit.errors import DataError


def words(text: str) -> list[str]:
    return text.split()


def test_a_hand_counted_example() -> None:
    gold = [words("北京 大学生 前来 应聘"), words("共同 创造 美好 的 新 世纪")]
    given_words = [words("北京大学 生 前来 应聘"), words("共同 创造 美好 的 新世纪")]
    scores = count_words(gold, given_words, known={"北京", "共同", "创造", "美好", "的", "新"}).scores()
    assert (scores.sentences, scores.gold_words, scores.words, scores.right) == (2, 10, 9, 6)
    assert scores.precision == pytest.approx(6 / 9)
    assert scores.recall == pytest.approx(6 / 10)
    assert scores.f1 == pytest.approx(12 / 19)
    assert (scores.f1_low, scores.f1_high) == (None, None), "two sentences have no interval"
    many = count_words(gold * 8, given_words * 8).scores()
    assert many.f1_low is not None
    assert many.f1_high is not None
    assert many.f1_low < 12 / 19 < many.f1_high
    assert (scores.new_words, scores.new_recall) == (4, 0.5)  # 大学生 前来 应聘 世纪, of which two in the middle


def test_the_gold_segmentation_is_right_and_one_of_no_common_word_is_all_wrong() -> None:
    gold = [words("一二 三四"), words("五 六")]
    assert count_words(gold, gold).scores().f1 == 1.0
    nothing = count_words(gold, [["一", "二三", "四"], ["五六"]]).scores()
    assert (nothing.right, nothing.precision, nothing.recall, nothing.f1) == (0, 0.0, 0.0, 0.0)
    empty = count_words([], []).scores()
    assert (empty.sentences, empty.precision, empty.recall, empty.f1, empty.f1_low, empty.f1_high) == (0, 0, 0, 0, None, None)


def test_other_texts_and_other_numbers_of_sentences_are_refused() -> None:
    with pytest.raises(DataError, match="sentence 2: the text differs from the gold"):
        count_words([["一"], ["二", "三"]], [["一"], ["二", "四"]])
    with pytest.raises(DataError, match="1 sentences were segmented, and the gold segmentation has 2"):
        count_words([["一"], ["二"]], [["一"]])


def test_differences_are_paired() -> None:
    gold = [list("一二三四")] * 30
    better = count_words(gold, [["一", "二", "三四"]] * 30)
    worse = count_words(gold, [["一", "二三四"]] * 30)
    found = f1_difference(better, worse)
    assert found.value == pytest.approx(4 / 7 - 2 / 6)
    assert (found.low, found.high) == pytest.approx((found.value, found.value))
    assert f1_difference(count_words(gold[:3], gold[:3]), count_words(gold[:3], gold[:3])).low is None


@given(st.text("一二三", min_size=1, max_size=30), st.floats(0, 1), st.integers(0, 9))
def test_random_words_are_the_text(text: str, rate: float, seed: int) -> None:
    cut = random_words(text, rate, np.random.default_rng(seed))
    assert "".join(cut) == text
    assert all(cut)
    assert spans(cut)[-1][1] == len(text)


def test_random_words_have_the_rate_that_is_asked_for() -> None:
    text = "字" * 4001
    cut = random_words(text, 0.25, np.random.default_rng(1))
    assert boundary_rate([cut]) == pytest.approx(0.25, abs=0.03)
    assert boundary_rate([["一"], []]) == 0.0
    assert boundary_rate([["一", "二"], ["三四五"]]) == pytest.approx(1 / 3), "one place of 1 + 2"
    assert boundary_rate([["一"], [], ["二", "三"]]) == 1.0, "a single character has no place inside"
    assert random_words(text, 1.0, np.random.default_rng(1)) == list(text)
