"""Build the sememe graph of a prepared-data folder."""

from collections.abc import Sequence
from pathlib import Path

from sememekit.data.prepared import PreparedData
from sememekit.data.segmenters import words_of_pieces
from sememekit.errors import ConfigError, GraphError
from sememekit.figures import percent
from sememekit.files import GRAPH, check_output, warn
from sememekit.sememes import SememeGraph, Side, build_graph, graph_statistics, lexicon_reader, open_lemmas, open_lexicons
from sememekit.sememes.statistics import GraphReport, LexiconUse, source_remarks
from sememekit.text.scripts import traditional_hint

LEAST_COVERAGE = 0.2  # token coverage below which a lexicon is probably of another language


def build_sememe_graph(
    sources: Sequence[str] | str,
    data: Path | str,
    out: Path | str,
    *,
    drop_edges: float = 0.0,
    seed: int = 0,
    side: Side = "chinese",
    lemmas: str | None = None,
    defining_words: int = 2000,
    yes_download: bool = False,
) -> GraphReport:
    """Build the sememe graph of a prepared-data folder's vocabulary and write it; arguments as ``build-sememe-graph --help``.

    Raises ConfigError: no source, a source without a format, or another kind of file at ``out``. Raises DataError: a lexicon or
    the folder cannot be read. Raises GraphError: the graph cannot be built."""
    sources = [sources] if isinstance(sources, str) else sources
    if not sources:
        raise ConfigError("build-sememe-graph: name at least one lexicon, as in --source open or --source hownet2000:PATH")
    data, out = Path(data), Path(out)
    check_output(out, GRAPH)
    prepared = PreparedData.open(data)
    vocabulary, words = prepared.vocabulary, words_of_pieces(prepared.signature, prepared.vocabulary.tokens)
    lexicons = open_lexicons(sources, side, yes_download, lemmas=lemmas, defining_words=defining_words, seed=seed)
    graph = build_graph(vocabulary, lexicons, None if lemmas is None else open_lemmas(lemmas), words)
    if drop_edges:
        graph = graph.drop_edges(drop_edges, seed)
    if not graph.from_lexicon.any():
        raise GraphError(
            f"no word of {data} is in {' or '.join(sources)}, so that the graph would be empty; give a lexicon of the language "
            f"of the text, and cut the text into its words (sememekit segment){traditional_hint(vocabulary.tokens)}"
        )
    if out.exists() and out.stat().st_size:
        try:
            before = SememeGraph.load(out).lexicons
            was = " and ".join(one.name for one in before) or "no lexicon"
        except GraphError:
            before, was = None, "another version, or torn"
        if before != graph.lexicons:
            warn(f"{out} is replaced; it was a graph of {was}")
    graph.save(out)
    statistics = graph_statistics(graph, vocabulary.counts)
    if statistics.lexicon_coverage < LEAST_COVERAGE:
        warn(
            f"only {percent(statistics.lexicon_coverage)} of the tokens are in {' or '.join(sources)}: see that the "
            "lexicon is of the language of the text, and that the text is cut into its words"
            + traditional_hint(statistics.words_without_annotation)
        )
    uses = []
    for source, lexicon, named in zip(sources, lexicons, graph.lexicons, strict=True):
        used = {"words_used": statistics.words_by_source[named.name], "tokens_used": statistics.tokens_by_source[named.name]}
        uses.append(LexiconUse(source=source, name=named.name, sha256=lexicon.sha256, report=lexicon.report, **used))
    by_hand = [getattr(lexicon_reader(source)[0], "names_by_hand", False) for source in sources]
    for told in source_remarks(uses, lexicons, by_hand) if len(uses) > 1 and not drop_edges else ():
        warn(told)
    return GraphReport(
        out=str(out),
        fingerprint=graph.fingerprint,
        vocabulary_fingerprint=graph.vocabulary_fingerprint,
        lexicons=tuple(uses),
        statistics=statistics,
        history=graph.history,
    )
