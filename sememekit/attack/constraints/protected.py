"""Protected words: punctuation, numbers and negations are not replaced."""

from __future__ import annotations

from typing import Final, final

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.space import Space

NEGATIONS: Final = frozenset(
    """
    no not n't ca wo sha ai never none nobody nothing nowhere neither nor without hardly scarcely barely cannot
    don't doesn't didn't isn't aren't wasn't weren't won't wouldn't can't couldn't shouldn't haven't hasn't hadn't ain't
    不 没 没有 无 未 非 别 勿 莫 毋 不是 不会 不能 不要 并非 从未 绝不
    无法 没法 无从 无力 无须 无需 不再 不得 不必 不用 不可 不该 不应 不对 不行 不许 不准 不敢 不肯 不愿 不想 不曾 不如
    不足 不够 尚未 从不 决不 毫不 毫无 未必 未曾 未能 并不 并未 并没 并没有 绝非 决非 绝无 莫非 别无选择 不得不 不能不
    不可能 不应该 不愿意 不大 不太 不怎么 没什么 没用 未尝 未免 无非 无不 非得 非但 不但 不仅 不只 不止 不然 否则 否
    一筹莫展 万万不 万万没 万般无奈 上不去 上不来 下不来 不习惯 不善 不善于 不孚众望 不得已 不能自己 不能自拔 不负
    休想 做不了主 切不可 切勿 切莫 别无他法 别无良策 力不从心 办不到 压不住 吃不上 吃不下 吃不透 吃罪不起 回天无力
    在所难免 屡禁不止 并无 弗 得不到 心有余而力不足 想不起来 成不了 成不了什么气候 成不了气候 抽不出来空 抽不出身
    拿不准 拿不稳 拿不起来 按捺不住 撑不住 无可奈何 无奈 无能 无言以对 无计可施 束手无策 毋庸 毋庸置疑 毋庸讳言
    毋庸赘言 永不 没出息 没法子 没词儿 爱莫能助 玩儿不转 甭 离不开 穿不住 管不了 管不住 莫如 莫若 莫衷一是
    记不起来 请勿 走投无路 过不去 难于 难免 鞭长莫及
    """.split()  # noqa: SIM905
)
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
            or (settings.negations and lower in NEGATIONS)
        )


def _is_chinese_date(word: str) -> bool:
    """Whether a word is a numeral with the month, the day or the week: 三月, 二十日, 周二."""
    bare = word.removeprefix("星期").removeprefix("礼拜").removeprefix("周").removesuffix("月").removesuffix("日")
    return 0 < len(bare) < len(word) and set(bare) <= _CHINESE_DIGITS


def is_number(word: str) -> bool:
    """Whether a word in lower case has a digit or is a numeral; parts joined by hyphens (twenty-one) all have to be."""
    if any(map(str.isdigit, word)) or (word and set(word) <= _CHINESE_DIGITS):
        return True
    return all(part in NUMBERS for part in word.split("-"))
