"""What candidates and constraints have in common: what they may ask for, and the hashes of their files."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from sememekit import config
from sememekit.sememes import Lexicon, open_lexicons

SentenceNats = Callable[[Sequence[Sequence[str]]], list[list[float]]]
"""Negative log-likelihoods in nats under a language model: of each of N sentences, words apart, those of its predictions."""


@dataclass(frozen=True)
class AttackResources:
    """What candidates and constraints may need besides their settings.

    Attributes:
        known_words: the words that substitutes are taken from, or None for no limit: a substitute that the victim does not know
            would test its unknown word, not its understanding.
        frequent_words: words, most frequent first: of the victim's training where it tells, else of the texts under attack.
        field_names: what the fields of an example are called.
        sentence_nats: the language model of the constraints ``language_model`` and ``perplexity``, or None.
        words: every word that can stand in a text, those of the texts and their substitutes; None where that is not known.
    """

    known_words: frozenset[str] | None
    frequent_words: tuple[str, ...]
    field_names: tuple[str, ...]
    sentence_nats: SentenceNats | None = None
    words: frozenset[str] | None = None
    _opened: dict[tuple[str, ...], list[Lexicon]] = field(default_factory=dict, compare=False, repr=False)

    def lexicons(self, sources: tuple[str, ...]) -> list[Lexicon]:
        """The lexicons of these specs, read once for all parts."""
        if sources not in self._opened:
            self._opened[sources] = open_lexicons(sources) if sources else []
        return self._opened[sources]


def named_apart(sources: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Name -> SHA-256 of files. Of several with one name the last keeps it, and the others become ``NAME (2)`` and so on."""
    found: dict[str, str] = {}
    for name, digest in reversed(list(sources)):
        free = next(each for each in chain([name], (f"{name} ({number})" for number in count(2))) if each not in found)
        found[free] = digest
    return found


class AttackPart:
    """Settings, resources, and the files that decide what a part does."""

    class Settings(config.Settings):
        """Settings of one part."""

    @classmethod
    def check_settings(cls, settings: Any, *, language_model: bool) -> None:
        """Raises ConfigError where the settings leave out what the part needs, or where it needs a language model and has none.

        Called before a victim is opened, so that what is missing is told at once, and when the part is made.
        """

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        self.check_settings(settings, language_model=resources.sentence_nats is not None)
        self.settings = settings
        self.resources = resources
        self.hashes: dict[str, str] = {}
        """What ``sources`` gives."""

    def sources(self) -> dict[str, str]:
        """Name -> SHA-256 of every file that was used."""
        return dict(self.hashes)
