"""The content lemmas of a definition: its words without inflections, and without the words of every definition."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable

from sememekit.config import resources_folder
from sememekit.sememes.lemmas import Lemmas
from sememekit.sememes.reading import read_lexicon_text

_WORD = re.compile("[A-Za-z]+(?:-[A-Za-z]+)*|[\u4e00-\u9fff]+")
RARE = 4
"""A base form must occur at least once for every four times that the word itself does."""
_ENDINGS = (("ies", "y"), ("es", "e"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""))


def stop_words() -> frozenset[str]:
    """English and Chinese words that say nothing in a definition: ours, in ``resources/lexicon/stop-words.txt``."""
    lines = read_lexicon_text(resources_folder() / "lexicon" / "stop-words.txt").lines()
    return frozenset(word for line in lines if not line.startswith("# ") for word in line.split())


def split_words(text: str) -> list[str]:
    """Words in lower case; Chinese is cut by jieba without guessing."""
    words = []
    for match in _WORD.findall(text):
        if match[0] > "z":
            words += _cut_chinese(match)
        else:
            words.append(match.lower())
    return words


def _cut_chinese(text: str) -> list[str]:
    import jieba

    jieba.setLogLevel(logging.WARNING)
    return list(jieba.cut(text, HMM=False))


class ContentWords:
    """Takes definitions apart. The base form of a word is the one among those possible that occurs most in the definitions.

    A base form that occurs much less than the word itself is none: "number" is not the comparative of "numb", nor does
    "united" come from "unite" as far as dictionaries go.

    Args:
        texts: all definitions; what counts as a word of the language is what occurs in them.
        lemmas: base forms; without them English endings are taken off where what is left occurs in the definitions.
    """

    def __init__(self, texts: Iterable[str], lemmas: Lemmas | None) -> None:
        self._stop = stop_words()
        self._bases: Callable[[str], Iterable[str]] = lemmas.bases if lemmas is not None else self._by_ending
        counts = Counter(word for text in texts for word in split_words(text))
        self._counts = counts
        self._base = {word: self._choose(word) for word in counts}

    def _choose(self, word: str) -> str:
        bases = [base for base in self._bases(word) if self._counts[base] * RARE >= self._counts[word]]
        return max(bases, key=lambda base: self._counts[base]) if bases else word

    def _by_ending(self, word: str) -> list[str]:
        found = []
        for ending, stands_for in _ENDINGS:
            if word.endswith(ending) and len(word) > len(ending) + 2 and not word.endswith("ss"):
                stem = word.removesuffix(ending)
                found += [stem + stands_for, *([stem[:-1]] if stem[-1:] == stem[-2:-1] and not stands_for else [])]
        return found

    def __call__(self, text: str) -> tuple[str, ...]:
        """The content lemmas of one definition, each once, in the order of the text."""
        bases = (self._base.get(word, word) for word in split_words(text) if word not in self._stop)
        kept = (base for base in bases if base not in self._stop and (len(base) > 1 or base > "z"))
        return tuple(dict.fromkeys(kept))
