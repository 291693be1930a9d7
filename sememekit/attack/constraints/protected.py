"""Protected words: punctuation, numbers and negations are not replaced."""

from __future__ import annotations

from typing import Final, final

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.space import Space

NEGATIONS: Final = frozenset(
    """
    no not n't ca wo sha ai never none nobody nothing nowhere neither nor without hardly scarcely barely cannot
    don't doesn't didn't isn't aren't wasn't weren't won't wouldn't can't couldn't shouldn't haven't hasn't hadn't ain't
    非 别 勿 莫 毋 弗 甭 否 否则 休想 并非 绝非 决非 非但 非得 请勿 切勿 切莫 毋庸 莫如 莫若 难免 难于 别无选择 别无他法
    爱莫能助 无可奈何 束手无策 无言以对 走投无路 力不从心 毋庸置疑 不由自主 迫不得已 并没有
    """.split()  # noqa: SIM905
)
"""Negations in lower case; ``ca``, ``wo``, ``sha`` and ``ai`` are what tokenizers leave of can't, won't, shan't and ain't."""
_NEGATING: Final = frozenset("没未无")
"""Chinese negations that also begin or end words of at most three characters: 没法, 尚未, 无从."""
NUMBERS: Final = frozenset(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen half
    once twice first second third fourth fifth sixth seventh eighth ninth tenth double triple single
    hundreds thousands millions billions dozens
    """.split()  # noqa: SIM905
)
DATES: Final = frozenset(
    """
    january february april june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    mondays tuesdays wednesdays thursdays fridays saturdays sundays
    正月 元月 腊月 周日 周末 星期日 星期天 礼拜日 礼拜天
    """.split()  # noqa: SIM905
)
"""Months and days of the week but march and may, which are also a verb and an auxiliary."""
_CHINESE_DIGITS: Final = frozenset("零〇一二两三四五六七八九十百千万亿半几第")


@final
class Protected(Constraint):
    """Marks of punctuation, numbers and negations are never touched, and never put in."""

    class Settings(Constraint.Settings):
        marks: bool = True
        """Words without a letter or digit."""
        numbers: bool = True
        """Words with a digit, numerals, months and days of the week in English and Chinese."""
        negations: bool = True
        """English and Chinese negations."""

    settings: Protected.Settings

    def narrow(self, space: Space) -> Space:
        return space.filtered(lambda word, other: not self._holds(other), may_change=lambda word: not self._holds(word))

    def _holds(self, word: str) -> bool:
        settings, lower = self.settings, word.lower().replace("’", "'")
        return (
            (settings.marks and not any(map(str.isalnum, word)))
            or (settings.numbers and (is_number(lower) or lower in DATES or _is_chinese_date(word)))
            or (settings.negations and is_negation(lower))
        )


def _is_chinese_date(word: str) -> bool:
    """Whether a word is a numeral with the month, the day or the week: 三月, 二十日, 周二."""
    bare = word.removeprefix("星期").removeprefix("礼拜").removeprefix("周").removesuffix("月").removesuffix("日")
    return 0 < len(bare) < len(word) and set(bare) <= _CHINESE_DIGITS


def is_negation(word: str) -> bool:
    """Whether a word in lower case is a negation, or a Chinese word with one in it: with 不 anywhere, as in 毫不 and 办不到."""
    return word in NEGATIONS or "不" in word or (0 < len(word) <= 3 and not _NEGATING.isdisjoint((word[0], word[-1])))


def is_number(word: str) -> bool:
    """Whether a word in lower case has a digit or is a numeral; parts joined by hyphens (twenty-one) all have to be."""
    if any(map(str.isdigit, word)) or (word and set(word) <= _CHINESE_DIGITS):
        return True
    return all(part in NUMBERS for part in word.split("-"))
