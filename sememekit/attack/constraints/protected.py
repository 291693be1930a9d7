"""Protected words: punctuation, numbers and negations are not replaced."""

from __future__ import annotations

from typing import Final, final

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.space import Space

NEGATIONS: Final = frozenset(
    """
    no not n't never none nobody nothing nowhere neither nor without hardly scarcely barely cannot
    don't doesn't didn't isn't aren't wasn't weren't won't wouldn't can't couldn't shouldn't haven't hasn't hadn't ain't
    ca wo sha ai
    莫 毋 勿 非 别 并非 绝非 决非 别无选择
    """.split()  # noqa: SIM905
)
"""Negations in lower case; ``ca``, ``wo``, ``sha`` and ``ai`` are what tokenizers leave of can't, won't, shan't and ain't."""
_NEGATING: Final = frozenset("不没未无")
"""Chinese negations that also begin or end words of at most three characters: 不再, 没法, 尚未, 无从, 毫不."""
NUMBERS: Final = frozenset(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen half
    once twice first second third fourth fifth sixth seventh eighth ninth tenth double triple single
    hundreds thousands millions billions dozens
    """.split()  # noqa: SIM905
)
_CHINESE_DIGITS: Final = frozenset("零〇一二两三四五六七八九十百千万亿半几第")


@final
class Protected(Constraint):
    """Marks of punctuation, numbers and negations are never touched, and never put in."""

    class Settings(Constraint.Settings):
        marks: bool = True
        """Words without a letter or digit."""
        numbers: bool = True
        """Words with a digit, and numerals in English and Chinese."""
        negations: bool = True
        """English and Chinese negations."""

    settings: Protected.Settings

    def narrow(self, space: Space) -> Space:
        return space.filtered(lambda word, other: not self._holds(other), may_change=lambda word: not self._holds(word))

    def _holds(self, word: str) -> bool:
        settings, lower = self.settings, word.lower().replace("’", "'")
        return (
            (settings.marks and not any(map(str.isalnum, word)))
            or (settings.numbers and is_number(lower))
            or (settings.negations and is_negation(lower))
        )


def is_negation(word: str) -> bool:
    """Whether a word in lower case is a negation, or a short Chinese word that begins or ends with one."""
    return word in NEGATIONS or (0 < len(word) <= 3 and not _NEGATING.isdisjoint((word[0], word[-1])))


def is_number(word: str) -> bool:
    """Whether a word in lower case has a digit or is a numeral; parts joined by hyphens (twenty-one) all have to be."""
    if any(map(str.isdigit, word)) or (word and set(word) <= _CHINESE_DIGITS):
        return True
    return all(part in NUMBERS for part in word.split("-"))
