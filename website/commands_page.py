"""The page of all commands, from the program itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from mkdocs.structure.files import File, Files

from sememekit.commands._program import PANELS, app


def on_files(files: Files, config: Any) -> Files:
    """Add the page."""
    files.append(File.generated(config, "reference/commands.md", content=page()))
    return files


def page() -> str:
    """Each command with its help, its arguments and options, and its examples, in the order of ``sememekit --help``."""
    group = typer.main.get_command(app)
    lines = ["# Commands", "", "Written by the program: what `sememekit COMMAND --help` says.", ""]
    panel = ""
    for name, its_panel in PANELS.items():
        if its_panel != panel:
            lines += [f"## {its_panel}", ""]
            panel = its_panel
        lines += _command(f"sememekit {name}", group.commands[name])
    return "\n".join(lines)


def _command(path: str, command: Any) -> Iterator[str]:
    yield from (f"### {path.removeprefix('sememekit ')}", "", _paragraphs(command.help), "")
    inner = getattr(command, "commands", {})
    if inner:
        for name, one in inner.items():
            yield from (f"#### {path.removeprefix('sememekit ')} {name}", "", _paragraphs(one.help), "")
            yield from _usage(f"{path} {name}", one)
        return
    yield from _usage(path, command)


def _usage(path: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=path)
    yield from ("```text", " ".join((path, *command.collect_usage_pieces(context))), "```", "")
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    if shown:
        yield from ("| argument or option | meaning |", "|---|---|")
        yield from (_row(parameter, context) for parameter in shown)
        yield ""
    examples = _examples(command.epilog or "")
    if examples:
        yield from ("```text", *examples, "```", "")


def _row(parameter: Any, context: Any) -> str:
    names, text = parameter.get_help_record(context)
    return f"| <code>{_cell(names)}</code> | {_cell(text)} |"


def _examples(epilog: str) -> list[str]:
    lines = (line.strip() for line in epilog.splitlines())
    return [line for line in lines if line.startswith("sememekit ")]


def _cell(text: str) -> str:
    """Text of the program in a table: without marks of rich, and with what Markdown would read as its own escaped."""
    text = re.sub(r"\[/?(?:bold|dim|italic|cyan|green|yellow|red)\]", "", " ".join(text.split()))
    return re.sub(r"[<>&|*_`\[\]]", lambda found: f"&#{ord(found[0])};", text)


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(_cell(paragraph) for paragraph in (text or "").split("\n\n"))
