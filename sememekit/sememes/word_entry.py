"""Words and senses by name, the form from which a graph is built and in which it is stored."""

from collections.abc import Iterable
from dataclasses import dataclass

from sememekit.sememes.definitions import Place, places_in
from sememekit.sememes.lexicon import Sense


class Source:
    """Sources of senses other than lexicons."""

    SPECIAL = "special token"
    PUNCTUATION = "punctuation rule"
    NONE = "none"
    RULES = (SPECIAL, PUNCTUATION)


@dataclass(frozen=True)
class SenseEntry:
    """One sense: its sememes (sorted, distinct), a short label, and the place of each sememe in the definition.

    ``places`` is empty without a definition that is a tree; None stands for a sememe that is not found in it."""

    sememes: tuple[str, ...]
    label: str
    places: tuple[Place | None, ...] = ()

    def edges(self) -> tuple[tuple[str, Place | None], ...]:
        """Each sememe with its place."""
        return tuple(zip(self.sememes, self.places or (None,) * len(self.sememes), strict=True))

    def with_sememes(self, sememes: tuple[str, ...], label: str) -> "SenseEntry":
        """Return the sense with other sememes; unchanged ones keep their place."""
        places = dict(self.edges())
        kept = tuple(places.get(name) for name in sememes)
        return SenseEntry(sememes, label, kept if any(kept) else ())


@dataclass(frozen=True)
class WordEntry:
    """One word with its senses, which differ in their sememes."""

    word: str
    source: str
    """Name of a lexicon, or one of ``Source``."""
    senses: tuple[SenseEntry, ...]

    @property
    def is_annotated(self) -> bool:
        """True if a lexicon or a rule knows the word."""
        return self.source != Source.NONE

    @property
    def is_from_lexicon(self) -> bool:
        """True if a lexicon, and not a rule, gave the senses."""
        return self.is_annotated and self.source not in Source.RULES

    def sememes(self) -> set[str]:
        return {name for sense in self.senses for name in sense.sememes}


@dataclass(frozen=True)
class LexiconSource:
    """A lexicon that gives senses."""

    name: str
    sha256: str


def merge_senses(senses: Iterable[Sense]) -> tuple[SenseEntry, ...]:
    """Drop senses without sememes and merge senses with equal sememes, in the given order.

    A merged sense is labelled with the distinct parts of speech and glosses of its parts; places come from the first definition
    that is a tree."""
    groups: dict[tuple[str, ...], list[Sense]] = {}
    for sense in senses:
        if sense.sememes:
            groups.setdefault(sense.sememes, []).append(sense)
    return tuple(
        SenseEntry(names, _label(group), next(filter(None, (places_in(one.definition, names) for one in group)), ()))
        for names, group in groups.items()
    )


def _label(group: list[Sense]) -> str:
    parts_of_speech = "/".join(dict.fromkeys(sense.part_of_speech for sense in group if sense.part_of_speech))
    glosses = "; ".join(dict.fromkeys(sense.gloss for sense in group if sense.gloss))
    return f"{parts_of_speech} {glosses or ' '.join(group[0].sememes)}".strip()
