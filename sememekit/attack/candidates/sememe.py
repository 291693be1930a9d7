"""Words that share a whole set of sememes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from pydantic import Field

from sememekit.attack.candidates.base import Candidates
from sememekit.attack.resources import named_apart
from sememekit.errors import ConfigError
from sememekit.sememes.substitutes import Inflections, Substitutes


@final
class SememeCandidates(Candidates):
    """Words with an equal set of sememes in some sense, of the same part of speech where it is known (Zang et al. 2020).

    Those that share most senses come first; of equals the more frequent one in the victim's training, where it tells, else in
    the texts under attack; then by spelling. ``most`` cuts this order.
    """

    class Settings(Candidates.Settings):
        sources: tuple[str, ...] = ()
        """Lexicons, each as ``FORMAT:PATH``, as ``build-sememe-graph`` takes them."""
        lemmas: str = ""
        """A file of ``lemma TAB form`` lines, or ``wordnet``: inflected words get inflected substitutes; empty for none."""
        most: int = Field(default=0, ge=0)
        """Substitutes a word; 0 for all."""

    settings: SememeCandidates.Settings

    @classmethod
    def check_settings(cls, settings: Any, *, language_model: bool) -> None:
        if not settings.sources:
            raise ConfigError(
                "[candidates] sememe: name a lexicon with --source FORMAT:PATH, for example table:english.tsv, or open"
            )

    def table(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        lexicons = self.resources.lexicons(self.settings.sources)
        inflections = None
        if self.settings.lemmas:
            inflections = Inflections.open(self.settings.lemmas, (*words, *self.resources.frequent_words))
        forms = [] if inflections is None else [(inflections.source, inflections.sha256)]
        self.hashes = named_apart([*((lexicon.name, lexicon.sha256) for lexicon in lexicons), *forms])
        ranks = {word: rank for rank, word in reversed(list(enumerate(self.resources.frequent_words)))}
        substitutes = Substitutes(lexicons, inflections, ranks)
        return {word: self.usable(word, substitutes.of(word), self.settings.most) for word in dict.fromkeys(words)}
