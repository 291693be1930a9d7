"""Sememes of tokens that no lexicon holds: ``<unk>``, ``<eos>``, numbers, dates and punctuation.

The table follows the dictionary entries of the released language-model code (LM/hownet.py of SDLM, Gu et al. 2018), where
sememes are Chinese words. A lexicon may spell its sememes in another way (``cardinal|基数``, or ``基`` for ``基数``), so a rule
names its sememe in both languages, and ``SpecialTokens`` finds the lexicon's name."""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from sememekit.sememes.lexicon import Lexicon
from sememekit.text.vocabulary import END, UNKNOWN

__all__ = ["END", "MARKS", "PRIVATE", "PUNCTUATION", "RULES", "UNKNOWN", "SpecialTokens", "chinese_side", "is_punctuation"]

PRIVATE = (UNKNOWN, END, "<s>", "</s>", "<bos>", "<pad>")
"""Tokens with one sememe, which has the name of the token. Words without annotation share the sememe of ``<unk>``, as in the
released headline code. The last four tokens are not in the released table."""

RuleSememe = tuple[str, ...]
"""A sememe of a rule: its English and Chinese name, then further Chinese names in lexicons, best first."""
CARDINAL = ("cardinal", "基数", "基", "数词", "数目", "数字", "数")
PUNCTUATION = ("punctuation", "标点", "标点符号", "符号")
TIME = ("time", "时间")
YEAR = ("year", "年", "年份")
MONTH = ("month", "月", "月份")
HOUR = ("hour", "时", "小时", "钟点", "时间单位")
SPECIFIC = ("specific", "特定")

MARKS = ("（", "『", "……", "●", "《", "—", "———", "』", "》", "△", "、", "）", "℃", "▲")
"""The 14 punctuation marks that the released code adds because its HowNet lacks them."""

RULES: dict[str, tuple[RuleSememe, ...]] = {
    "<N>": (CARDINAL,),
    "<year>": (TIME, YEAR, SPECIFIC),
    "<date>": (TIME, MONTH, SPECIFIC),
    "<time>": (TIME, HOUR, SPECIFIC),
    "<hour>": (TIME, HOUR, SPECIFIC),
    **dict.fromkeys(MARKS, (PUNCTUATION,)),
}
"""Token -> sememes. ``<hour>`` is the released data's name for what the paper calls ``<time>``."""


def is_punctuation(token: str) -> bool:
    """Return whether every character is punctuation or a symbol by its Unicode category (P or S)."""
    return bool(token) and all(unicodedata.category(character)[0] in "PS" for character in token)


def chinese_side(sememe: str) -> str:
    """Return ``基数`` for both ``cardinal|基数`` and ``基数``."""
    return sememe.rpartition("|")[2]


class SpecialTokens:
    """The rules with the sememe names of the lexicons in use.

    The sememe of a rule becomes the lexicons' sememe with its Chinese name, or else with one of its other names, or else a new
    sememe in the spelling of the first lexicon. If several sememes share a name (``year|年``, ``age|年``), the first lexicon
    with this name gives its sememe with most senses."""

    def __init__(self, lexicons: Sequence[Lexicon]) -> None:
        wanted = {name for rule in RULES.values() for sememe in rule for name in sememe[1:]}
        self._own_names: dict[str, str] = {}
        for lexicon in lexicons:
            found: dict[str, Counter[str]] = {}
            for sememe in _sememes(lexicon):
                if (chinese := chinese_side(sememe)) in wanted:
                    found.setdefault(chinese, Counter())[sememe] += 1
            for chinese, counts in found.items():
                self._own_names.setdefault(chinese, min(counts, key=lambda name: (-counts[name], name)))
        self._pairs = any("|" in sememe for lexicon in lexicons[:1] for sememe in _sememes(lexicon))

    def sememes_of(self, token: str) -> tuple[str, ...] | None:
        """The sememes of a token by the rules, or None without a rule."""
        if token in PRIVATE:
            return (token,)
        if token in RULES:
            return tuple(self.resolve(sememe) for sememe in RULES[token])
        return None

    def resolve(self, sememe: RuleSememe) -> str:
        own = "|".join(sememe[:2]) if self._pairs else sememe[1]
        return next((self._own_names[chinese] for chinese in sememe[1:] if chinese in self._own_names), own)


def _sememes(lexicon: Lexicon) -> Iterator[str]:
    """Yield every sememe: once for each sense with it, and once for the inventory."""
    yield from lexicon.inventory
    for word in lexicon.words:
        for sense in lexicon.senses(word):
            yield from sense.sememes
