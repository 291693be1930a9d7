"""Words, senses and sememes for other models: plain lists, arrays or words in, a sememe graph out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sememekit.errors import ConfigError
from sememekit.nn.checks import array_of
from sememekit.sememes import Lexicon, SememeGraph, build_graph, open_lexicon
from sememekit.sememes.lemmas import open_lemmas
from sememekit.sememes.special_tokens import UNKNOWN
from sememekit.sememes.word_entry import SenseEntry, Source, WordEntry
from sememekit.text.pieces import Blanks, whole_words

GIVEN: Final = "given"  # the source of senses given by a user

_DIGITS: Final = 9
"""Digits of a number used as a name, so that names sort like numbers; each further digit adds a leading colon."""

Sememe = int | str
Nested = Sequence[Sequence[Sequence[Sememe]]]  # for each word its senses, for each sense its sememes


@final
@dataclass(frozen=True)
class Words:
    """V words in any order, in place of a ``Vocabulary`` for output layers.

    ``tokens``: names of the words; ``counts``: (V,) how often each is a target; ``fingerprint``: of the graph, or empty."""

    tokens: tuple[str, ...]
    counts: NDArray[np.int64]
    fingerprint: str = ""

    def __len__(self) -> int:
        return len(self.tokens)


@final
class Senses:
    """The senses of V words and the sememes of each sense; word ids come from any tokenizer, in any order.

    >>> senses = Senses([[[0, 1], [2]], [[1]], []])    # word 0 has two senses, word 2 has none
    >>> senses.num_words, senses.num_senses, senses.sememes
    (3, 4, (0, 1, 2, '<unk>'))

    Sememes are names or numbers. A word without senses has the one sense {``<unk>``}, as in the papers. Senses of a word with
    equal sememes are merged, and senses without sememes left out. ``graph`` is the ``SememeGraph`` for building layers;
    ``sememes`` are the K sememes in the order of the layers: numbers rising, names by spelling."""

    sememes: tuple[Sememe, ...]

    def __init__(self, senses: Nested | SememeGraph, words: Sequence[str] | None = None) -> None:
        """Take for each word a list of senses, each a list of sememes; or a ``SememeGraph`` of words in the same order.

        ``words``: V names, for messages and explanations (default: numbers). Raises ConfigError: no words, other nesting,
        sememes that are neither all names nor all numbers of 0 or more, or a wrong number of names."""
        if isinstance(senses, SememeGraph):
            self.graph, self.sememes = senses, (*senses.sememes,)
            return
        senses = _listed(senses, "senses", "a list of words")
        if not senses:
            raise ConfigError("Senses: no words; give a list of senses for each word of the tokenizer, [] for one without")
        words = None if words is None else _strings(words, "Senses: words")
        if words is not None and len(words) != len(senses):
            raise ConfigError(f"Senses: {len(words)} words, but senses for {len(senses)}; give one word for each")
        read = [
            [
                [_checked(sememe) for sememe in _listed(sense, f"sense {place} of word {number}", "a list of sememes")]
                for place, sense in enumerate(_listed(word, f"word {number}", "a list of senses"))
            ]
            for number, word in enumerate(senses)
        ]
        given = {sememe for word in read for sense in word for sememe in sense}
        if len({isinstance(sememe, str) for sememe in given}) > 1:
            raise ConfigError("Senses: some sememes are names and some are numbers; give all as one or as the other")
        names = {sememe: sememe if isinstance(sememe, str) else _named(sememe) for sememe in given}
        spelled = tuple(str(number) for number in range(len(senses))) if words is None else tuple(words)
        entries = (
            _entry(name, [[names[sememe] for sememe in sense] for sense in word])
            for name, word in zip(spelled, read, strict=True)
        )
        self.graph = SememeGraph(entries, GIVEN)
        back = {name: sememe for sememe, name in names.items()}
        self.sememes = tuple(back.get(name, name) for name in self.graph.sememes)

    @classmethod
    def from_arrays(cls, sense_offsets: Any, sememe_offsets: Any, sememes: Any) -> Senses:
        """Take index arrays (or tensors).

        Args:
            sense_offsets: (V + 1,) word w has the senses ``sense_offsets[w]`` to ``sense_offsets[w + 1]`` - 1.
            sememe_offsets: (S + 1,) sense s has ``sememes[sememe_offsets[s]:sememe_offsets[s + 1]]``.
            sememes: numbers of sememes.

        Raises ConfigError: offsets that do not rise from 0 to the length of the array that they divide."""
        given = {"sense_offsets": sense_offsets, "sememe_offsets": sememe_offsets, "sememes": sememes}
        whole = "whole numbers of 0 or more"
        words, senses, members = (array_of(array, f"Senses.from_arrays: {what}", whole) for what, array in given.items())
        if any((array != np.rint(array)).any() for array in (words, senses, members)):
            raise ConfigError(f"Senses.from_arrays: offsets and sememes must be {whole}; round them first")
        words, senses, members = (array.astype(np.int64) for array in (words, senses, members))
        for name, offsets, size in (("sense_offsets", words, len(senses) - 1), ("sememe_offsets", senses, len(members))):
            if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != size or (np.diff(offsets) < 0).any():
                raise ConfigError(f"Senses.from_arrays: {name} must rise from 0 to {size}, given {offsets[:8].tolist()} ...")
        sets = [members[begin:end].tolist() for begin, end in pairwise(senses.tolist())]
        return cls([sets[begin:end] for begin, end in pairwise(words.tolist())])

    @classmethod
    def of_words(
        cls, words: Sequence[str], *lexicons: Lexicon | str, clean: Callable[[str], str | None] = str, lemmas: str = ""
    ) -> Senses:
        """Look up words in lexicons as ``build_graph`` does, with sememes by rule for special tokens, numbers and marks.

        >>> Senses.of_words(["工人", "<pad>", "学生"], "open").num_words
        3

        Args:
            words: V different words in the order of their ids, such as ``tokenizer.convert_ids_to_tokens(range(V))``.
            lexicons: open lexicons, or ``FORMAT:PATH``; ``open`` ships with sememekit.
            clean: function from a token to the word to look up (or None), such as ``lambda token: token.removeprefix("▁")``.
            lemmas: a file of ``lemma TAB form`` lines, or ``wordnet``; unknown forms get the senses of their lemma.

        Raises ConfigError: a string in place of the list of words."""
        if isinstance(words, str):
            raise ConfigError(f"Senses.of_words: words must be a list, given the string {words!r:.60}; give [{words!r:.60}]")
        words = _strings(words, "Senses.of_words: words")
        opened = [open_lexicon(one) if isinstance(one, str) else one for one in (lexicons or ("open",))]
        cleaned = [clean(word) for word in words]
        places = {word: place for place, word in enumerate(dict.fromkeys(word for word in cleaned if word is not None))}
        found = build_graph(
            Words(tuple(places), np.zeros(len(places), dtype=np.int64), GIVEN), opened, open_lemmas(lemmas) if lemmas else None
        )
        entries = (
            _entry(word, ()) if key is None else replace(found.entry(places[key]), word=word)
            for word, key in zip(words, cleaned, strict=True)
        )
        return cls(SememeGraph(entries, GIVEN, found.lexicons))

    @classmethod
    def of_tokenizer(cls, tokenizer: Any, *lexicons: Lexicon | str, lemmas: str = "", blanks: Blanks = "auto") -> Senses:
        """Look up the vocabulary of a BPE, WordPiece or SentencePiece tokenizer, and print its coverage.

        The tokenizer is from ``transformers`` or ``tokenizers``, or a ``SentencePieceProcessor``; ``lexicons`` and ``lemmas``
        are as in ``of_words``. Words are looked up as written, then in lower case.

        Marks such as ``Ġ``, ``▁`` and ``</w>`` are stripped. A token inside a word (``##ing``) has no senses, since its meaning
        depends on the word. ``blanks`` says where blanks stood in the tokenizer's training text: "always" before each word, so
        that a token without a mark is inside a word; "never" between Chinese words, so that such Chinese tokens are words;
        "auto": "always" if most Chinese tokens of several characters have the mark. Raises ConfigError: other ``blanks``."""
        opened = [open_lexicon(one) if isinstance(one, str) else one for one in (lexicons or ("open",))]
        tokens = tokens_of(tokenizer)
        words = dict(zip(tokens, whole_words(tokens, blanks), strict=True))
        for token, word in words.items():
            if word is not None and not any(word in lexicon.words for lexicon in opened):
                words[token] = word.lower()
        senses = cls.of_words(tokens, *opened, clean=words.__getitem__, lemmas=lemmas)
        whole, annotated = sum(word is not None for word in words.values()), int(senses.graph.annotated.sum())
        print(f"{annotated:,} of {whole:,} whole words have senses ({annotated / max(whole, 1):.0%}); {len(tokens):,} tokens")
        return senses

    def with_sememes(self, count: int) -> Senses:
        """Return senses with all sememes 0 to ``count`` - 1; each unused sememe gets an additional word at the end.

        Raises ConfigError: sememes are names, or one is ``count`` or more."""
        own = {sememe for sememe in self.sememes if sememe != UNKNOWN}
        if any(isinstance(sememe, str) or sememe >= count for sememe in own):
            raise ConfigError(f"num_sememes={count}: sememes must be numbers below num_sememes, given {max(own, key=str)!r}")
        if len(own) == count:
            return self
        more = [number for number in range(count) if number not in own]
        entries = [*self.graph.entries(), *(_entry(f"<sememe {number}>", [[_named(number)]]) for number in more)]
        extended = Senses(SememeGraph(entries, GIVEN))
        extended.sememes = (*range(count), *(sememe for sememe in self.sememes if sememe == UNKNOWN))
        return extended

    @property
    def num_words(self) -> int:
        return self.graph.num_words

    @property
    def num_senses(self) -> int:
        return self.graph.num_senses

    @property
    def num_sememes(self) -> int:
        return self.graph.num_sememes

    def __repr__(self) -> str:
        return f"Senses({self.num_words} words, {self.num_senses} senses, {self.num_sememes} sememes)"


def as_senses(senses: Senses | SememeGraph | Nested) -> Senses:
    """Convert the argument of a layer to ``Senses``."""
    return senses if isinstance(senses, Senses) else Senses(senses)


def as_counts(counts: Any, num_words: int | None, name: str) -> NDArray[np.int64]:
    """Return (V,) counts from an array, a tensor or a list; a number V, or None, stands for V equal counts.

    Raises ConfigError: not one whole number of 0 or more for each word."""
    if counts is None or (isinstance(counts, int | np.integer) and not isinstance(counts, bool)):
        size = num_words if counts is None else int(counts)
        if size is None or not 1 <= size < 2**31 or (num_words is not None and size != num_words):
            words = (
                "V must be 1 or more, below 2**31"
                if num_words is None
                else f"there are {num_words} words; give one count for each word"
            )
            raise ConfigError(f"{name}: counts={counts!r}, where {words}")
        return np.ones(size, dtype=np.int64)
    found = array_of(counts, f"{name}: counts", "(V,) numbers of 0 or more")
    if found.ndim != 1 or not len(found) or not np.isfinite(found).all() or found.min() < 0:
        negative = found.ndim == 1 and len(found) and np.isfinite(found).all()
        given = f"{found.min():g}" if negative else f"shape {found.shape}, {found.dtype}"
        raise ConfigError(f"{name}: counts must be (V,) numbers of 0 or more, given {given}")
    if num_words is not None and len(found) != num_words:
        raise ConfigError(f"{name}: {len(found)} counts where there are {num_words} words; give one count for each word")
    if (found != np.rint(found)).any():
        raise ConfigError(
            f"{name}: counts are whole numbers of occurrences, given such as {found[found != np.rint(found)][0]:g}; multiply "
            "frequencies by the number of words of the text, and round them"
        )
    if found.max() >= 2**62:
        raise ConfigError(f"{name}: a count must be below 2**62, given {found.max():g}")
    return np.ascontiguousarray(found, dtype=np.int64)


def as_clusters(clusters: Any, num_words: int, name: str) -> NDArray[np.int64] | None:
    """Return (V,) classes or clusters from an array, a tensor or a list; None stays None.

    Raises ConfigError: not one number of 0 or more for each word."""
    if clusters is None:
        return None
    found = array_of(clusters, f"{name}: clusters", f"({num_words},) whole numbers of 0 or more")
    if found.shape != (num_words,) or found.dtype.kind not in "iu" or found.min() < 0:
        raise ConfigError(
            f"{name}: clusters must be ({num_words},) whole numbers of 0 or more, given {found.shape} {found.dtype}"
        )
    return found.astype(np.int64)


def _listed(given: Any, what: str, wanted: str) -> list[Any]:
    """Return the elements of a list, an array or a tensor; else ConfigError, mostly for a missing level of lists."""
    if not isinstance(given, str | bytes | Mapping):
        try:
            return list(given)
        except TypeError:
            pass
    raise ConfigError(
        f"Senses: {what} must be {wanted}, given {given!r}; nest lists as [[['human', 'thing'], ['tool']], [['human']], []]: "
        "for each word its senses, for each sense its sememes; Senses.of_words looks words up in a lexicon"
    )


def tokens_of(tokenizer: Any) -> list[str]:
    """The tokens of a tokenizer in the order of their ids. Raises ConfigError: an object of another kind."""
    methods = {"convert_ids_to_tokens": "__len__", "id_to_token": "get_vocab_size", "id_to_piece": "get_piece_size"}
    for name, size in methods.items():  # of transformers, tokenizers, sentencepiece
        if hasattr(tokenizer, name):
            token = getattr(tokenizer, name)
            return [token(number) or f"<no token {number}>" for number in range(getattr(tokenizer, size)())]
    raise ConfigError(
        "Senses.of_tokenizer: give a tokenizer of transformers or tokenizers, or a SentencePieceProcessor, given "
        f"{type(tokenizer).__name__}; Senses.of_words takes a list of words"
    )


def _strings(given: Any, what: str) -> list[str]:
    found = list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]
    if other := [one for one in found if not isinstance(one, str)]:
        raise ConfigError(f"{what} must be a list of strings, given {other[0]!r:.60}")
    return found


def _entry(word: str, senses: Iterable[Sequence[str]]) -> WordEntry:
    sets = dict.fromkeys(tuple(sorted(set(sense))) for sense in senses if len(sense))
    if not sets:
        return WordEntry(word, Source.NONE, (SenseEntry((UNKNOWN,), UNKNOWN),))
    return WordEntry(word, GIVEN, tuple(SenseEntry(sememes, " ".join(sememes)) for sememes in sets))


def _named(number: int) -> str:
    digits = f"{number:0{_DIGITS}d}"
    return ":" * (len(digits) - _DIGITS) + digits


def _checked(sememe: Any) -> Sememe:
    if isinstance(sememe, str):
        return sememe
    if isinstance(sememe, bool) or not hasattr(sememe, "__index__") or sememe.__index__() < 0:
        raise ConfigError(f"Senses: a sememe is a name or a number of 0 or more, given {sememe!r}")
    return int(sememe.__index__())
