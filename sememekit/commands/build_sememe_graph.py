"""``sememekit build-sememe-graph``: lexicons and a prepared-data folder in, one graph file out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sememekit.commands._exit import fail_usage
from sememekit.commands._options import Json, Quiet, Seed, Side, Sources, option
from sememekit.commands._printing import hint, print_fields, print_json, remark
from sememekit.commands._suggesting import suggest_for
from sememekit.errors import ConfigError, GraphError
from sememekit.figures import percent
from sememekit.files import typed

if TYPE_CHECKING:
    from sememekit.sememes import Side as SideName
    from sememekit.sememes.statistics import GraphReport

EXAMPLES = ("sememekit build-sememe-graph --source open --data data/pd --out pd.graph",)
LEAST_COVERAGE = 0.2
"""Share of the running words below which a lexicon is hardly one of this text."""
NUM_WORDS_SHOWN = 10
"""Words without annotation that are named; --unannotated FILE.tsv has all."""


def command(
    data: Annotated[Path, option("--data", "Prepared data whose words get sememes.")],
    out: Annotated[Path, option("--out", "File to write.")],
    sources: Sources = None,
    side: Side = "chinese",
    lemmas: Annotated[
        str | None, option("--lemmas", "Base forms, for words that no source knows as written.", metavar="FILE|wordnet")
    ] = None,
    defining_words: Annotated[int, option("--defining-words", "How many sememes 'dictionary' chooses.", min=1)] = 2000,
    drop_edges: Annotated[
        float, option("--drop-edges", "Fraction of annotations to remove at random.", min=0.0, max=1.0)
    ] = 0.0,
    yes_download: Annotated[bool, option("--yes-download", "Allow openhownet to download its data.")] = False,
    unannotated: Annotated[
        Path | None,
        option("--unannotated", "Write the words that no source knows: count, suggested sememes, example.", metavar="FILE.tsv"),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Give each word of the data its senses and their sememes, and say how many words have none.

    One --source is needed at least.
    """
    if not sources:
        fail_usage("missing option '--source': name at least one, for example --source open")
    report = build_sememe_graph(
        sources,
        data,
        out,
        drop_edges=drop_edges,
        seed=seed,
        side=side,
        lemmas=lemmas,
        defining_words=defining_words,
        yes_download=yes_download,
    )
    if unannotated is not None and report.statistics.words_without_annotation:
        from sememekit.sememes.suggesting import write_suggestions

        write_suggestions(unannotated, suggest_for(data, sources, side))
    if json:
        print_json(report, without=None if unannotated else {"statistics": {"words_without_annotation"}})
        return
    fields = report.statistics.model_dump()
    without = fields.pop("words_without_annotation")
    by_depth, by_role = fields.pop("edges_by_depth"), fields.pop("edges_by_role")
    shares = {name: percent(value, 2) for name, value in fields.items() if name.endswith("_coverage")}
    print_fields(f"Sememe graph in {out}", fields | shares)
    for use in report.lexicons:
        remark(f"{use.source}: {use.words_used:,} words, {use.tokens_used:,} running tokens", quiet)
    if by_depth:
        depths = ", ".join(f"{name} {count:,}" for name, count in by_depth.items())
        remark(f"edges by the depth of the sememe in the definition: {depths}; by its role: {len(by_role)} classes", quiet)
    else:
        remark("no structure: none of these sources has definitions, so edges have no depth and no role", quiet)
    for line in report.history:
        remark(line, quiet)
    if without:
        shown, rest = " ".join(without[:NUM_WORDS_SHOWN]), len(without) - NUM_WORDS_SHOWN
        more = f", and {rest:,} more (--unannotated FILE.tsv has all)" if rest > 0 else ""
        remark(f"words without annotation: {shown}{more}", quiet)
    train = typed("sememekit", "train", "--decoder", "sdlm", "--data", data, "--graph", out, "--out", "runs/sdlm")
    hint(f"next: {train}", quiet)


def build_sememe_graph(
    sources: Sequence[str],
    data: Path,
    out: Path,
    *,
    drop_edges: float = 0.0,
    seed: int = 0,
    side: SideName = "chinese",
    lemmas: str | None = None,
    defining_words: int = 2000,
    yes_download: bool = False,
) -> GraphReport:
    """Build the sememe graph of a prepared-data folder's vocabulary and write it; arguments as ``build-sememe-graph --help``.

    Raises:
        ConfigError: no source, one that names no format, or another file at ``out``.
        DataError: a lexicon or the folder cannot be read.
        GraphError: the graph cannot be built.
    """
    from sememekit.data.prepared import PreparedData
    from sememekit.files import GRAPH, RunWarning, check_output
    from sememekit.sememes import SememeGraph, build_graph, graph_statistics, lexicon_reader, open_lemmas, open_lexicons
    from sememekit.sememes.statistics import GraphReport, LexiconUse, source_remarks
    from sememekit.text.scripts import traditional_hint

    if not sources:
        raise ConfigError("build-sememe-graph: name at least one lexicon, as in --source open or --source hownet2000:PATH")
    check_output(out, GRAPH)
    vocabulary = PreparedData.open(data).vocabulary
    lexicons = open_lexicons(sources, side, yes_download, lemmas=lemmas, defining_words=defining_words, seed=seed)
    graph = build_graph(vocabulary, lexicons, None if lemmas is None else open_lemmas(lemmas))
    if drop_edges:
        graph = graph.drop_edges(drop_edges, seed)
    if not any(entry.is_from_lexicon for entry in graph.entries()):
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
            warnings.warn(f"{out} is replaced; it was a graph of {was}", RunWarning, stacklevel=2)
    graph.save(out)
    statistics = graph_statistics(graph, vocabulary.counts)
    if statistics.lexicon_coverage < LEAST_COVERAGE:
        warnings.warn(
            f"only {percent(statistics.lexicon_coverage)} of the running words are in {' or '.join(sources)}: see that the "
            "lexicon is of the language of the text, and that the text is cut into its words"
            + traditional_hint(statistics.words_without_annotation),
            RunWarning,
            stacklevel=2,
        )
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
    by_hand = [getattr(lexicon_reader(source)[0], "names_by_hand", False) for source in sources]
    for told in source_remarks(uses, lexicons, by_hand) if len(uses) > 1 and not drop_edges else ():
        warnings.warn(told, RunWarning, stacklevel=2)
    return GraphReport(
        out=str(out),
        fingerprint=graph.fingerprint,
        vocabulary_fingerprint=graph.vocabulary_fingerprint,
        lexicons=uses,
        statistics=statistics,
        history=graph.history,
    )
