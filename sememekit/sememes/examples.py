"""Examples of senses in a lexicon, as tokens with the place of the word, and the inflected forms of English words."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from sememekit.config import resources_folder
from sememekit.sememes.lexicon import Lexicon
from sememekit.sememes.reading import read_lexicon_text

_VOWELS = "aeiou"


class SenseExample(NamedTuple):
    """Tokens of an example, the place of the word among them (from 0), the word, and the number of its sense (from 1)."""

    tokens: tuple[str, ...]
    position: int
    word: str
    sense: int


def examples_of(lexicon: Lexicon) -> Iterator[SenseExample]:
    """Yield the examples of a lexicon; senses without an example that has the word are left out.

    >>> next(examples_of(open_lexicon("open:en"))).tokens"""
    for word in lexicon.words:
        for number, sense in enumerate(lexicon.senses(word), start=1):
            if (place := place_of(word, sense.example)) is not None:
                yield SenseExample(tuple(sense.example.split()), place, word, number)


def place_of(word: str, example: str) -> int | None:
    """Return the place of the first token of an example that is the word or an inflected form of it; None without one."""
    forms = english_forms(word) if word.isascii() else frozenset({word})
    return next((place for place, token in enumerate(example.split()) if token in forms), None)


@cache
def english_forms(lemma: str) -> frozenset[str]:
    """Return a word with its regular forms, of any part of speech, and its forms in ``irregular-forms.txt``.

    >>> "stopped" in english_forms("stop"), "went" in english_forms("go")
    (True, True)"""
    stem = lemma[:-1] if lemma.endswith("e") else lemma
    stems = {stem}
    if lemma.endswith("y") and lemma[-2:-1] not in _VOWELS:
        stems = {lemma[:-1] + "i"}
    if (
        len(lemma) > 2
        and lemma[-1] not in "aeiouwxy"
        and lemma[-2] in _VOWELS
        and (lemma[-3] not in _VOWELS or lemma[-3:-1] == "ui")
    ):
        stems.add(lemma + lemma[-1])
    forms = {
        lemma,
        lemma + "s",
        lemma + "'s",
        lemma + "ing",
        stem + "ing",
        *(f"{one}ing" for one in stems if not one.endswith("i")),
    }
    forms |= {one + ending for one in stems for ending in ("ed", "er", "est", "es")}
    forms |= {
        lemma[: -len(end)] + new
        for end, new in (("ie", "ying"), ("fe", "ves"), ("f", "ves"), ("c", "cked"), ("c", "cking"))
        if lemma.endswith(end)
    }
    return frozenset(forms | set(_irregular().get(lemma, ())))


@cache
def _irregular() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for _, line in read_lexicon_text(resources_folder() / "lexicon" / "irregular-forms.txt").entries(comment="# "):
        lemma, *forms = line.split()
        found[lemma] = (*found.get(lemma, ()), *forms)
    return found
