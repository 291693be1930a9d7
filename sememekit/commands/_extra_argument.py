"""Unexpected arguments of a command: suggest the option for such a file or folder, or the missing quotes."""

from collections.abc import Collection, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from sememekit.files import CLUSTERS, GRAPH, OVERLAY, typed

_FOLDERS: Final = (
    ("plan.json", "a run", (("--out", "--resume"), ("--from",))),
    ("signature.json", "prepared data", (("--data",),)),
    ("sweep.json", "a sweep", (("--out",),)),
)
"""File of a folder, kind of the folder, and the options that may name it; the first of a group takes its name."""
_TEXTS: Final = {"attack": (("--data",),)}  # command -> options besides --text that take a text
_FILES: Final = ((GRAPH, "--graph"), (CLUSTERS, "--clusters"), (OVERLAY, "--overlay"))


def instead_of_extra(command: Any, extra: str, arguments: Collection[str]) -> str:
    """Suggest what to type for the unexpected arguments of a line, which the parser joined by blanks; "" for no suggestion."""
    argument = next((one for one in arguments if extra == one or extra.startswith(f"{one} ")), extra)
    options = {flag for parameter in command.params for flag in parameter.opts}
    has_out = any(one.partition("=")[0] == "--out" for one in arguments)
    if "--resume" in arguments and not has_out and {"--out", "--resume"} <= options:
        return f"what is resumed is named by --out: {typed('sememekit', command.name, '--out', argument, '--resume')}"
    try:
        if command.name == "preprocess" and Path(argument).is_file():
            return "several files of plain are named by a pattern in quotation marks, such as 'part-*.txt', or by their folder"
        kind, groups = _kind_of(Path(argument), command.name)
    except OSError:  # such as a whole text, which is too long for a name, or a file that may not be read
        return ""
    ways = [" ".join([first, typed(argument), *more]) for first, *more in groups if {first, *more} <= options]
    return f"{typed(argument)} is {kind}, which is named by an option: {' or '.join(ways)}" if ways else ""


def unquoted_changes(arguments: Sequence[str]) -> str:
    """Suggest quotes for a ``--change`` that was typed as several arguments; "" for a single argument."""
    if "--change" not in arguments:
        return ""
    word, *rest = [*arguments[arguments.index("--change") + 1 :], ""]
    changes = list(takewhile(lambda one: one.startswith(("+", "-")) and not one.startswith("--"), rest))
    if len(changes) < 2:
        return ""
    return f"the changes of a word go in one pair of quotation marks: {typed('--change', word, ' '.join(changes))}"


def given_without_option(context: Any, option: str, arguments: Sequence[str]) -> str:
    """Suggest a missing option, such as ``--out``, for the only extra argument of a line; "" for none or several."""
    names, outer = 0, context  # of the command and the groups around it, which stand before its arguments
    while (outer := outer.parent) is not None:
        names += 1
    _, extra, _ = context.command.make_parser(context).parse_args(args=list(arguments[names:]))
    return f"if {typed(extra[0])} is meant: {option} {typed(extra[0])}" if len(extra) == 1 else ""


def _kind_of(path: Path, command: str) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return the kind of file or folder at a path, and groups of options that take it."""
    for name, kind, groups in _FOLDERS:
        if (path / name).is_file():
            return kind, groups
    if path.is_file():
        with path.open("rb") as stream:
            head = stream.read(4096)
        for file, option in _FILES:
            if file.begins(head):
                return file.name, ((option,),)
    if path.exists():
        return ("a recipe", (("--recipe",),)) if path.suffix == ".toml" else ("a text", (("--text",), *_TEXTS.get(command, ())))
    from sememekit.config import recipe_names

    return ("a recipe", (("--recipe",),)) if str(path) in recipe_names() else ("", ())
