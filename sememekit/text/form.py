"""The form of a text before segmentation: lower case, half width, one word for all numbers; and the normalisation of the
People's Daily text (section "Data" of Gu et al. 2018, and the released code)."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sememekit.errors import DataError
from sememekit.text.segmenters import Segmenter, WhiteSpace

NUMBER: Final = "<N>"
YEAR: Final = "<year>"
DATE: Final = "<date>"
TIME: Final = "<time>"

CLASSES: Final = frozenset({NUMBER, YEAR, DATE, TIME})
"""The paper writes ``<time>`` where the released files have ``<hour>``; sememe graphs know both."""

HALF_WIDTH_RULE: Final = "full-width letters, digits, % . / to half width"  # description of ``to_half_width`` for signatures
CLASSES_RULE: Final = "whole words that are numbers to <N>, years to <year>, days to <date>, hours to <time>; months stay words"
"""Description of ``classify`` for signatures."""
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
    """Convert full-width letters, digits, per cent sign, ． and slash to ASCII; other marks stay."""
    return text if text.isascii() else text.translate(_HALF_WIDTH)


@lru_cache(maxsize=1 << 16)
def classify(word: str) -> str:
    """Return the class of a half-width word, such as ``<N>``, or else the word."""
    patterns = ((_YEAR, YEAR), (_DATE, DATE), (_TIME, TIME), (_NUMBER, NUMBER))
    return next((name for pattern, name in patterns if pattern.fullmatch(word)), word)


@lru_cache(maxsize=1 << 16)
def stands_alone(word: str) -> bool:
    """Return whether a word needs no lexicon, since it is one of the four classes, a month, or punctuation and symbols."""
    if word in CLASSES or _MONTH.fullmatch(word):
        return True
    return all(unicodedata.category(character)[0] in "PS" for character in word)


def parse_tagged(line: str) -> list[tuple[str, str]]:
    """The ``word/TAG`` items of a line of the People's Daily corpus. Raises DataError for an item without a tag.

    A compound ``[word/n word/n]nt`` gives its parts; line numbers of some releases (``19980101-01-001-001/m``) are left out."""
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

    A surname is one character, or one of the two-character surnames; longer ``nr`` words are whole names."""
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
"""Pattern of the numbers, years, days and hours of ``classify`` in text without blanks; a single numeral is left out."""


def around_numbers(text: str) -> list[str]:
    """Split a half-width text around its numbers, years, days and hours, which alternate with the other text.

    >>> around_numbers("去年5月3日达20%")
    ['去年', '5月', '', '3日', '达', '20%', '']"""
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


_NUMBER_WORD: Final = re.compile(r"(?<!\S)[+-]?(?:\d+(?:[.,:/-]\d+)*|[.,]\d+)%?(?!\S)")

_WORD: Final = re.compile(r"\S+")

OPENING: Final = ("<s>", "<bos>", "<sos>")  # marks of the begin of a sentence that other programs write into text
CLOSING: Final = ("</s>", "<eos>")  # likewise of its end

MARK: Final = re.compile(
    r"(?<!\S)(?:UNK|(?i:<unk>|</?(?:s|t|bos|eos|sos|pad|cls|sep|mask)>|\[(?:unk|pad|cls|sep|mask)\]|<\|endoftext\|>))(?!\S)"
)
"""A mark of texts or models in the place of a word."""


def has_ends(text: str) -> bool:
    """Return whether a line begins or ends with sentence end marks."""
    return "<" in text and (text.lstrip().startswith(OPENING) or text.rstrip().endswith(CLOSING))


def without_ends(text: str) -> str:
    """Remove sentence end marks from a line, since the end would otherwise be predicted twice.

    >>> without_ends("<s> a b </s>")
    'a b'"""
    if not has_ends(text):
        return text
    bare = text.strip()
    while bare.startswith(OPENING):
        bare = bare[bare.index(">") + 1 :].lstrip()
    while bare.endswith(CLOSING):
        bare = bare[: bare.rindex("<")].rstrip()
    return bare


def cut_apart(parts: Iterable[str], segmenter: Segmenter) -> list[str]:
    """Segment a text given in parts; every second part is a word."""
    return [word for number, part in enumerate(parts) for word in ([part] if number % 2 else segmenter.segment(part))]


@dataclass(frozen=True)
class TextForm:
    """Normalisation of text: lower case, half width, and one word for all numbers, years, days or hours (default: none).

    ``preprocess`` and all commands that read text use it. A number is a word of digits, with an optional sign, with ``. , : /
    -`` between digits, and an optional ``%``. In text without white space numbers are known only after segmentation. So
    ``text`` is applied before the segmenter and ``words`` after it; ``cut`` does all three steps. The form is idempotent."""

    lower: bool = False  # bring the text into lower case
    numbers_to: str | None = None  # the word for every number, such as ``N``; None keeps the numbers
    half_width: bool = False  # bring full-width letters and digits into half width
    classes: bool = False  # one word each for numbers, years, days and hours, as in People's Daily (``classify``)

    @classmethod
    def recorded(cls, options: Mapping[str, Any], normalisation: str) -> "TextForm":
        """The form that the ``options`` and the ``normalisation`` of a signature describe."""
        rules = HALF_WIDTH_RULE in normalisation, CLASSES_RULE in normalisation
        return cls(options.get("lower", False), options.get("numbers_to"), *rules)

    @property
    def changes(self) -> bool:
        return self != TextForm()

    @property
    def rules(self) -> list[str]:
        """The rules in words, for the ``normalisation`` of a signature."""
        rules = [HALF_WIDTH_RULE] * self.half_width + ["lower case"] * self.lower
        rules += [f"numbers to {self.numbers_to}"] * (self.numbers_to is not None)
        return rules + [CLASSES_RULE] * self.classes

    def text(self, text: str) -> str:
        text = self.letters(text)
        return text if self.numbers_to is None else _NUMBER_WORD.sub(self.numbers_to.replace("\\", r"\\"), text)

    def letters(self, text: str) -> str:
        """Return a text in lower case and half width, as far as the form has them, with its numbers."""
        text, mark = to_half_width(text) if self.half_width else text, self.numbers_to
        if not self.lower:
            return text
        if mark is None or mark not in text or mark.lower() == mark:
            return text.lower()
        return _WORD.sub(lambda word: word[0] if word[0] == mark else word[0].lower(), text)

    def words(self, words: Iterable[str]) -> list[str]:
        """Normalise the words of the segmenter for ``text``."""
        words = map(classify, words) if self.classes else words
        if self.numbers_to is None:
            return list(words)
        return [self.numbers_to if _NUMBER_WORD.fullmatch(word) else word for word in words]

    def word(self, word: str) -> str:
        return self.words([self.text(word)])[0]

    def cut(self, text: str, segmenter: Segmenter) -> list[str]:
        """Return the words of a text by ``segmenter``, in this form."""
        read = self.text(text)
        if not self.classes or isinstance(segmenter, WhiteSpace):
            return self.words(segmenter.segment(read))
        return self.words(cut_apart(around_numbers(read), segmenter))

    def as_written(self, text: str) -> tuple[str, list[str]]:
        """Return ``self.text(text)``, and the original characters for each of its characters.

        If the length changes (for a number), the first character has the whole original, and the others have none. Joined, the
        parts are the original text."""
        read, written = "", []
        for stretch in re.findall(r"\s+|\S+", text):
            form, letters = self.text(stretch), self.letters(stretch)
            read += form
            number = self.numbers_to is not None and _NUMBER_WORD.fullmatch(letters) is not None
            if not number and len(letters) == len(stretch):
                written += stretch
                continue
            parts = [] if number else [(character, self.letters(character)) for character in stretch]
            if sum(len(part) for _, part in parts) != len(form):
                parts = [(stretch, form)]
            for own, part in parts:
                written += [own, *[""] * (len(part) - 1)]
        return read, written
