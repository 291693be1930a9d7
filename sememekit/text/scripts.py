"""Chinese characters, and scripts without blanks between words.

Two rules taken from other code use separate ranges: the sememes of a definition (``sememes.lexicon.CHINESE_RUN``) and the
stretches of ``analysis.segmentation``."""

import re
from collections.abc import Iterable
from typing import Final

HAN_RANGES: Final = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""The characters of ``HAN``, for brackets of a regular expression."""

HAN: Final = re.compile(f"[{HAN_RANGES}]")  # a Chinese character

UNSPACED_RANGES: Final = HAN_RANGES + r"\u3040-\u30ff"
"""Chinese characters and kana, written without blanks, for brackets of a regular expression."""

EAST_ASIAN: Final = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
"""A character of Chinese or Japanese, their punctuation and full-width forms included."""


def traditional_hint(words: Iterable[str]) -> str:
    """Return the advice, as the end of a message, if most Chinese words are in traditional characters; else ""."""
    chinese = [word for word in words if HAN.search(word)]
    # Big5 has traditional characters, GB2312 has the simplified ones.
    found = [
        word for word in chinese if any(one.encode("big5", "ignore") and not one.encode("gb2312", "ignore") for one in word)
    ]
    if not chinese or 2 * len(found) <= len(chinese):
        return ""
    return f"; {found[0][:20]} is in traditional characters, and lexicons are in simplified: convert it by opencc -c t2s"
