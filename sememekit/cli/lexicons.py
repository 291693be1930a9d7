"""Subcommands about words and their sememes: build-sememe-graph, lookup."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sememekit.cli.options import Debug, Json, Quiet, Seed, example, given
from sememekit.cli.program import fail_usage
from sememekit.cli.render import hint, print_fields, print_json, remark, result_console, say
from sememekit.errors import DataError

if TYPE_CHECKING:
    from rich.tree import Tree

Side = Annotated[
    Literal["chinese", "english"] | None,
    typer.Option("--side", help="Which words of a two-sided lexicon (hownet, openhownet) are read."),
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        metavar="FORMAT:PATH",
        help="Where words get their sememes: open, function-words, or hownet, hownet2000, list, table, openhownet, wordnet, "
        "dictionary (wordnet, cedict or a file) and random (another source) with a path. "
        "May be repeated: the first source that knows a word has it.",
        show_default=False,
    ),
]
NUM_WORDS_SHOWN = 10
"""Words without annotation that are named; --unannotated names all."""


def register(app: typer.Typer) -> None:
    """Add these subcommands to the program."""
    app.command(
        "build-sememe-graph",
        epilog=example("sememekit build-sememe-graph --source open --data data/pd --out pd.graph"),
    )(build_sememe_graph)
    app.command(epilog=example("sememekit lookup 希望", "sememekit lookup --check"))(lookup)


def build_sememe_graph(
    data: Annotated[Path, typer.Option("--data", help="Prepared data whose words get sememes.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="File to write.", show_default=False)],
    sources: Sources = None,
    side: Side = None,
    lemmas: Annotated[
        str | None,
        typer.Option("--lemmas", metavar="FILE|wordnet", help="Base forms, for words that no source knows as written."),
    ] = None,
    defining_words: Annotated[
        int | None, typer.Option("--defining-words", min=1, help="How many sememes 'dictionary' chooses; usually 2000.")
    ] = None,
    drop_edges: Annotated[
        float | None, typer.Option("--drop-edges", min=0.0, max=1.0, help="Share of annotations to remove at random.")
    ] = None,
    yes_download: Annotated[bool, typer.Option("--yes-download", help="Let openhownet fetch what it lacks.")] = False,
    unannotated: Annotated[bool, typer.Option("--unannotated", help="Name every word that no source knows.")] = False,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Give each word of the data its senses and their sememes, and say how many words have none."""
    if not sources:
        fail_usage("missing option '--source': name at least one, for example --source open")
    from sememekit.commands.build_sememe_graph import build_sememe_graph as run

    options = given(side=side, lemmas=lemmas, defining_words=defining_words, drop_edges=drop_edges, seed=seed)
    report = run(sources, data, out, yes_download=yes_download, **options)
    if json:
        print_json(report, without=None if unannotated else {"statistics": {"words_without_annotation"}})
        return
    fields = report.statistics.model_dump()
    without = fields.pop("words_without_annotation")
    print_fields(f"Sememe graph in {out}", fields)
    for use in report.lexicons:
        remark(f"{use.source}: {use.words_used:,} words, {use.tokens_used:,} running tokens", quiet)
    for line in report.history:
        remark(line, quiet)
    if without:
        named = without if unannotated else without[:NUM_WORDS_SHOWN]
        shown, rest = " ".join(named), len(without) - len(named)
        more = f", and {rest:,} more (--unannotated names all)" if rest else ""
        remark(f"words without annotation: {shown}{more}", quiet)
    hint(f"next: sememekit train --decoder sdlm --data {data} --graph {out} --out runs/sdlm", quiet)


def lookup(
    word: Annotated[str | None, typer.Argument(metavar="[WORD]", help="The word to look up.", show_default=False)] = None,
    sources: Sources = None,
    side: Side = None,
    check: Annotated[bool, typer.Option("--check", help="Check the open lexicon for consistency instead.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the senses and sememes of a word as a tree; exit code 1 when no lexicon knows it."""
    if word is None:
        if not check:
            fail_usage("give a WORD or --check")
        _check_open_lexicon(json)
        return
    if check:
        fail_usage("give a WORD or --check, not both")
    from sememekit.commands.lookup import lookup as run

    report = run(word, **given(sources=sources, side=side))
    if json:
        print_json(report)
    elif report.senses:
        result_console().print(_word_tree(report))
    if not report.senses:
        near = f"; similar words: {' '.join(report.nearest)}" if report.nearest else ""
        raise DataError(f"{word!r} is in none of {', '.join(report.sources)}{near}")


def _check_open_lexicon(json: bool) -> None:
    from sememekit.commands.lookup import check_open_lexicon

    report = check_open_lexicon()
    if json:
        print_json(report)
    else:
        for fault in report.faults:
            say(f"{fault.place}: {fault.message}")
        print_fields(f"The open lexicon in {report.folder}", report, skip=("folder", "faults", "files"))
    if not report.ok:
        raise DataError(f"{report.folder}: {len(report.faults)} places to mend in the open lexicon")


def _word_tree(report: Any) -> Tree:
    """Word, then senses, then sememes, or the tree of the definition where the lexicon has one."""
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


def _add_definition(branch: Tree, node: Any) -> None:
    from rich.markup import escape

    inner = branch.add(escape(f"{node.relation} = {node.sememe}" if node.relation else node.sememe))
    for child in node.children:
        _add_definition(inner, child)
