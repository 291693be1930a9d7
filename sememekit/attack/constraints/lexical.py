"""Constraints by lexicons: parts of speech, first senses, inflection, names."""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, final

from pydantic import Field

from sememekit.attack.constraints import Constraint
from sememekit.attack.documents import ABBREVIATION, Document
from sememekit.attack.resources import AttackResources, built_in_lines, hashes_of
from sememekit.attack.space import Space
from sememekit.sememes import Sense
from sememekit.sememes.substitutes import ENDINGS, Inflections

_NAMES: Final = frozenset(word for line in built_in_lines("names") for word in line.split())
_FUNCTION: Final = frozenset({"FuncWord|功能词", "FuncWord", "功能词"})


class LexicalConstraint(Constraint):
    """Compare the entries of a word and its substitute in the first lexicon that has both.

    Without such a lexicon the substitute is kept. Words are looked up as written, in lower case, then by lemma."""

    class Settings(Constraint.Settings):
        sources: tuple[str, ...] = ()
        """Lexicons, ``FORMAT:PATH`` (default: of sememe candidates), or the command line's --source."""
        lemmas: str = ""
        """A file of ``lemma TAB form`` lines, or ``wordnet``, for inflected words; empty: none. The command line's --lemmas."""

    settings: Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        self._lexicons = resources.lexicons(settings.sources)
        self._inflections = Inflections.open(settings.lemmas) if settings.lemmas else None
        self.hashes = hashes_of(self._lexicons, self._inflections)
        self._known: dict[str, tuple[frozenset[Any], ...]] = {}
        self._endings: dict[str, str] = {}

    @abstractmethod
    def facts(self, senses: Sequence[Sense]) -> frozenset[Any]:
        """Return the properties of a word, one of which its substitute must share; empty if unknown."""

    def narrow(self, space: Space) -> Space:
        return space.filtered(self._may_stand) if self._lexicons else space

    def _may_stand(self, word: str, other: str) -> bool:
        both = zip(self.known(word), self.known(other), strict=True)
        return next((not ours.isdisjoint(theirs) for ours, theirs in both if ours and theirs), True)

    def known(self, word: str) -> tuple[frozenset[Any], ...]:
        """Return the properties of a word in each lexicon."""
        if word not in self._known:
            lemmas = self._inflections.lemmas(word.lower()) if self._inflections is not None else ()
            forms = (word, word.lower(), *lemmas)
            found = ((lexicon, next((form for form in forms if form in lexicon.words), None)) for lexicon in self._lexicons)
            facts = (self.facts(lexicon.senses(form)) if form is not None else frozenset() for lexicon, form in found)
            self._known[word] = tuple(facts)
        return self._known[word]


@final
class PartOfSpeech(LexicalConstraint):
    """Forbid substitutes that share no part of speech with the word.

    The part of speech in the sentence is not checked. If the part of speech of any sense is unknown, the word counts as
    unknown. Sememe and WordNet candidates keep the part of speech anyway and need no lexicon here."""

    @property
    def told(self) -> str:
        names = ", ".join(lexicon.name for lexicon in self._lexicons)
        return f"part of speech kept where known: {names}" if names else ""

    def facts(self, senses: Sequence[Sense]) -> frozenset[str]:
        parts = frozenset(sense.part_of_speech for sense in senses)
        return frozenset() if "" in parts else parts


@final
class FirstSenses(LexicalConstraint):
    """Require that word and substitute share one of their first senses of a part of speech.

    Lexicons such as WordNet give the most frequent sense first. Without this constraint an attack replaces "cat" by
    "electromyography", through the sense "computed tomography" (CAT). A sense whose only sememe says that the word has a
    grammatical function is shared with no other word: "even" and "powerful" (mighty) both have it."""

    class Settings(LexicalConstraint.Settings):
        most: int = Field(default=1, ge=1)
        """Number of first senses for each part of speech."""

    settings: Settings

    @property
    def told(self) -> str:
        return f"first senses: the first {self.settings.most} of each part of speech" if self._lexicons else ""

    def facts(self, senses: Sequence[Sense]) -> frozenset[Any]:
        seen = Counter[str]()
        found: list[Any] = []
        for part, sememes in dict.fromkeys((sense.part_of_speech, sense.sememes) for sense in senses if sense.sememes):
            seen[part] += 1
            if seen[part] <= self.settings.most:  # an object of its own equals no sense of another word
                found.append(object() if _FUNCTION.issuperset(sememes) else (part, sememes))
        return frozenset(found)


_FAMILIES: Final = {"v": "v", "n": "n", "a": "a", "r": "r", "s": "a", "verb": "v", "noun": "n", "adj": "a", "adv": "r"}
"""Part of speech of a lexicon in lower case -> its letter in ``ENDINGS``."""
_VOWEL: Final = re.compile(r"(?!eu|ewe|one|once|uni(?!m|n)|us[aeiu]|ut[ei]|ubi|ur[aei]|ufo)[aeiou]|hour|hono|honest|heir")
"""Beginning of a word that takes "an" by its first sound, not its first letter: an hour, a union."""


@final
class Agreement(LexicalConstraint):
    """Require that a substitute has the inflection of the word and fits the article before it (English).

    A form is inflected if it is a lemma of --lemmas or of a lexicon with a regular ending: "stays" cannot replace "wear", nor
    "longest" "always". After "a" or "an" a substitute begins with the same kind of sound as the word."""

    def facts(self, senses: Sequence[Sense]) -> frozenset[Any]:
        return frozenset(_FAMILIES.get(sense.part_of_speech.lower(), "") for sense in senses)

    def narrow(self, space: Space) -> Space:
        space, words = space.filtered(self._agrees), space.document.words
        found = list(space.substitutes)
        for number, word in enumerate(words[1:], start=1):
            article = words[number - 1]
            if article.field == word.field and article.text.lower() in ("a", "an") and word.text[0].isalpha():
                vowel = _begins_with_vowel(word.text)
                found[number] = tuple(other for other in found[number] if _begins_with_vowel(other) == vowel)
        return space.narrowed(substitutes=tuple(found))

    def _agrees(self, word: str, other: str) -> bool:
        if not (word.isascii() and other.isascii()) or (mine := self._ending(word)) == (theirs := self._ending(other)):
            return True
        shared = [ours & others for ours, others in zip(self.known(word), self.known(other), strict=True) if ours and others]
        parts = shared[0] if shared else frozenset()  # a noun in -ing is no inflected form: building and edifice
        return not any(parts & {*ENDINGS[ending], ""} for ending in (mine, theirs) if ending)

    def _ending(self, form: str) -> str:
        """Return the regular ending of an inflected word; empty for a base form, as far as is known."""
        if form not in self._endings:
            self._endings[form] = next(self._found_endings(form.lower()), "")
        return self._endings[form]

    def _found_endings(self, form: str) -> Iterator[str]:
        for lemma in self._inflections.lemmas(form) if self._inflections is not None else ():
            yield Inflections.ending(lemma, form)
        for ending in ("s", "ed", "ing", "est"):  # in -er are too many nouns
            base = form.removesuffix(ending)
            bases = {base, f"{base}e", base[:-1] if base[-1:] == base[-2:-1] else base}
            bases |= {f"{base[:-1]}y"} if base.endswith("i") else {f"{base[:-2]}y"} if base.endswith("ie") else set()
            bases |= {base[:-1]} if ending == "s" and base.endswith("e") else set()
            whole = form.endswith(ending) and not form.endswith("ss") and len(base) > 2
            if whole and any(one in lexicon.words for one in bases for lexicon in self._lexicons):
                yield ending


def _begins_with_vowel(word: str) -> bool:
    return _VOWEL.match(word.lower()) is not None


@final
class Names(LexicalConstraint):
    """Forbid names, both as replaced words and as substitutes.

    Names are words whose first sense of some part of speech is a proper name (sememe ProperName|专), words of an entry of two
    to four words with such a sense (new york), words with a capital inside a sentence, and abbreviations such as "u.s.". Names
    in texts without capitals come from a list of our own (given names, family names, places), which is not complete."""

    def facts(self, senses: Sequence[Sense]) -> frozenset[bool]:
        proper = [not {"ProperName", "专"}.isdisjoint("|".join(sense.sememes).split("|")) for sense in senses]
        first = {sense.part_of_speech: name for sense, name in reversed(list(zip(senses, proper, strict=True)))}
        return frozenset({True} if any(first.values()) else ())

    def narrow(self, space: Space) -> Space:
        held = {number for place in self._names(space.document) for number in place}
        space = space.filtered(lambda word, other: not self._is_name(other))
        return space.narrowed(
            substitutes=tuple(() if number in held else found for number, found in enumerate(space.substitutes))
        )

    def _is_name(self, word: str) -> bool:
        return any(self.known(word)) or word.lower().removesuffix("'s") in _NAMES or ABBREVIATION.fullmatch(word) is not None

    def _names(self, document: Document) -> Iterator[range]:
        """Return the word numbers of each name."""
        words = document.words
        for number, word in enumerate(words):
            before = words[number - 1] if number and words[number - 1].field == word.field else None
            inside = before is not None and before.text not in {".", "!", "?", ":", '"', "``", "“", "‘"}
            if self._is_name(word.text) or (inside and word.text[0].isupper() and not document.fields[word.field].isupper()):
                yield range(number, number + 1)
            for end in range(number + 2, min(number + 5, len(words) + 1)):
                phrase = [one.text for one in words[number:end]]
                if words[end - 1].field == word.field and any(any(self.known(mark.join(phrase))) for mark in " _"):
                    yield range(number, end)
