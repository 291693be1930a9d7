"""Chinese characters, and the scripts that are written without blanks between words.

Two rules of others keep ranges of their own: the sememes of a definition (``sememes.lexicon.CHINESE_RUN``) and the stretches of
``text.marks``.
"""

from __future__ import annotations

import re
from typing import Final

HAN_RANGES: Final = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Between the brackets of a regular expression: the characters of ``HAN``."""

HAN: Final = re.compile(f"[{HAN_RANGES}]")
"""A Chinese character."""

UNSPACED_RANGES: Final = HAN_RANGES + r"\u3040-\u30ff"
"""Between the brackets of a regular expression: Chinese characters and kana, whose words stand without blanks."""

EAST_ASIAN: Final = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
"""A character of Chinese or Japanese, their punctuation and full-width forms included."""
