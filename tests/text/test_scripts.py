"""Chinese characters, and scripts without blanks."""

from __future__ import annotations

import re

import pytest

from sememekit.text.scripts import EAST_ASIAN, HAN, UNSPACED_RANGES, traditional_hint

UNSPACED = re.compile(f"[{UNSPACED_RANGES}]")


@pytest.mark.parametrize(
    ("character", "han", "unspaced", "east_asian"),
    [
        *(
            (one, True, True, True)
            for one in ("一", "龥", "\u3400", "\u9fff", "\uf900", "\U00020000", "\U0002f800", "\U00031350")
        ),
        *((one, False, True, True) for one in ("ぁ", "ん", "ア", "ー")),
        *((one, False, False, True) for one in ("，", "。", "「", "Ａ", "！")),
        *((one, False, False, False) for one in ("a", "é", "한", ",", "—", "“", "…", "1", " ")),
    ],
)
def test_characters(character: str, han: bool, unspaced: bool, east_asian: bool) -> None:
    found = tuple(pattern.fullmatch(character) is not None for pattern in (HAN, UNSPACED, EAST_ASIAN))
    assert found == (han, unspaced, east_asian), f"U+{ord(character):04X}"


@pytest.mark.parametrize(
    ("words", "told"),
    [("國 們 中", True), ("國 們 中 a b c d", True), ("國 中", False), ("國 們 中 人", False), ("a b", False), ("", False)],
)
def test_traditional_characters_are_told_where_most_chinese_words_have_them(words: str, told: bool) -> None:
    hint = "; 國 is in traditional characters, and lexicons are in simplified: convert it by opencc -c t2s"
    assert traditional_hint(words.split()) == (hint if told else "")
