"""The pages of the commands, from the program itself: a list, and a page for each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from mkdocs.structure.files import File, Files

from sememekit.commands._program import PANELS, app

LIST = "reference/commands.md"
FOUND_LATER = "---\nsearch:\n  boost: 0.4\n---\n\n"
"""The head of a page that a search lists after guides."""


def on_config(config: Any) -> Any:
    """Put the pages into the navigation, below their list."""
    for section in config.nav:
        for entries in section.values():
            for entry in entries if isinstance(entries, list) else ():
                for title, uri in entry.items():
                    if uri == LIST:
                        below = [{name.rpartition("/")[2].removesuffix(".md"): name} for name in pages() if name != LIST]
                        entry[title] = [{"All commands": LIST}, *below]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    for uri, content in pages().items():
        files.append(File.generated(config, uri, content=content))
    return files


def pages() -> dict[str, str]:
    """Address -> page: the list of commands in the order of ``sememekit --help``, and each with help, options and examples."""
    group = typer.main.get_command(app)
    lines = ["# Commands", "", "Written by the program: what `sememekit COMMAND --help` says.", ""]
    found, panel = {LIST: ""}, ""
    for name, its_panel in PANELS.items():
        if its_panel != panel:
            lines += [f"## {its_panel}", "", "| command | |", "|---|---|"]
            panel = its_panel
        command = group.commands[name]
        lines.append(f"| [{name}](commands/{name}.md) | {_cell(command.get_short_help_str(200))} |")
        found[f"reference/commands/{name}.md"] = FOUND_LATER + "\n".join(_command(f"sememekit {name}", command))
        if list(PANELS.values())[list(PANELS).index(name) + 1 :][:1] != [panel]:
            lines.append("")
    return {**found, LIST: "\n".join(lines)}


def _command(path: str, command: Any) -> Iterator[str]:
    yield from (f"# {path.removeprefix('sememekit ')}", "", _paragraphs(command.help), "")
    inner = getattr(command, "commands", {})
    if inner:
        for name, one in inner.items():
            yield from (f"## {path.removeprefix('sememekit ')} {name}", "", _paragraphs(one.help), "")
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
