"""``sememekit build-sememe-graph``: lexicons and a prepared-data folder in, one graph file out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sememekit.config import Record
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError
from sememekit.files import GRAPH, check_output
from sememekit.sememes import (
    GraphStatistics,
    LexiconReport,
    Side,
    build_graph,
    graph_statistics,
    open_lemmas,
    open_lexicons,
)


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


def build_sememe_graph(
    sources: Sequence[str],
    data: Path,
    out: Path,
    *,
    drop_edges: float = 0.0,
    seed: int = 0,
    side: Side = "chinese",
    lemmas: str | None = None,
    defining_words: int = 2000,
    yes_download: bool = False,
) -> GraphReport:
    """Build the graph of a prepared-data folder's vocabulary and write it.

    Args:
        sources: ``FORMAT:PATH`` each; the first that knows a word has it.
        data: a folder that ``preprocess`` wrote.
        out: the graph file to write.
        drop_edges: share of annotations to remove at random, 0 to 1 (the paper's robustness test removes 0.1).
        seed: for the removal, and for the labels of ``random``.
        side: which words of a two-sided lexicon (hownet, openhownet) are read.
        lemmas: a file of ``lemma TAB form`` lines, or ``wordnet`` or ``wordnet:FOLDER``: a word that no source knows gets the
            senses of its lemma.
        defining_words: how many sememes ``dictionary`` chooses.
        yes_download: let openhownet fetch what it lacks.

    Raises:
        ConfigError: no source, or one that names no format.
        DataError: a lexicon or the folder cannot be read.
        GraphError: the graph cannot be built or written.
    """
    if not sources:
        raise ConfigError("build-sememe-graph: name at least one lexicon, as in --source open or --source hownet2000:PATH")
    check_output(out, GRAPH)
    vocabulary = PreparedData.open(data).vocabulary
    lexicons = open_lexicons(sources, side, yes_download, lemmas=lemmas, defining_words=defining_words, seed=seed)
    graph = build_graph(vocabulary, lexicons, None if lemmas is None else open_lemmas(lemmas))
    if drop_edges:
        graph = graph.drop_edges(drop_edges, seed)
    graph.save(out)
    statistics = graph_statistics(graph, vocabulary.counts)
    uses = tuple(
        LexiconUse(
            source=source,
            name=named.name,
            sha256=lexicon.sha256,
            report=lexicon.report,
            words_used=statistics.words_by_source[named.name],
            tokens_used=statistics.tokens_by_source[named.name],
        )
        for source, lexicon, named in zip(sources, lexicons, graph.lexicons, strict=True)
    )
    return GraphReport(
        out=str(out),
        fingerprint=graph.fingerprint,
        vocabulary_fingerprint=graph.vocabulary_fingerprint,
        lexicons=uses,
        statistics=statistics,
        history=graph.history,
    )
