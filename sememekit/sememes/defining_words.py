"""Sememes from a dictionary: a small defining vocabulary, and for each sense the defining words of its definition.

After DictSKB (Qi et al. 2021): dictionaries explain many words by few, and those few are taken for sememes. The content lemmas
of a definition are its words without inflections and stop words.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sememekit.config import resources_folder
from sememekit.sememes.lemmas import Lemmas
from sememekit.sememes.reading import read_lexicon_text
from sememekit.text.scripts import HAN_RANGES

FEW = 2
"""Fewer defining words than this in a definition are supplemented by the definitions of its rarer words."""


@dataclass(frozen=True)
class Definition:
    """One sense of a word and the content lemmas of its definition, in the order of the text, each once."""

    word: str
    lemmas: tuple[str, ...] = ()
    part_of_speech: str = ""
    text: str = ""


@dataclass(frozen=True)
class DefiningVocabulary:
    """The defining lemmas, most frequent first, and the sememes of each definition: its defining lemmas, possibly none.

    ``helped`` definitions needed the definitions of their words, ``missed`` ones have no defining lemma.
    """

    words: tuple[str, ...]
    sememes: tuple[tuple[str, ...], ...]
    helped: int
    missed: int


def choose_defining_words(definitions: Sequence[Definition], size: int) -> DefiningVocabulary:
    """Choose the ``size`` lemmas that occur in most definitions, and annotate every sense with those of its definition.

    Equal definitions count once, so that a synset with many words counts once. A sense with fewer than two defining lemmas is
    given, from left to right, those of the first definition of each rarer word in its definition, until it has two. A word that
    is a defining lemma itself is one of its own sememes, as the simplest words of HowNet are.
    """
    counts = Counter(lemma for lemmas in {(one.text, one.lemmas) for one in definitions} for lemma in lemmas[1])
    words = sorted(counts, key=lambda lemma: (-counts[lemma], lemma))[:size]
    chosen = frozenset(words)
    first: dict[str, tuple[str, ...]] = {}
    for one in definitions:
        first.setdefault(one.word, one.lemmas)
    sememes, helped, missed = [], 0, 0
    for one in definitions:
        found = [lemma for lemma in one.lemmas if lemma in chosen]
        if len(found) < FEW:
            rare = (lemma for lemma in one.lemmas if lemma not in chosen)
            defining = (inner for lemma in rare for inner in first.get(lemma, ()) if inner in chosen)
            more = dict.fromkeys(lemma for lemma in defining if lemma not in found)
            helped += bool(more)
            found += list(more)[: FEW - len(found)]
        if one.word in chosen:
            found.append(one.word)
        missed += not found
        sememes.append(tuple(dict.fromkeys(found)))
    return DefiningVocabulary(tuple(words), tuple(sememes), helped, missed)


_WORD = re.compile(f"[A-Za-z]+(?:-[A-Za-z]+)*|[{HAN_RANGES}]+")
RARE = 4
"""A base form must occur at least once for every four times that the word itself does."""
_ENDINGS = (("ies", "y"), ("es", "e"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""))


def stop_words() -> frozenset[str]:
    """English and Chinese stop words, from ``resources/lexicon/stop-words.txt``."""
    lines = read_lexicon_text(resources_folder() / "lexicon" / "stop-words.txt").lines()
    return frozenset(word for line in lines if not line.startswith("# ") for word in line.split())


def split_words(text: str) -> list[str]:
    """Words in lower case; Chinese is segmented by jieba without its hidden Markov model."""
    words = []
    for match in _WORD.findall(text):
        if match[0] > "z":
            import jieba

            jieba.setLogLevel(logging.WARNING)
            words += jieba.cut(match, HMM=False)
        else:
            words.append(match.lower())
    return words


class ContentWords:
    """Content lemmas of definitions. The base form of a word is the candidate that occurs most in the definitions.

    A base form that occurs much less than the word itself is none: "number" is not the comparative of "numb", and "united" is
    not taken for "unite" where dictionaries rarely use that.

    Args:
        texts: all definitions; they also say which words exist.
        lemmas: base forms; without them English endings are removed where the rest occurs in the definitions.
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
        bases = (self._base.get(word, word) for word in split_words(text) if word not in self._stop)
        kept = (base for base in bases if base not in self._stop and (len(base) > 1 or base > "z"))
        return tuple(dict.fromkeys(kept))
