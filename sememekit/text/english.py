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
