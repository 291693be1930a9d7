"""English words as in the Penn Treebank: punctuation and clitics are separate tokens."""

import re
from functools import lru_cache
from typing import Final
from unicodedata import normalize

_CLITIC: Final = re.compile(r"(?<=\w)(?=n't(?!\w))|(?<=[^\W_])(?=['](?:s|re|ve|ll|d|m)(?!\w))", re.IGNORECASE)
_TOKEN: Final = re.compile(
    r"""
      n't(?!\w) | '(?:s|re|ve|ll|d|m)(?!\w)       # clitics, apart already
    | (?:mr|mrs|ms|dr|st|mt|rt|jr|sr|vs|etc)\.    # abbreviations keep their full stop
    | (?:[^\W\d_]\.){2,}                          # u.s.
    | \w+(?:(?:'-|[-'&/@]|(?<=\d)[.,:](?=\d)|(?<=\b\w)\.(?=\w\b))\w+)*   # words, 10:30, 1,000.5, t.v, jack-o'-lantern
    | \.{2,} | -{2,} | !+ | \?+                   # ellipses, dashes, shouting
    | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)
_UNSEEN: Final = dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff")  # soft hyphens, and characters of no width
_ALIKE: Final = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "…": "...", **_UNSEEN})
_MARKED: Final = re.compile("[^\\W\\d_][\u0300-\u036f]+")
_QUOTES: Final = {"``": '"', "''": '"', "-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]"}


class EnglishCased:
    """Penn Treebank style: "doesn't" is "does n't", punctuation is separate, curved quotes become straight.

    >>> EnglishCased().segment("It doesn't work.")
    ['It', 'does', "n't", 'work', '.']

    Tokenized text does not change, except that ``-lrb-`` becomes its bracket, and `````` and ``''`` a straight quote. Letters
    with combining marks become one character if it exists; soft hyphens and zero-width characters are removed."""

    description: str = "English, marks and clitics apart, version 1"

    def segment(self, text: str) -> list[str]:
        return [word for chunk in _composed(text.translate(_ALIKE)).split() for word in _cut(chunk)]


class English(EnglishCased):
    """:class:`EnglishCased` on lower-cased text."""

    description = "English, lower-cased, marks and clitics apart, version 1"

    def segment(self, text: str) -> list[str]:
        return super().segment(text.lower())


class Gigaword:
    """English as in the Gigaword headlines (Rush et al. 2015): lower-cased, punctuation and clitics separate, digits as ``#``.

    Brackets are ``-lrb-`` and ``-rrb-``, opening quotes two grave accents, closing ones two apostrophes, and ``UNK`` is
    ``<unk>``. Text of Gigaword does not change, except for one word in ten thousand."""

    description: str = "English as in Gigaword headlines, version 1"

    def segment(self, text: str) -> list[str]:
        plain = _STRAIGHT_OPEN.sub(" `` ", _composed(text.translate(_CURVED))).replace('"', " '' ")
        plain = _PAIRED_QUOTES.sub(r" \g<0> ", plain)
        words: list[str] = []
        for chunk in plain.split():
            if chunk in _AS_THEY_ARE or chunk.lower() in _WRITTEN_BRACKETS:
                words.append(_AS_THEY_ARE.get(chunk, chunk.lower()))
            else:
                words += _cut_headline(chunk.lower().replace("#", "0"))
        return words


_CURVED: Final = str.maketrans({"’": "'", "‘": "'", "“": "``", "”": "''", "…": "...", **_UNSEEN})
_STRAIGHT_OPEN: Final = re.compile(r'(?<![^\s(\[-])"(?=\S)')
_PAIRED_QUOTES: Final = re.compile(r"``|''")
_AS_THEY_ARE: Final = {word: word for word in ("``", "''", "'", "`", "<unk>")} | {"UNK": "<unk>"}
_BRACKETS: Final = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_WRITTEN_BRACKETS: Final = frozenset(_BRACKETS.values())
_DIGIT: Final = re.compile(r"\d")
_ABBREVIATIONS: Final = (
    "adm ala ariz ark assn aug ave bancorp bros brig calif capt cmdr co col colo conn corp dec del dept feb fla ft ga gen "
    "gov ill inc jan jr kan ky la lt ltd maj mass md messrs mich minn miss mo mont mr mrs ms mt neb nev no nov oct okla ore pa "
    "prof rep rev sen sens sept sgt sr st tenn tex univ va vt wash wis wyo"
)
_WHOLE: Final = re.compile(
    rf"""
      [a-z]\.                                     # the letter of a name
    | (?:{"|".join(_ABBREVIATIONS.split())})\.
    | [.,']\d+s? | [a-z]+\$ | [a-z]+-             # .##, '##, us$, anti-
    | [\w.-]+(?:(?:\\/|&amp;)[\w.-]+)+ | \\/ | &amp;
    | [\w-]*(?:[a-z]\.){{2,}}-[\w-]+              # u.s.-led
    """,
    re.VERBOSE,
)
"""Words of Gigaword that the pattern of the Penn Treebank would split."""


@lru_cache(maxsize=1 << 16)
def _cut_headline(chunk: str) -> tuple[str, ...]:
    found = (chunk,) if chunk.isalpha() or _WHOLE.fullmatch(chunk) else _TOKEN.findall(_CLITIC.sub(" ", chunk))
    return tuple(_BRACKETS.get(word) or _DIGIT.sub("#", word) for word in found)


def _composed(text: str) -> str:
    """Compose letters with combining marks into one character if it exists; all else stays."""
    return text if text.isascii() else _MARKED.sub(lambda found: normalize("NFC", found[0]), text)


@lru_cache(maxsize=1 << 16)
def _cut(chunk: str) -> tuple[str, ...]:
    for written, plain in _QUOTES.items():
        if written in chunk.lower():
            chunk = re.sub(re.escape(written), plain, chunk, flags=re.IGNORECASE)
    return (chunk,) if chunk.isalpha() else tuple(_TOKEN.findall(_CLITIC.sub(" ", chunk)))
