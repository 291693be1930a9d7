"""Resources that candidates and constraints share, and the hashes of their files."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import ClassVar

from sememekit import config
from sememekit.config import resources_folder
from sememekit.errors import ConfigError, DataError
from sememekit.files import read_text
from sememekit.files.tables import split_lines
from sememekit.sememes import Lexicon, open_lexicons
from sememekit.sememes.substitutes import Inflections

SentenceNats = Callable[[Sequence[Sequence[str]]], list[list[float]]]
"""A function from N sentences (lists of words) to the loss in nats of every prediction of each under a language model."""


@dataclass(frozen=True)
class AttackResources:
    """Resources of candidates and constraints besides their settings."""

    # the allowed substitutes, or None for no limit; an unknown word would only test the victim's ``<unk>``
    known_words: frozenset[str] | None
    frequent_words: tuple[str, ...]  # words by falling frequency, in the victim's training (if known) or in the attacked texts
    field_names: tuple[str, ...]  # names of the fields of an example
    # the language model of the constraints ``language_model`` and ``perplexity``, or None
    sentence_nats: SentenceNats | None = None
    words: frozenset[str] | None = None  # every word of the originals and substitutes; None if unknown
    _opened: dict[tuple[str, ...], list[Lexicon]] = field(default_factory=dict, compare=False, repr=False)

    def lexicons(self, sources: tuple[str, ...]) -> list[Lexicon]:
        """Return the lexicons of these specs, read once for all parts."""
        if sources not in self._opened:
            self._opened[sources] = open_lexicons(sources) if sources else []
        return self._opened[sources]


def named_apart(sources: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Name -> SHA-256 of files. If several share a name, the last keeps it, and the others become ``NAME (2)`` and so on."""
    found: dict[str, str] = {}
    for name, digest in reversed(list(sources)):
        free = next(each for each in chain([name], (f"{name} ({number})" for number in count(2))) if each not in found)
        found[free] = digest
    return found


def hashes_of(lexicons: Iterable[Lexicon], inflections: Inflections | None) -> dict[str, str]:
    """Return name -> SHA-256 of the files of parts of speech, senses and forms."""
    forms = [] if inflections is None else [(inflections.source, inflections.sha256)]
    return named_apart([*((lexicon.name, lexicon.sha256) for lexicon in lexicons), *forms])


def built_in_lines(name: str) -> list[str]:
    """Return the lines of the shipped list ``resources/attack/NAME.txt``, without remarks."""
    lines = split_lines(read_text(resources_folder() / "attack" / f"{name}.txt", DataError))
    return [line for line in lines if not line.startswith("#")]


class AttackPart:
    """A part of an attack with settings, resources, and the files that decide its results."""

    class Settings(config.Settings):
        """Settings of one part."""

    required: ClassVar[Mapping[str, str]] = {}
    """Setting -> the message if it is empty."""
    asks_model_as: ClassVar[str] = ""
    """The name of the constraint if it needs a language model; otherwise empty."""

    @classmethod
    def check_settings(cls, settings: Settings, *, language_model: bool) -> None:
        """Raise ConfigError if a setting or a needed language model is missing.

        Called before a victim is opened, so that errors come early, and when the part is built."""
        for key, message in cls.required.items():
            if not getattr(settings, key):
                raise ConfigError(message)
        if cls.asks_model_as and not language_model:
            raise ConfigError(f"[constraints.{cls.asks_model_as}] needs a language model: name its run folder with --lm RUN")

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        self.check_settings(settings, language_model=resources.sentence_nats is not None)
        self.settings = settings
        self.resources = resources
        self.hashes: dict[str, str] = {}
        """Name -> SHA-256 of every file that was used."""
