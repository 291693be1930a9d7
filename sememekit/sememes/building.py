"""Build a sememe graph from a vocabulary and lexicons."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType

import numpy as np

from sememekit.errors import GraphError
from sememekit.sememes.graph import HasTokens, SememeGraph
from sememekit.sememes.lemmas import Lemmas
from sememekit.sememes.lexicon import Lexicon, Sense
from sememekit.sememes.special_tokens import PRIVATE, PUNCTUATION, UNKNOWN, SpecialTokens, is_punctuation
from sememekit.sememes.word_entry import LexiconSource, SenseEntry, Source, WordEntry, merge_senses

BLANK = "▁"  # mark for the blank before a word in the pieces of a tokenizer
_TO_HALF_WIDTH = {0x3000: 0x20, **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}}
_TO_FULL_WIDTH = {half: full for full, half in _TO_HALF_WIDTH.items()}


def build_graph(
    vocabulary: HasTokens,
    lexicons: Sequence[Lexicon],
    lemmas: Lemmas | None = None,
    words: Mapping[str, str | None] = MappingProxyType({}),
) -> SememeGraph:
    """Give every word of the vocabulary its senses.

    ``words`` has for pieces of a tokenizer the word to look up, or None for a piece inside a word, which no lexicon annotates.

    The first rule that applies to a word gives its senses:

    1. a special token has the sememes of its rule (``special_tokens``), unless a lexicon lists it (such as ``<unk>``);
    2. the first lexicon that has a sense with sememes for the word as written, in half-width or full-width ASCII, or without
       the ``▁`` that marks a blank before a piece;
    3. the first lexicon that has a sense with sememes for the lemma of the word;
    4. a token of punctuation or symbols alone has the sememe 标点;
    5. any other word has the one sense {``<unk>``} and counts as not annotated.

    Senses with equal sememes are merged; senses keep the order of the lexicon. Raises GraphError: no lexicon, or no words."""
    if not lexicons:
        raise GraphError("build a sememe graph from at least one lexicon: --source open, or --source FORMAT:PATH")
    names = _distinct_names(lexicons)
    special = SpecialTokens(lexicons)
    entries, by_lemma = [], 0
    for word in vocabulary.tokens:
        sought = words.get(word, word)
        entry = _annotate(word, sought, lexicons, names, special)
        if lemmas is not None and sought and not entry.is_from_lexicon and entry.source != Source.SPECIAL:
            found = _by_lemma(sought, lemmas, lexicons, names)
            found = found and replace(found, word=word)
            by_lemma += found is not None
            entry = found or entry
        entries.append(entry)
    for name, lexicon in zip(names, lexicons, strict=True):
        if lexicon.shuffle_seed is not None:
            _exchange(entries, name, lexicon.shuffle_seed)
    sources = [LexiconSource(name, lexicon.sha256) for name, lexicon in zip(names, lexicons, strict=True)]
    history = [f"{by_lemma} words have the senses of their lemma ({lemmas.name}, sha256 {lemmas.sha256})"] if lemmas else []
    return SememeGraph(entries, vocabulary.fingerprint, sources, history)


def _exchange(entries: list[WordEntry], name: str, seed: int) -> None:
    """Give each word from a lexicon all senses of another word of like frequency; the vocabulary is sorted by counts."""
    places = [place for place, entry in enumerate(entries) if entry.source == name]
    generator = np.random.default_rng(seed)
    for block in np.array_split(places, max(1, len(places) // 20)):  # words of like frequency
        order = generator.permutation(block).tolist()
        given = [entries[place].senses for place in order]
        for place, senses in zip(order, (*given[1:], *given[:1]), strict=True):  # a circle: nobody keeps their own
            entries[place] = replace(entries[place], senses=senses)


def spellings(word: str) -> Iterator[str]:
    """Return the word as it is, with its ASCII in half and in full width, and without the blank mark of a piece, each once."""
    forms = (word, word.translate(_TO_HALF_WIDTH), word.translate(_TO_FULL_WIDTH), word.removeprefix(BLANK) or word)
    return iter(dict.fromkeys(forms))


def find_senses(word: str, lexicon: Lexicon) -> tuple[Sense, ...]:
    """Return the senses of the first spelling that has a sense with sememes."""
    found = (tuple(sense for sense in lexicon.senses(form) if sense.sememes) for form in spellings(word))
    return next(filter(None, found), ())


def _annotate(
    word: str, sought: str | None, lexicons: Sequence[Lexicon], names: Sequence[str], special: SpecialTokens
) -> WordEntry:
    rule = special.sememes_of(word)
    if rule is not None and not (word in PRIVATE and any(find_senses(word, lexicon) for lexicon in lexicons)):
        return WordEntry(word, Source.SPECIAL, (_sense(rule),))
    for name, lexicon in zip(names, lexicons, strict=True):
        if sought is not None and (senses := find_senses(sought, lexicon)):
            return WordEntry(word, name, merge_senses(senses))
    if is_punctuation(word):
        return WordEntry(word, Source.PUNCTUATION, (_sense((special.resolve(PUNCTUATION),)),))
    return WordEntry(word, Source.NONE, (_sense((UNKNOWN,)),))


def _by_lemma(word: str, lemmas: Lemmas, lexicons: Sequence[Lexicon], names: Sequence[str]) -> WordEntry | None:
    for lemma, (name, lexicon) in product(lemmas.bases(word), zip(names, lexicons, strict=True)):
        if senses := find_senses(lemma, lexicon):
            return WordEntry(word, name, merge_senses(lexicon.lend(senses, word)))
    return None


def _sense(sememes: tuple[str, ...]) -> SenseEntry:
    ordered = tuple(sorted(set(sememes)))
    return SenseEntry(ordered, " ".join(ordered))


def _distinct_names(lexicons: Sequence[Lexicon]) -> list[str]:
    names: list[str] = []
    for lexicon in lexicons:
        same = sum(lexicon.name == other.name for other in lexicons[: len(names)])
        names.append(f"{lexicon.name} ({same + 1})" if same else lexicon.name)
    return names
