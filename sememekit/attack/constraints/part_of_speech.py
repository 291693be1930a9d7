"""Part of speech: a noun is replaced by a noun, where a lexicon knows what the words are."""

from __future__ import annotations

from typing import final

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.resources import AttackResources, named_apart
from sememekit.attack.space import Space
from sememekit.sememes import Lexicon, open_lexicons
from sememekit.sememes.substitutes import Inflections


@final
class PartOfSpeech(Constraint):
    """Substitutes that share no part of speech with the word are out.

    Parts of speech are compared inside one lexicon, the first that tells both; where none does, nothing is known and the
    substitute stays. A word is looked up as written, in lower case, then by its lemmas. Which part of speech a word has in the
    sentence is not asked. Candidates of equal sememes and of WordNet keep it by themselves and need no lexicon here.
    """

    class Settings(Constraint.Settings):
        sources: tuple[str, ...] = ()
        """Lexicons, ``FORMAT:PATH``; the command line's --source where candidates are not sememe."""
        lemmas: str = ""
        """A file of ``lemma TAB form`` lines, or ``wordnet``, for inflected words; empty: none. The command line's --lemmas."""

    settings: PartOfSpeech.Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        self._lexicons = open_lexicons(settings.sources) if settings.sources else []
        self._inflections = Inflections.open(settings.lemmas) if settings.lemmas else None
        forms = [] if self._inflections is None else [(self._inflections.source, self._inflections.sha256)]
        self.hashes = named_apart([*((lexicon.name, lexicon.sha256) for lexicon in self._lexicons), *forms])
        self._known: dict[str, tuple[frozenset[str], ...]] = {}

    @property
    def told(self) -> str:
        if not self._lexicons:
            return ""
        return f"part of speech kept where known: {', '.join(lexicon.name for lexicon in self._lexicons)}"

    def narrow(self, space: Space) -> Space:
        return space.filtered(self._may_stand) if self._lexicons else space

    def _may_stand(self, word: str, other: str) -> bool:
        for ours, theirs in zip(self._parts(word), self._parts(other), strict=True):
            if ours and theirs:
                return bool(ours & theirs)
        return True

    def _parts(self, word: str) -> tuple[frozenset[str], ...]:
        """Parts of speech of a word in each lexicon; none where it is not known, or not of every sense."""
        if word not in self._known:
            lemmas = self._inflections.lemmas(word.lower()) if self._inflections is not None else ()
            self._known[word] = tuple(_parts(lexicon, (word, word.lower(), *lemmas)) for lexicon in self._lexicons)
        return self._known[word]


def _parts(lexicon: Lexicon, forms: tuple[str, ...]) -> frozenset[str]:
    found = next((form for form in forms if form in lexicon.words), None)
    parts = frozenset(sense.part_of_speech for sense in lexicon.senses(found)) if found is not None else frozenset()
    return frozenset() if "" in parts else parts
