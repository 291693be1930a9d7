"""The subcommand lookup; the plain functions are in ``lookup``, ``searching`` and ``change`` of ``sememekit.sememes``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememekit.commands._options import LEXICON, Json, Quiet, Side, SourcesOrOpen, fail_usage, option, others_typed
from sememekit.commands._printing import hint, print_fields, print_json, print_table, remark, result_console, say
from sememekit.commands._suggesting import print_suggestions
from sememekit.errors import DataError
from sememekit.files import typed

if TYPE_CHECKING:
    from rich.tree import Tree

    from sememekit.sememes import Side as SideName
    from sememekit.sememes.lookup import DefinitionTree, LookupReport
    from sememekit.sememes.searching import PairsReport, SearchReport

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
"""What is typed as an option and is none, and what to do."""


def command(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORD]...", help="Word; of two: their similarity.", show_default=False)
    ] = None,
    sources: SourcesOrOpen = None,
    side: Side = "chinese",
    sememes: Annotated[
        list[str] | None, option("--sememe", "List words with this sememe; repeated: all in one sense.", metavar="SEMEME")
    ] = None,
    similar: Annotated[bool, option("--similar", "Words whose sememes are most similar to those of WORD.")] = False,
    top: Annotated[int, option("--top", "Rows to list (--suggest: 5).", min=1)] = 20,
    dump: Annotated[Path | None, option("--dump", "Write all senses, or suggestions, as a table.", metavar="FILE")] = None,
    diff: Annotated[str | None, option("--diff", "Instead: how --source differs from this lexicon.", metavar=LEXICON)] = None,
    check: Annotated[bool, option("--check", "Check the open lexicon for consistency instead.")] = False,
    change: Annotated[
        tuple[str, str] | None,
        option("--change", "Add a change to --overlay.", metavar='WORD[#SENSE] "+SEMEME -SEMEME"', show_default=False),
    ] = None,
    pairs: Annotated[Path | None, option("--pairs", "Similarity of pairs; Spearman's rho.", metavar="FILE")] = None,
    suggest: Annotated[bool, option("--suggest", "Suggest sememes for WORD..., by its parts and by neighbours.")] = False,
    unannotated_of: Annotated[
        Path | None, option("--unannotated-of", "With --suggest: words of DATA without annotation.", metavar="DATA")
    ] = None,
    vectors: Annotated[Path | None, option("--vectors", "With --suggest: run or file with word vectors.")] = None,
    graph: Annotated[Path | None, option("--graph", "Graph, or a run with one, in place of --source.")] = None,
    overlay: Annotated[Path, option("--overlay", "File of changes to write, or with --graph to read.")] = Path("overlay.txt"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the senses and sememes of a word as a tree; exit code 1 when no lexicon knows it.

    Or ask the other way round: words of a sememe, words with similar sememes, how similar two words are; merge
    lexicons into one file, and compare two.

    With --suggest it proposes sememes for words without annotation, and --dump writes them as a table to be corrected.

    With --change it writes an overlay, a small text file of changes that a trained run reads its graph with.
    """
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
    from sememekit.sememes.searching import read_pairs, similar_words, similarity, words_with

    given, overlaid = tuple(sources or ("open",)), overlay if "--overlay" in typed else None
    if change is not None:
        _change(change, graph, sources, side, overlay, json, quiet)
    elif suggest:
        limit = top if "--top" in typed else 5
        files = {"table": dump, "overlay": overlaid, "graph": graph}
        print_suggestions(words, unannotated_of, given, side, vectors, limit, files, json, quiet)
    elif sememes:
        _print_found(words_with(sememes, given, side=side, top=top), json, quiet)
    elif dump is not None:
        _dump(dump, given, side, json, quiet)
    elif diff is not None:
        _diff(given, diff, side, top, json)
    elif pairs is not None or way == "two words":
        asked_pairs = read_pairs(pairs) if pairs is not None else [(words[0], words[1], None)]
        _print_pairs(similarity(asked_pairs, given, side=side, graph=graph), json)
    elif check:
        _check_open_lexicon(json)
    elif similar:
        _print_found(similar_words(words[0], given, side=side, top=top, graph=graph), json, quiet)
    elif graph is not None:
        _annotation(words[0], graph, overlaid, json, quiet)
    else:
        _look_up(words[0], given, side, json)


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
"""Option -> what it is read with."""


def _print_pairs(report: PairsReport, json: bool) -> None:
    if json:
        print_json(report)
        return
    with_gold = any(pair.gold is not None for pair in report.pairs)
    rows = []
    for pair in report.pairs:
        sememes = (" ".join(f"[{name}]" if name in pair.shared else name for name in one) for one in pair.sememes)
        rows.append((pair.first, pair.second, f"{pair.similarity:.2f}", *((pair.gold,) if with_gold else ()), *sememes))
    columns = ("", "", "similarity", *(("gold",) if with_gold else ()), "sememes of the first", "of the second")
    print_table(f"Similarity of the best pair of senses ({', '.join(report.sources)})", columns, rows, numeric=len(columns))
    if report.unknown:
        named = ", ".join(f"{first} {second}" for first, second in report.unknown[:5])
        say(f"{len(report.unknown):,} pairs have a word without sememes: {named}")
    if report.spearman is not None:
        say(f"Spearman's rho over {report.judged:,} pairs: {report.spearman:.3f}")


def _look_up(word: str, sources: Sequence[str], side: SideName, json: bool) -> None:
    from sememekit.sememes.lookup import lookup
    from sememekit.text.scripts import traditional_hint

    report = lookup(word, sources, side=side)
    if json:
        print_json(report)
    elif report.senses:
        result_console().print(_word_tree(report))
    if not report.senses:
        near = f"; similar words: {' '.join(report.nearest)}" if report.nearest else ""
        told = f"{word!r} is not in {' or '.join(report.sources)}{near}; another lexicon: --source FORMAT:PATH"
        raise DataError(told + traditional_hint([word]))


def _annotation(word: str, graph: Path, overlay: Path | None, json: bool, quiet: bool) -> None:
    from sememekit.sememes.change import annotation

    report = annotation(word, graph, overlay)
    if json:
        print_json(report)
        return
    columns = ["sense", "label", "sememes"]
    rows = [(f"{report.word}#{each.sense}", each.label, " ".join(each.sememes)) for each in report.senses]
    changed = "" if overlay is None else f" with {overlay}"
    print_table(f"{report.word} in {graph}{changed} ({report.source})", columns, rows, numeric=len(columns))
    first = f"{report.word}#1" if len(report.senses) > 1 else report.word
    file = () if overlay is None else ("--overlay", overlay)
    change = typed("sememekit", "lookup", "--change", first, "+SEMEME -SEMEME", "--graph", graph, *file)
    hint(f"next: {change}", quiet)


def _print_found(report: SearchReport, json: bool, quiet: bool) -> None:
    if not report.senses:
        raise DataError(f"no other word shares a sememe with {' '.join(report.asked)}; add a lexicon: --source FORMAT:PATH")
    if json:
        print_json(report)
        return
    rows = [
        (
            sense.word,
            *((f"{sense.similarity:.2f}",) if sense.similarity is not None else ()),
            sense.part_of_speech,
            sense.gloss,
            " ".join(f"[{name}]" if name in sense.shared else name for name in sense.sememes),
        )
        for sense in report.senses
    ]
    columns = ["word", "part of speech", "gloss", "sememes"]
    if any(sense.similarity is not None for sense in report.senses):
        columns.insert(1, "similarity")
    listed = len({sense.word for sense in report.senses})
    print_table(f"{' '.join(report.asked)}: {report.num_words:,} words, {listed:,} listed", columns, rows, numeric=len(columns))
    hint("shared sememes stand in brackets" if "similarity" in columns else "next: sememekit lookup WORD --similar", quiet)


def _dump(path: Path, sources: Sequence[str], side: SideName, json: bool, quiet: bool) -> None:
    from sememekit.sememes.searching import dump_lexicons

    report = dump_lexicons(path, sources, side=side)
    if json:
        print_json(report)
        return
    say(f"{report.file}: {report.words:,} words, {report.senses:,} senses")
    if report.renamed:
        remark(f"blanks in the names of {report.renamed:,} sememes are written as _", quiet)
    graph = typed("sememekit", "build-sememe-graph", "--source", f"table:{path}", "--data", "DATA", "--out", "GRAPH")
    hint(f"next: {graph}", quiet)


def _diff(sources: Sequence[str], other: str, side: SideName, top: int, json: bool) -> None:
    if len(sources) > 1:
        fail_usage("--diff compares one --source with another lexicon; merge several with --dump first")
    from sememekit.sememes.searching import diff_lexicons

    report = diff_lexicons(sources[0], other, side=side)
    if json:
        print_json(report)
        return
    rows = [(name, *getattr(report, name)) for name in ("words", "senses", "sememes")]
    only = (len(report.sememes_first_only), len(report.sememes_second_only))
    rows += [("words of it alone", report.num_first_only, report.num_second_only), ("sememes of it alone", *only)]
    print_table("", ("", report.first, report.second), rows)
    say(f"words in both: {report.num_same:,} with the same sememes, {report.num_changed:,} with others")
    changed = [(each.word, "; ".join(each.first_only), "; ".join(each.second_only)) for each in report.changed[:top]]
    if changed:
        print_table(f"the first {len(changed):,}", ("word", report.first, report.second), changed, numeric=3)


def _change(
    change: tuple[str, str],
    graph: Path | None,
    sources: list[str] | None,
    side: SideName,
    overlay: Path,
    json: bool,
    quiet: bool,
) -> None:
    from sememekit.sememes.change import add_change

    report = add_change(*change, overlay, graph=graph, sources=sources or ("open",), side=side)
    if json:
        print_json(report)
        return
    say(f"{report.word}#{report.sense}: {' '.join(report.before)} -> {' '.join(report.after)}")
    say(f"{report.overlay}: {report.changes} change{'s' if report.changes > 1 else ''}")
    run = graph if graph is not None and graph.is_dir() else "RUN"
    hint(f"next: {typed('sememekit', 'evaluate-ppl', run, '--overlay', overlay)}", quiet)


def _check_open_lexicon(json: bool) -> None:
    from sememekit.sememes.lookup import check_open_lexicon

    report = check_open_lexicon()
    if json:
        print_json(report)
    else:
        for fault in report.faults:
            say(f"{fault.place}: {fault.message}")
        print_fields(f"The open lexicon in {report.folder}", report, skip=("folder", "faults", "files"))
    if not report.ok:
        raise DataError(f"{report.folder}: {len(report.faults)} places to fix in the open lexicon")


def _word_tree(report: LookupReport) -> Tree:
    from rich.markup import escape
    from rich.tree import Tree

    root = Tree(f"[bold]{escape(report.word)}[/]")
    for sense in report.senses:
        labels = [part for part in (sense.part_of_speech, sense.gloss) if part]
        branch = root.add(escape(f"{' '.join(labels)} ({sense.source})".strip()))
        if sense.tree:
            for node in sense.tree:
                _add_definition(branch, node)
        else:
            for sememe in sense.sememes:
                branch.add(escape(sememe))
    return root


def _add_definition(branch: Tree, node: DefinitionTree) -> None:
    from rich.markup import escape

    inner = branch.add(escape(f"{node.relation} = {node.sememe}" if node.relation else node.sememe))
    for child in node.children:
        _add_definition(inner, child)
