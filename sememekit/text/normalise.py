"""Normalisation of the People's Daily text (section "Data" of Gu et al. 2018, and the released code)."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from sememekit.errors import DataError

NUMBER: Final = "<N>"
YEAR: Final = "<year>"
DATE: Final = "<date>"
TIME: Final = "<time>"

CLASSES: Final = frozenset({NUMBER, YEAR, DATE, TIME})
"""The paper writes ``<time>`` where the released files have ``<hour>``; sememe graphs know both."""

HALF_WIDTH_RULE: Final = "full-width letters, digits, % . / to half width"
"""What ``to_half_width`` does."""
CLASSES_RULE: Final = "whole words that are numbers to <N>, years to <year>, days to <date>, hours to <time>; months stay words"
"""What ``classify`` does."""
RULE: Final = f"{HALF_WIDTH_RULE}; surname and given name joined; {CLASSES_RULE}"

_HALF_WIDTH: Final = {
    code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if chr(code - 0xFEE0).isalnum() or code in (0xFF05, 0xFF0E, 0xFF0F)
}
_NUMERAL: Final = "〇零○一二三四五六七八九十百千万亿"
_DIGITS: Final = r"\d+(?:[.·]\d+)*"
_NUMBER: Final = re.compile(
    rf"""
      [+-]?{_DIGITS} (?: / {_DIGITS} )? [%‰]? [十百千万亿]*     # 12  3.5  13·4亿  1/3  40%  5236万
    | {_DIGITS} (?: [∶:—~-] {_DIGITS} )+ [%万亿]*               # a score 4∶0, a range 3—5
    | [{_NUMERAL}]+ (?: [点·] [{_NUMERAL}]+ )?                  # 一  三百亿  三点五
    | [百千万]分之 [{_NUMERAL}点\d.]+                            # 百分之六十
    | [{_NUMERAL}]+ 分之 [{_NUMERAL}]+                          # 三分之一
    | 第 (?: [{_NUMERAL}]{{2,}} | \d{{2,}} )                    # 第十七, but 第一 stays a word
    """,
    re.VERBOSE | re.ASCII,
)
_YEAR: Final = re.compile(r"(?:\d{2,4}|[〇零○一二三四五六七八九]{4})年", re.ASCII)
_DATE: Final = re.compile(rf"(?:\d{{1,2}}|[{_NUMERAL}]{{1,3}})日", re.ASCII)
_TIME: Final = re.compile(rf"(?:\d{{1,2}}|[{_NUMERAL}]{{1,3}})时", re.ASCII)
_MONTH: Final = re.compile(r"(?:\d{1,2}|[一二三四五六七八九十]{1,2})月份?", re.ASCII)

_ENDS: Final = frozenset("。！？")
_CLOSERS: Final = frozenset("”’」』）》】〉")


def to_half_width(text: str) -> str:
    """Full-width letters, digits, per cent sign, ． and slash to ASCII; other marks stay."""
    return text if text.isascii() else text.translate(_HALF_WIDTH)


@lru_cache(maxsize=1 << 16)
def classify(word: str) -> str:
    """The class of a word in half width, such as ``<N>``, or the word itself."""
    patterns = ((_YEAR, YEAR), (_DATE, DATE), (_TIME, TIME), (_NUMBER, NUMBER))
    return next((name for pattern, name in patterns if pattern.fullmatch(word)), word)


@lru_cache(maxsize=1 << 16)
def stands_alone(word: str) -> bool:
    """Whether a word needs no lexicon: one of the four classes, a month, or only punctuation and symbols."""
    if word in CLASSES or _MONTH.fullmatch(word):
        return True
    return all(unicodedata.category(character)[0] in "PS" for character in word)


def parse_tagged(line: str) -> list[tuple[str, str]]:
    """The ``word/TAG`` items of a line of the People's Daily corpus. Raises DataError for an item without a tag.

    A compound ``[word/n word/n]nt`` gives its parts; the number that opens a line in some releases (``19980101-01-001-001/m``)
    is left out.
    """
    items = []
    for item in line.split():
        word, slash, tag = item.rpartition("/")
        if not slash or not word or not tag:
            raise DataError(f"expected word/TAG, found {item[:40]!r}; is this the tagged month 199801.txt?")
        if len(word) > 1 and word[0] == "[":
            word = word[1:]
        items.append((word, tag.partition("]")[0]))
    if items and re.fullmatch(r"\d{8}-\d{2}-\d{3}-\d{3}", items[0][0]):
        del items[0]
    return items


_COMPOUND_SURNAME: Final = re.compile(
    "欧阳|司马|上官|诸葛|司徒|尉迟|皇甫|端木|公孙|慕容|令狐|宇文|长孙|夏侯|轩辕|东方|南宫|西门|太史|申屠|闻人|赫连|澹台"
)


def join_names(items: Sequence[tuple[str, str]]) -> list[str]:
    """The words of a line, with surname and given name (both tagged ``nr``) joined.

    A surname is one character, or one of the two-character surnames; longer ``nr`` words are whole names.
    """
    words: list[str] = []
    waiting = False  # whether the last word is a surname that may still get its given name
    for word, tag in items:
        if waiting and tag == "nr" and len(word) <= 2:
            words[-1] += word
            waiting = False
        else:
            words.append(word)
            waiting = tag == "nr" and (len(word) == 1 or _COMPOUND_SURNAME.fullmatch(word) is not None)
    return words


_STRETCHES: Final = re.compile(
    rf"""
    ( <[A-Za-z]+>
    | [〇零○一二三四五六七八九]{{4}}年
    | [{_NUMERAL}]{{2,3}}[日时]
    | 第 (?: [{_NUMERAL}]{{2,}} | \d{{2,}} )
    | [百千万]分之 [{_NUMERAL}点\d.]+ | [{_NUMERAL}]+ 分之 [{_NUMERAL}]+
    | {_DIGITS} (?: [/∶:—~-] {_DIGITS} )* (?: [%‰] | 年 | 日 | 时 | 月份? | [十百千万亿]+ )?
    | [{_NUMERAL}]{{2,}} (?: [点·] [{_NUMERAL}]+ )?
    )""",
    re.VERBOSE | re.ASCII,
)
"""What ``classify`` takes for a number, year, day or hour where no blanks say where it ends; a numeral alone is left out."""


def around_numbers(text: str) -> list[str]:
    """A text in half width cut around its numbers, years, days and hours: other stretches and these in turns.

    >>> around_numbers("去年5月3日达20%")
    ['去年', '5月', '', '3日', '达', '20%', '']
    """
    return _STRETCHES.split(text)


def split_sentences(words: Sequence[str]) -> Iterator[list[str]]:
    """Sentences of a paragraph: cut after 。！？ and the closing quotes and brackets that follow."""
    sentence: list[str] = []
    ended = False
    for word in words:
        if ended and word not in _CLOSERS and word not in _ENDS:
            yield sentence
            sentence, ended = [], False
        sentence.append(word)
        ended = ended or word in _ENDS
    if sentence:
        yield sentence
