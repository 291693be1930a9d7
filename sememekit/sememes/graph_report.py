"""What ``build-sememe-graph`` made, and of what."""

from __future__ import annotations

from sememekit.config import Record
from sememekit.sememes.lexicon import LexiconReport
from sememekit.sememes.statistics import GraphStatistics


class LexiconUse(Record):
    """What one ``--source`` held and what the graph took of it."""

    source: str
    """As given: ``FORMAT:PATH``."""
    name: str
    sha256: str
    report: LexiconReport
    words_used: int
    """Words of the vocabulary whose senses come from here."""
    tokens_used: int
    """Running tokens of those words."""


class GraphReport(Record):
    """What was built. ``statistics.words_without_annotation`` names every word that no lexicon knows."""

    out: str
    fingerprint: str
    vocabulary_fingerprint: str
    lexicons: tuple[LexiconUse, ...]
    statistics: GraphStatistics
    history: tuple[str, ...]
    """What was done: one line for words known by their lemma, one for edges dropped."""
