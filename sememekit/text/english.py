"""Cutting English into words as the Penn Treebank does: marks and clitics stand apart."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

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
_ALIKE: Final = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "…": "..."})
_QUOTES: Final = {"``": '"', "''": '"', "-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]"}


class EnglishCased:
    """Penn Treebank style: "doesn't" is "does n't", marks stand apart, curved quotes are straight; letters keep their case.

    Text that is cut already comes out as it went in, so tokenised and plain files go together; only ``-lrb-`` becomes the
    bracket that it stands for, and `````` and ``''`` become a straight quote.
    """

    description: str = "English, marks and clitics apart, version 1"

    def segment(self, text: str) -> list[str]:
        """Words of a text, in order."""
        words: list[str] = []
        for chunk in text.translate(_ALIKE).split():
            words += _cut(chunk)
        return words


class English(EnglishCased):
    """:class:`EnglishCased` on lower-cased text."""

    description = "English, lower-cased, marks and clitics apart, version 1"

    def segment(self, text: str) -> list[str]:
        """Words of a text, in order."""
        return super().segment(text.lower())


class Gigaword:
    """English as the headlines of Gigaword have it (Rush et al. 2015): lower-cased, marks and clitics apart, digits as ``#``.

    Brackets are ``-lrb-`` and ``-rrb-``, opening quotes two grave accents, closing ones two apostrophes, and ``UNK`` is
    ``<unk>``. Text of Gigaword itself comes out as it went in, a word in ten thousand apart.
    """

    description: str = "English as in Gigaword headlines, version 1"

    def segment(self, text: str) -> list[str]:
        """Words of a text, in order."""
        plain = _STRAIGHT_OPEN.sub(" `` ", text.translate(_CURVED)).replace('"', " '' ")
        plain = _PAIRED_QUOTES.sub(r" \g<0> ", plain)
        words: list[str] = []
        for chunk in plain.split():
            if chunk in _AS_THEY_ARE or chunk.lower() in _WRITTEN_BRACKETS:
                words.append(_AS_THEY_ARE.get(chunk, chunk.lower()))
            else:
                words += _cut_headline(chunk.lower().replace("#", "0"))
        return words


_CURVED: Final = str.maketrans({"’": "'", "‘": "'", "“": "``", "”": "''", "…": "..."})
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
"""What stands as a word in Gigaword although it would be cut elsewhere."""


@lru_cache(maxsize=1 << 16)
def _cut_headline(chunk: str) -> tuple[str, ...]:
    """Words of a lower-cased text without white space."""
    found = (chunk,) if chunk.isalpha() or _WHOLE.fullmatch(chunk) else _TOKEN.findall(_CLITIC.sub(" ", chunk))
    return tuple(_BRACKETS.get(word) or _DIGIT.sub("#", word) for word in found)


@lru_cache(maxsize=1 << 16)
def _cut(chunk: str) -> tuple[str, ...]:
    """Words of a text without white space."""
    chunk = _bare(chunk)
    if chunk.isalpha():
        return (chunk,)
    return tuple(_TOKEN.findall(_CLITIC.sub(" ", chunk)))


def _bare(chunk: str) -> str:
    """The chunk with quotes and brackets in one spelling."""
    for written, plain in _QUOTES.items():
        if written in chunk.lower():
            chunk = re.sub(re.escape(written), plain, chunk, flags=re.IGNORECASE)
    return chunk
