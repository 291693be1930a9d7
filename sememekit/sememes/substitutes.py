"""Sememe-equal substitutes of a word, for word-level attacks (Zang et al. 2020).

A substitute has an equal sememe set in some sense, the same part of speech and the same inflection."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from sememekit.files import at_home
from sememekit.sememes.lemmas import read_pairs, wordnet_of
from sememekit.sememes.lexicon import Lexicon, Sense

ENDINGS: Final = {"ing": "v", "ed": "v", "est": "ar", "er": "ar", "s": "nv"}
"""Regular endings of inflected English words -> the parts of speech that they can have."""


class Substitutes:
    """Find the words that can replace a word.

    Two senses are equal if their sets of sememes are equal, and their parts of speech if both are known."""

    def __init__(
        self, lexicons: Sequence[Lexicon], inflections: "Inflections | None" = None, ranks: Mapping[str, int] | None = None
    ) -> None:
        """Index the senses of all lexicons; a word belongs to the first lexicon that knows it.

        With ``inflections``, a word that no lexicon knows is looked up by its lemma, and its substitutes are inflected alike.
        Substitutes that share equally many senses are sorted by ``ranks``, ranks of words by frequency, from 0. A sense that a
        lexicon has twice counts once."""
        self._inflections = inflections
        self._ranks = ranks or {}
        self._senses: dict[str, tuple[Sense, ...]] = {}
        self._words_of: dict[tuple[str, ...], dict[str, set[str]]] = {}
        for lexicon in lexicons:
            for word in lexicon.words:
                if word not in self._senses:
                    self._senses[word] = tuple(dict.fromkeys(sense for sense in lexicon.senses(word) if sense.sememes))
        for word, senses in self._senses.items():
            for sense in senses:
                self._words_of.setdefault(sense.sememes, {}).setdefault(sense.part_of_speech, set()).add(word)

    def of(self, word: str) -> tuple[str, ...]:
        """Return the substitutes of a word, sorted by falling number of shared senses, then by frequency, then by spelling."""
        if word in self._senses:
            return self._equal(self._senses[word], word)
        if self._inflections is None:
            return ()
        found: dict[str, None] = {}
        for lemma in self._inflections.lemmas(word):
            ending = self._inflections.ending(lemma, word)
            if lemma not in self._senses or not ending:
                continue
            fitting = tuple(sense for sense in self._senses[lemma] if sense.part_of_speech in ("", *ENDINGS[ending]))
            for other in self._equal(fitting, lemma):
                found |= dict.fromkeys(self._inflections.forms.get((other, ending), ()))
        found.pop(word, None)
        return tuple(found)

    def _equal(self, senses: Iterable[Sense], word: str) -> tuple[str, ...]:
        shared: dict[str, int] = {}
        for sense in senses:
            by_part = self._words_of[sense.sememes]
            parts = by_part if not sense.part_of_speech else dict.fromkeys((sense.part_of_speech, ""))
            for other in {other for part in parts for other in by_part.get(part, ())}:
                shared[other] = shared.get(other, 0) + 1
        shared.pop(word, None)
        last = len(self._ranks)
        return tuple(sorted(shared, key=lambda other: (-shared[other], self._ranks.get(other, last), other)))


class Inflections:
    """Regular English inflections: pairs of lemma and form, and WordNet's base forms if used.

    ``source`` and ``sha256``: the name of the file or of WordNet, and its hash; ``forms``: (lemma, regular ending) -> forms."""

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]],
        bases: Callable[[str], tuple[str, ...]] = lambda form: (),
        *,
        source: str = "",
        sha256: str = "",
    ) -> None:
        self.source, self.sha256 = source, sha256
        self._bases = bases
        self._lemmas: dict[str, list[str]] = {}
        self.forms: dict[tuple[str, str], list[str]] = {}
        for lemma, form in pairs:
            self._lemmas.setdefault(form, []).append(lemma)
            if ending := self.ending(lemma, form):
                self.forms.setdefault((lemma, ending), []).append(form)

    @classmethod
    def open(cls, spec: str, words: Iterable[str] = ()) -> "Inflections":
        """Read inflections from a file of ``lemma TAB form`` lines, or find base forms of ``words`` with ``wordnet`` or
        ``wordnet:FOLDER``, as ``open_lemmas`` takes them. Raises DataError: files are absent or have another form."""
        if (index := wordnet_of(spec)) is not None:
            pairs = ((base, word) for word in dict.fromkeys(words) for base in index.bases(word))
            return cls(pairs, index.bases, source=index.name, sha256=index.sha256)
        path = at_home(spec)
        listed, sha256 = read_pairs(path)
        return cls(listed, source=path.name, sha256=sha256)

    def lemmas(self, form: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._lemmas.get(form, ()), *self._bases(form))))

    @staticmethod
    def ending(lemma: str, form: str) -> str:
        """Return the ending of ``ENDINGS`` that makes ``form`` from its lemma; empty for an irregular form."""
        return next((ending for ending in ENDINGS if form.endswith(ending) and form != lemma and form[:1] == lemma[:1]), "")
