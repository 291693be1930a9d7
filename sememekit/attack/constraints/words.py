"""Words that are neither replaced nor substitutes: function words; punctuation, numbers and negations."""

from typing import Final, final

from sememekit.attack.constraints import Constraint
from sememekit.attack.resources import AttackResources, built_in_lines
from sememekit.attack.space import Space
from sememekit.errors import DataError
from sememekit.files import at_home, read_text
from sememekit.files.tables import list_items


def _listed(name: str) -> frozenset[str]:
    return frozenset(word for line in built_in_lines(name) for word in line.split())


NEGATIONS: Final = _listed("negations")
_NEGATING: Final = frozenset("没未无")
"""Chinese negations that also begin or end words of at most three characters: 没法, 尚未, 无从."""
NUMBERS: Final = _listed("numbers")
DATES: Final = _listed("dates")
_CHINESE_DIGITS: Final = frozenset("零〇一二两三四五六七八九十百千万亿半几第")


@final
class StopWords(Constraint):
    """Forbid listed words as replaced words and substitutes: English and Chinese function words, or the words of a file."""

    class Settings(Constraint.Settings):
        file: str = ""
        """File with a word a line; empty for the English and Chinese lists."""

    settings: Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        if settings.file:
            text = read_text(at_home(settings.file), lambda why: DataError(f"stop words {why}"))
            self._words = frozenset(word for _, line in list_items(text, settings.file) for word in line.lower().split())
        else:
            self._words = _listed("stop-words")

    def narrow(self, space: Space) -> Space:
        return space.filtered(lambda word, other: self._words.isdisjoint((word.lower(), other.lower())))


@final
class Protected(Constraint):
    """Forbid punctuation, numbers and negations, as replaced words and substitutes."""

    class Settings(Constraint.Settings):
        marks: bool = True
        """Words without a letter or digit."""
        numbers: bool = True
        """Words with a digit, numerals, months and days of the week in English and Chinese."""
        negations: bool = True
        """English and Chinese negations."""

    settings: Settings

    def narrow(self, space: Space) -> Space:
        return space.filtered(lambda word, other: not self._holds(word) and not self._holds(other))

    def _holds(self, word: str) -> bool:
        settings, lower = self.settings, word.lower().replace("’", "'")
        return (
            (settings.marks and not any(map(str.isalnum, word)))
            or (settings.numbers and (is_number(lower) or lower in DATES or _is_chinese_date(word)))
            or (settings.negations and is_negation(lower))
        )


def _is_chinese_date(word: str) -> bool:
    """Return whether a word is a numeral with the month, the day or the week: 三月, 二十日, 周二."""
    bare = word.removeprefix("星期").removeprefix("礼拜").removeprefix("周").removesuffix("月").removesuffix("日")
    return 0 < len(bare) < len(word) and set(bare) <= _CHINESE_DIGITS


def is_negation(word: str) -> bool:
    """Return whether a lower-case word is a negation, or a Chinese word that contains a negation (不 in 毫不 and 办不到)."""
    return word in NEGATIONS or "不" in word or (0 < len(word) <= 3 and not _NEGATING.isdisjoint((word[0], word[-1])))


def is_number(word: str) -> bool:
    """Return whether a lower-case word has a digit or is a numeral, or all its parts between hyphens are (twenty-one)."""
    if any(map(str.isdigit, word)) or (word and set(word) <= _CHINESE_DIGITS):
        return True
    return all(part in NUMBERS for part in word.split("-"))
