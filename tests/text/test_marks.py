"""Numbers, Latin letters and punctuation marks as words by rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.analysis.segmentation import split_marks, with_marks

texts = st.text(st.sampled_from("天地〇○1９.%Ａbα，。—…· 　\n𠀀Ⅳ"), max_size=12)


@pytest.mark.parametrize(
    ("text", "stretches"),
    [
        ("１９９８年，ＷＴＯ——", ["1:１９９８", "0:年", "1:，", "1:ＷＴＯ", "1:——"]),
        ("3.5%的GDP", ["1:3.5%", "0:的", "1:GDP"]),
        ("他说：“好。”", ["0:他说", "1:：", "1:“", "0:好", "1:。", "1:”"]),
        ("二○○○年 ……！！", ["0:二○○○年", "1:……", "1:！！"]),
        ("阿·利", ["0:阿", "1:·", "0:利"]),
        ("Windows95", ["1:Windows", "1:95"]),
        (" ", []),
    ],
)
def test_stretches_by_hand(text: str, stretches: list[str]) -> None:
    assert [f"{int(mark)}:{stretch}" for stretch, mark in split_marks(text)] == stretches


def test_marks_are_whole_words_and_nothing_crosses_them() -> None:
    text = "在1998年，他们—"
    assert with_marks(text, ["在1", "99", "8年，他", "们—"]) == ["在", "1998", "年", "，", "他", "们", "—"]
    assert with_marks("我们 好", ["我们好"]) == ["我们好"], "white space is no mark"


@given(texts, st.data())
def test_any_segmentation_keeps_its_characters_and_its_other_cuts(text: str, data: st.DataObject) -> None:
    bare = "".join(text.split())
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(bare) - 1)))))
    words = [bare[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(bare)], strict=True) if bare[begin:end]]
    found = with_marks(text, words)
    assert "".join(found) == bare
    assert all(found) or not bare
    place, ends = 0, set()
    for word in found:
        place += len(word)
        ends.add(place)
    place = 0
    for stretch, mark in split_marks(text):
        inside = set(range(place + 1, place + len(stretch)))
        assert {place, place + len(stretch)} <= ends | {0}
        assert (inside & ends) == (set() if mark else inside & set(cuts))
        place += len(stretch)
    assert place == len(bare)
