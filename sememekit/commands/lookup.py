"""The subcommand lookup; the plain functions are in ``sememekit.sememes.lookup``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sememekit.commands._exit import fail_usage
from sememekit.commands._options import Json, Side, Sources
from sememekit.commands._render import print_fields, print_json, result_console, say
from sememekit.errors import DataError

if TYPE_CHECKING:
    from rich.tree import Tree

    from sememekit.sememes.lookup import DefinitionTree, LookupReport

EXAMPLES = ("sememekit lookup 希望", "sememekit lookup --check")


def command(
    word: Annotated[str | None, typer.Argument(metavar="[WORD]", help="The word to look up.", show_default=False)] = None,
    sources: Sources = None,
    side: Side = "chinese",
    check: Annotated[bool, typer.Option("--check", help="Check the open lexicon for consistency instead.")] = False,
    json: Json = False,
) -> None:
    """Show the senses and sememes of a word as a tree; exit code 1 when no lexicon knows it."""
    if word is None:
        if not check:
            fail_usage("give a WORD or --check")
        _check_open_lexicon(json)
        return
    if check:
        fail_usage("give a WORD or --check, not both")
    from sememekit.sememes.lookup import lookup

    report = lookup(word, sources or ("open",), side=side)
    if json:
        print_json(report)
    elif report.senses:
        result_console().print(_word_tree(report))
    if not report.senses:
        near = f"; similar words: {' '.join(report.nearest)}" if report.nearest else ""
        raise DataError(f"{word!r} is in none of {', '.join(report.sources)}{near}")


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


def _add_definition(branch: Tree, node: DefinitionTree) -> None:
    from rich.markup import escape

    inner = branch.add(escape(f"{node.relation} = {node.sememe}" if node.relation else node.sememe))
    for child in node.children:
        _add_definition(inner, child)
