"""The subcommand lookup; the plain functions are in ``lookup`` and ``searching`` of ``sememekit.sememes``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememekit.commands._options import LEXICON, Json, Quiet, Side, SourcesOrOpen, argument, fail_usage, option, others_typed
from sememekit.commands._printing import hint, print_json, print_parts, remark
from sememekit.errors import DataError
from sememekit.files import typed as line
from sememekit.text.scripts import traditional_hint

if TYPE_CHECKING:
    from sememekit.sememes import Side as SideName
    from sememekit.sememes.suggesting import SuggestReport

EXAMPLES = (
    "sememekit lookup 希望",
    "sememekit lookup --sememe fruit",
    "sememekit lookup 苹果 --similar",
    "sememekit lookup 苹果 水果",
    "sememekit lookup --suggest 一个 心里",
    "sememekit lookup --source hownet:hownet.txt --source open --dump merged.tsv",
    "sememekit lookup --source open --diff table:merged.tsv",
    "sememekit lookup --check",
    "sememekit lookup 工人 --graph runs/sdlm",
    'sememekit lookup --change 工人 "+人" --graph runs/sdlm',
)

NO_OPTIONS = {"--out": "is no option of lookup: --change writes the file of --overlay, and --dump its own"}
"""Foreign options -> what to type instead."""


def command(
    context: typer.Context,
    words: Annotated[list[str] | None, argument("[WORD]...", "Word; two words: their similarity.")] = None,
    sources: SourcesOrOpen = None,
    side: Side = "chinese",
    sememes: Annotated[
        list[str] | None, option("--sememe", "List words with this sememe; repeatable (all in one sense).", metavar="SEMEME")
    ] = None,
    similar: Annotated[bool, option("--similar", "Words with the sememes most similar to WORD's.")] = False,
    top: Annotated[int, option("--top", "Rows to list (default of --suggest: 5).", min=1)] = 20,
    dump: Annotated[Path | None, option("--dump", "Write all senses, or suggestions, as a table.", metavar="FILE")] = None,
    diff: Annotated[str | None, option("--diff", "Compare --source with this lexicon.", metavar=LEXICON)] = None,
    check: Annotated[bool, option("--check", "Check the open lexicon for consistency.")] = False,
    change: Annotated[
        tuple[str, str] | None, option("--change", "Add a change to --overlay.", metavar='WORD[#SENSE] "+SEMEME -SEMEME"')
    ] = None,
    pairs: Annotated[Path | None, option("--pairs", "File of word pairs: similarity, Spearman's rho.", metavar="FILE")] = None,
    suggest: Annotated[bool, option("--suggest", "Suggest sememes for WORD..., by its parts and by neighbours.")] = False,
    unannotated_of: Annotated[
        Path | None, option("--unannotated-of", "With --suggest: words of DATA without annotation.", metavar="DATA")
    ] = None,
    vectors: Annotated[Path | None, option("--vectors", "With --suggest: run or file with word vectors.")] = None,
    graph: Annotated[Path | None, option("--graph", "Graph, or a run with one, in place of --source.")] = None,
    overlay: Annotated[Path, option("--overlay", "File of changes to write (--change) or to read.")] = Path("overlay.txt"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the senses and sememes of a word as a tree; exit code 1 when no lexicon knows it.

    Other questions: words of a sememe, words with similar sememes, the similarity of two words. Lexicons can be merged into one
    file and compared.

    With --suggest it proposes sememes for words without annotation, and --dump writes them as a table to be corrected.

    With --change it writes an overlay: a small text file of changes to the graph of a trained run."""
    if change is not None and (taken := next((value for value in change if value.startswith("--") and value != "--"), None)):
        fail_usage(f"--change takes two values, and {taken} was taken for one; give both: --change WORD '+SEMEME -SEMEME'")
    words = words or []
    asked = {
        "WORD": bool(words) and not suggest,
        "--sememe": bool(sememes),
        "--dump": dump is not None and not suggest,
        "--diff": diff is not None,
        "--check": check,
        "--change": change is not None,
        "--pairs": pairs is not None,
        "--suggest": suggest,
    }
    chosen = [name for name, is_asked in asked.items() if is_asked]
    if len(chosen) != 1:
        fail_usage(f"give one of {', '.join(asked)}" + (f", and not {' with '.join(chosen)}" if chosen else ""))
    way = "--similar" if similar and chosen == ["WORD"] else "two words" if len(words) == 2 and not suggest else chosen[0]
    if way in ("WORD", "--similar") and len(words) > 1:
        fail_usage(f"give one WORD, or two for their similarity, and not {len(words)}; --suggest takes any number")
    if similar and way != "--similar":
        fail_usage("--similar needs a WORD")
    if suggest and bool(words) == (unannotated_of is not None):
        fail_usage("--suggest needs WORD..., or --unannotated-of DATA")
    typed = others_typed(context, ())
    for name, ways in _ONLY_WITH.items():
        if name in typed and way not in ways:
            if check and name in ("--source", "--side"):
                fail_usage(f"--check is of the open lexicon alone; leave {name} out")
            fail_usage(f"{name} needs {', '.join(ways[:-1])}{' or ' if ways[1:] else ''}{ways[-1]}; leave it out")
    if graph is not None and sources and not suggest:
        fail_usage("give --graph or --source, not both")
    if "--side" in typed and graph is not None and not suggest:
        fail_usage("--side is of lexicons, and a graph has its words; leave it out with --graph")
    if "--overlay" in typed and graph is None and change is None:
        fail_usage(
            "--overlay needs --change, or WORD or --suggest with --graph; a trained run reads an overlay with: "
            "sememekit explain RUN TEXT --overlay FILE"
        )
    from sememekit.reports.lexicons import parts
    from sememekit.sememes import lookup as looking
    from sememekit.sememes import searching

    given, overlaid = tuple(sources or ("open",)), overlay if "--overlay" in typed else None
    report: Any
    after = ""
    if change is not None:
        report = looking.add_change(*change, overlay, graph=graph, sources=given, side=side)
        run = graph if graph is not None and graph.is_dir() else "RUN"
        after = f"next: {line('sememekit', 'evaluate-ppl', run, '--overlay', overlay)}"
    elif suggest:
        from sememekit.sememes.graph import graph_at
        from sememekit.sememes.suggesting import write_changes, write_suggestions

        report = _suggest(words, unannotated_of, given, side, vectors, top if "--top" in typed else 5)
        if overlaid is not None and graph is not None:
            write_changes(overlaid, report, graph_at(graph))
        after = "next: --dump FILE writes them as a table"
        if dump is not None:
            write_suggestions(dump, report)
            after = f"next: delete the rows that are wrong, then: {line('sememekit', 'lookup', '--diff', f'table:{dump}')}"
    elif sememes or similar:
        if sememes:
            report = searching.words_with(sememes, given, side=side, top=top)
        else:
            report = searching.similar_words(words[0], given, side=side, top=top, graph=graph)
        if not report.senses:
            asked_for = " ".join(report.asked)
            raise DataError(f"no other word shares a sememe with {asked_for}; add a lexicon: --source FORMAT:PATH")
        after = "shared sememes stand in brackets" if similar else "next: sememekit lookup WORD --similar"
    elif dump is not None:
        report = searching.dump_lexicons(dump, given, side=side)
        if report.renamed and not json:
            remark(f"blanks in the names of {report.renamed:,} sememes are written as _", quiet)
        graph_line = line("sememekit", "build-sememe-graph", "--source", f"table:{dump}", "--data", "DATA", "--out", "GRAPH")
        after = f"next: {graph_line}"
    elif diff is not None:
        if len(given) > 1:
            fail_usage("--diff compares one --source with another lexicon; merge several with --dump first")
        report = searching.diff_lexicons(given[0], diff, side=side)
    elif pairs is not None or way == "two words":
        asked_pairs = searching.read_pairs(pairs) if pairs is not None else [(words[0], words[1], None)]
        report = searching.similarity(asked_pairs, given, side=side, graph=graph)
    elif check:
        report = looking.check_open_lexicon()
    elif graph is not None:
        report = looking.annotation(words[0], graph, overlaid)
        first = f"{report.word}#1" if len(report.senses) > 1 else report.word
        file = () if overlaid is None else ("--overlay", overlaid)
        after = f"next: {line('sememekit', 'lookup', '--change', first, '+SEMEME -SEMEME', '--graph', graph, *file)}"
    else:
        report = looking.lookup(words[0], given, side=side)
    print_json(report) if json else print_parts(parts(report, top))
    if check and not report.ok:
        raise DataError(f"{report.folder}: {len(report.faults)} places to fix in the open lexicon")
    if isinstance(report, looking.LookupReport) and not report.senses:
        near = f"; similar words: {' '.join(report.nearest)}" if report.nearest else ""
        told = f"{words[0]!r} is not in {' or '.join(report.sources)}{near}; another lexicon: --source FORMAT:PATH"
        raise DataError(told + traditional_hint(words))
    asked_of = [word for pair in report.unknown for word in pair] if isinstance(report, searching.PairsReport) else words
    if (suggest or pairs is not None or len(words) == 2) and (told := traditional_hint(asked_of)):
        remark(told.removeprefix("; "), quiet)
    if after and (suggest or not json):
        hint(after, quiet)
    if suggest and report.without:
        remark(f"nothing speaks for any sememe of {' '.join(report.without[:10])}", quiet)


def _suggest(
    words: Sequence[str], data: Path | None, sources: Sequence[str], side: "SideName", vectors: Path | None, top: int
) -> "SuggestReport":
    if data is None and vectors is None:
        from sememekit.sememes.suggesting import suggest

        report = suggest(words, sources, side=side, top=top)
    else:
        from sememekit.analysis.suggestions import suggest_for, vectors_at

        report = suggest_for(data or words, sources, side, None if vectors is None else vectors_at(vectors), top)
    if len(report.without) == len(report.words):
        told = f"nothing speaks for any sememe of {' '.join(report.without[:10]) or data}"
        raise DataError(f"{told}; add word vectors with --vectors RUN, or another lexicon with --source FORMAT:PATH")
    return report


_OF_WORDS = ("WORD", "two words", "--similar", "--pairs", "--suggest", "--change")
_OF_LEXICONS = (*_OF_WORDS, "--sememe", "--dump", "--diff")
_ONLY_WITH = {
    "--graph": _OF_WORDS,
    "--source": _OF_LEXICONS,
    "--side": _OF_LEXICONS,
    "--top": ("--sememe", "--similar", "--suggest", "--diff"),
    "--overlay": ("--change", "--suggest", "WORD"),
    "--unannotated-of": ("--suggest",),
    "--vectors": ("--suggest",),
}
"""Option -> the option that it needs."""
