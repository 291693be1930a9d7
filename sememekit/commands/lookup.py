"""The subcommand lookup; the plain functions are in ``lookup``, ``searching`` and ``change`` of ``sememekit.sememes``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememekit.commands._exit import fail_usage
from sememekit.commands._options import LEXICON, Json, Quiet, Side, SourcesOrOpen, option, others_typed
from sememekit.commands._printing import hint, print_fields, print_json, print_table, remark, result_console, say
from sememekit.errors import DataError
from sememekit.files import typed

if TYPE_CHECKING:
    from rich.tree import Tree

    from sememekit.sememes import Side as SideName
    from sememekit.sememes.lookup import DefinitionTree, LookupReport
    from sememekit.sememes.searching import SearchReport

EXAMPLES = (
    "sememekit lookup 希望",
    "sememekit lookup --sememe fruit",
    "sememekit lookup 苹果 --similar",
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
    word: Annotated[str | None, typer.Argument(metavar="[WORD]", help="The word to look up.", show_default=False)] = None,
    sources: SourcesOrOpen = None,
    side: Side = "chinese",
    sememes: Annotated[
        list[str] | None,
        option(
            "--sememe",
            "Instead: words that have this sememe; one side of english|中文 is enough. May be repeated: all in one sense.",
            metavar="SEMEME",
        ),
    ] = None,
    similar: Annotated[bool, option("--similar", "Words whose sememes are most similar to those of WORD.")] = False,
    top: Annotated[
        int, option("--top", "With --sememe, --similar and --diff: words that are listed; --json has all of --diff.", min=1)
    ] = 20,
    dump: Annotated[
        Path | None,
        option("--dump", "Instead: write all senses of --source, merged, into a file that table:FILE reads.", metavar="FILE"),
    ] = None,
    diff: Annotated[str | None, option("--diff", "Instead: how --source differs from this lexicon.", metavar=LEXICON)] = None,
    check: Annotated[bool, option("--check", "Check the open lexicon for consistency instead.")] = False,
    change: Annotated[
        tuple[str, str] | None,
        option(
            "--change",
            "Instead: add a change of annotation to --overlay, for evaluate-ppl, explain and score.",
            metavar='WORD[#SENSE] "+SEMEME -SEMEME"',
            show_default=False,
        ),
    ] = None,
    graph: Annotated[
        Path | None,
        option("--graph", "Of WORD or --change: a sememe graph, or a run with one, in place of --source.", show_default=False),
    ] = None,
    overlay: Annotated[
        Path, option("--overlay", "With --change: file that is written or added to; with --graph: changes of WORD.")
    ] = Path("overlay.txt"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the senses and sememes of a word as a tree; exit code 1 when no lexicon knows it.

    Or ask the other way round: words of a sememe, words with similar sememes; merge lexicons into one file, and compare two.

    With --change it writes an overlay, a small text file of changes that a trained run reads its graph with.
    """
    if change is not None and (taken := next((value for value in change if value.startswith("--") and value != "--"), None)):
        fail_usage(f"--change takes two values, and {taken} was taken for one; give both: --change WORD '+SEMEME -SEMEME'")
    asked = {
        "WORD": word is not None,
        "--sememe": bool(sememes),
        "--dump": dump is not None,
        "--diff": diff is not None,
        "--check": check,
        "--change": change is not None,
    }
    chosen = [name for name, is_asked in asked.items() if is_asked]
    if len(chosen) != 1:
        fail_usage(f"give one of {', '.join(asked)}" + (f", and not {' with '.join(chosen)}" if chosen else ""))
    if similar and word is None:
        fail_usage("--similar needs a WORD")
    if graph is not None and change is None and word is None:
        fail_usage("--graph needs WORD or --change")
    if graph is not None and similar:
        fail_usage("--similar asks lexicons: give --source in place of --graph")
    if graph is not None and sources:
        fail_usage("give --graph or --source, not both")
    typed = others_typed(context, ())
    if check and (unread := [name for name in ("--source", "--side") if name in typed]):
        fail_usage(f"--check is of the open lexicon alone; leave {' and '.join(unread)} out")
    if "--side" in typed and graph is not None:
        fail_usage("--side is of lexicons, and a graph has its words; leave it out with --graph")
    if "--top" in typed and not (sememes or similar or diff is not None):
        fail_usage("--top needs --sememe, --similar or --diff; leave it out")
    if "--overlay" in typed and change is None and graph is None:
        fail_usage(
            "--overlay needs --change, or WORD with --graph; a trained run reads an overlay with: sememekit explain RUN TEXT "
            "--overlay FILE"
        )
    from sememekit.sememes.searching import similar_words, words_with

    given = tuple(sources or ("open",))
    if change is not None:
        _change(change, graph, sources, side, overlay, json, quiet)
    elif sememes:
        _print_found(words_with(sememes, given, side=side, top=top), json, quiet)
    elif dump is not None:
        _dump(dump, given, side, json, quiet)
    elif diff is not None:
        _diff(given, diff, side, top, json)
    elif word is None:
        _check_open_lexicon(json)
    elif similar:
        _print_found(similar_words(word, given, side=side, top=top), json, quiet)
    elif graph is not None:
        _annotation(word, graph, overlay if "--overlay" in typed else None, json, quiet)
    else:
        _look_up(word, given, side, json)


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
