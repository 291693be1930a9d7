"""The subcommand lookup; the plain functions are in ``sememekit.sememes.lookup`` and ``sememekit.sememes.change``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememekit.commands._exit import fail_usage
from sememekit.commands._options import Json, Quiet, Side, Sources, option
from sememekit.commands._render import hint, print_fields, print_json, result_console, say
from sememekit.errors import DataError

if TYPE_CHECKING:
    from rich.tree import Tree

    from sememekit.sememes import Side as SideName
    from sememekit.sememes.lookup import DefinitionTree, LookupReport

EXAMPLES = (
    "sememekit lookup 希望",
    "sememekit lookup --check",
    'sememekit lookup --change 工人 "+人" --graph runs/sdlm',
)


def command(
    word: Annotated[str | None, typer.Argument(metavar="[WORD]", help="The word to look up.", show_default=False)] = None,
    sources: Sources = None,
    side: Side = "chinese",
    check: Annotated[bool, option("--check", "Check the open lexicon for consistency instead.")] = False,
    change: Annotated[
        tuple[str, str] | None,
        option(
            "--change",
            "Instead: add a change of annotation to --overlay, for evaluate-ppl --overlay.",
            metavar='WORD[#SENSE] "+SEMEME -SEMEME"',
            show_default=False,
        ),
    ] = None,
    graph: Annotated[
        Path | None,
        option("--graph", "With --change: the sememe graph, or the run, that it is for; else --source.", show_default=False),
    ] = None,
    overlay: Annotated[Path, option("--overlay", "With --change: file that is written or added to.")] = Path("overlay.txt"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the senses and sememes of a word as a tree; exit code 1 when no lexicon knows it.

    With --change it writes an overlay, a small text file of changes that a trained run reads its graph with.
    """
    if change is not None:
        if word is not None or check:
            fail_usage("--change WORD CHANGE cannot be combined with another WORD or with --check")
        if graph is not None and sources:
            fail_usage("--change takes --graph or --source, not both")
        _change(change, graph, sources, side, overlay, json, quiet)
        return
    if graph is not None:
        fail_usage("--graph needs --change")
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
    hint(f"next: sememekit evaluate-ppl {run} --overlay {overlay}", quiet)


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
