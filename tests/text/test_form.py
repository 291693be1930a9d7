"""The form of a text: what is lower case and what is a number, wherever a text comes from."""

from __future__ import annotations

import pytest

from sememekit.text.form import HALF_WIDTH_RULE, RULE, TextForm
from sememekit.text.maximum_matching import MaximumMatcher
from sememekit.text.segmenters import WhiteSpace

BOTH = TextForm(lower=True, numbers_to="N")


def test_a_text_in_the_form_stays_as_it_is() -> None:
    assert BOTH.text("We paid 12.50 , N or -3% to Mr N. N") == "we paid N , N or N to mr n. N"
    assert BOTH.text("we paid N") == "we paid N"
    assert TextForm().text("We paid 3") == "We paid 3"
    assert not TextForm().changes
    assert TextForm(lower=True).text("N 3") == "n 3"
    assert BOTH.words(["a", "1,000", "4B"]) == ["a", "N", "4B"]


@pytest.mark.parametrize("text", ["We paid 12.50 to N\tİstanbul  5", "", " 7 ", "ΑΣ Β"])
def test_what_was_written_is_not_lost(text: str) -> None:
    for form in (TextForm(), TextForm(lower=True), BOTH, TextForm(numbers_to="NUM"), TextForm(numbers_to="\\1")):
        read, written = form.as_written(text)
        assert read == form.text(text)
        assert len(written) == len(read)
        assert "".join(written) == text
    read, written = TextForm(numbers_to="NUM").as_written("a 12 b")
    assert (read, written) == ("a NUM b", ["a", " ", "12", "", "", " ", "b"])
    read, written = TextForm(lower=True).as_written("Aİb")
    assert (read, written) == ("ai\u0307b", ["A", "İ", "", "b"]), "other characters of the stretch stay apart"


def test_the_form_of_peoples_daily() -> None:
    form = TextForm.recorded({}, RULE)
    assert form == TextForm(half_width=True, classes=True)
    assert TextForm.recorded({}, "dateline taken off; " + HALF_WIDTH_RULE) == TextForm(half_width=True)
    assert not TextForm.recorded({}, "white space to one blank").changes
    apart = "１９９８年 １月 ５日 ２３时 ， 美国 第１７ 三百 ５％ ＷＴＯ"
    words = ["<year>", "1月", "<date>", "<time>", "，", "美国", "<N>", "<N>", "<N>", "WTO"]
    assert [form.word(word) for word in apart.split()] == words
    assert form.cut(apart, WhiteSpace()) == words
    running = "去年１２月３日约１．５万人"
    assert form.cut(running, MaximumMatcher(["去年", "万人"])) == ["去年", "12月", "<date>", "约", "<N>", "人"]
    numerals = "一九九八年二十一日第十五届占百分之二十，比３∶１高一千点五"
    cut = ["<year>", "<date>", "<N>", "届", "占", "<N>", "，", "比", "<N>", "高", "<N>"]
    assert form.cut(numerals, MaximumMatcher(["九八", "十一", "百分"])) == cut, "whole, as the month has them"
    assert form.cut("一本书", MaximumMatcher(["本书"])) == ["<N>", "本书"]
    assert form.cut("去年<N>人", MaximumMatcher(["去年"])) == ["去年", "<N>", "人"]
    assert TextForm.recorded({}, "; ".join(form.rules)) == form, "data in it are known by what they say"
    assert TextForm.recorded({"lower": True}, "; ".join(BOTH.rules)) == TextForm(lower=True)
