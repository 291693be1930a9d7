"""A sememe base out of a dictionary: a small defining vocabulary, and for each sense the defining words of its definition.

The idea is that of DictSKB (Qi et al. 2021): dictionaries explain many words by few, and those few are taken for sememes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

FEW = 2
"""A definition that yields fewer defining words than this is helped by the definitions of its rarer words."""


@dataclass(frozen=True)
class Definition:
    """One sense of a word and the content lemmas of its definition, in the order of the text, each once."""

    word: str
    lemmas: tuple[str, ...]
    part_of_speech: str = ""
    text: str = ""


@dataclass(frozen=True)
class DefiningVocabulary:
    """What was chosen, and what it reaches.

    Attributes:
        words: the defining lemmas, most frequent first.
        sememes: for each definition, in the order given, its defining lemmas; empty where there are none.
        helped: definitions that needed the definitions of their words.
        missed: definitions without any.
    """

    words: tuple[str, ...]
    sememes: tuple[tuple[str, ...], ...]
    helped: int
    missed: int


def choose_defining_words(definitions: Sequence[Definition], size: int) -> DefiningVocabulary:
    """Choose the ``size`` lemmas that occur in most definitions, and annotate every sense with those of its definition.

    Equal definitions count once, so that a synset with many words has one voice. A sense whose definition yields fewer than two
    defining lemmas is given, from left to right, those of the first definition of each rarer word in it, until it has two. A
    word that is a defining lemma itself is one of its own sememes, as the simplest words of HowNet are.
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
            more = dict.fromkeys(lemma for lemma in _expand(one.lemmas, chosen, first) if lemma not in found)
            helped += bool(more)
            found += list(more)[: FEW - len(found)]
        if one.word in chosen:
            found.append(one.word)
        missed += not found
        sememes.append(tuple(dict.fromkeys(found)))
    return DefiningVocabulary(tuple(words), tuple(sememes), helped, missed)


def _expand(lemmas: Iterable[str], chosen: frozenset[str], first: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Defining lemmas of the first definitions of the rarer ones among ``lemmas``, in order."""
    rare = (lemma for lemma in lemmas if lemma not in chosen)
    return [inner for lemma in rare for inner in first.get(lemma, ()) if inner in chosen]
