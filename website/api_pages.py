"""Pages of the Python API: a page for each public class and function of ``sememekit.nn``, ``sememekit`` and the notebook.

Methods that all output layers have stand on the page of ``OutputLayer`` alone.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, Final

from mkdocs.structure.files import File, Files

from sememekit.nn import OutputLayer

PAGES: Final = {
    "reference/nn.md": ("Modules for a model of your own", ("sememekit.nn",)),
    "reference/python.md": ("Python API", ("sememekit", "sememekit.notebook", "sememekit.errors")),
}
"""A list of names: its title, and the packages whose public names it has."""
_HEAD: Final = "---\ntitle: {}\nsearch:\n  boost: 0.2\n---\n\n"


def on_config(config: Any) -> Any:
    """Put the pages into the navigation, below their lists."""
    made = pages()
    for section in config.nav:
        for entries in section.values():
            for entry in entries if isinstance(entries, list) else ():
                for title, uri in entry.items():
                    if str(uri) in PAGES:
                        folder = uri.removesuffix(".md") + "/"
                        below = [{one.rpartition("/")[2].removesuffix(".md"): one} for one in made if one.startswith(folder)]
                        entry[title] = [{"All names": uri}, *below]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    for uri, content in pages().items():
        files.append(File.generated(config, uri, content=content))
    return files


def pages() -> dict[str, str]:
    """Address -> page as Markdown, in which mkdocstrings finds a name where it is defined; a name of two packages is there
    once."""
    found, seen = {}, set()
    for uri, (title, packages) in PAGES.items():
        lines = [f"# {title}", ""]
        for package in packages:
            module = import_module(package)
            lines += [f"## {package}", "", _first_paragraph(module), "", "| name | |", "|---|---|"]
            for name in _public(module):
                value = getattr(module, name)
                if not (inspect.isclass(value) or inspect.isfunction(value)) or id(value) in seen:
                    continue
                seen.add(id(value))
                own = f"{uri.removesuffix('.md')}/{name}.md"
                first = _first_paragraph(value).replace("|", "\\|").replace("``", "`")
                lines.append(f"| [{name}]({own.removeprefix('reference/')}) | {first} |")
                found[own] = _HEAD.format(name) + _member(value)
            lines.append("")
        found[uri] = "\n".join(lines)
    return found


def _member(value: Any) -> str:
    text = f"::: {value.__module__}.{value.__qualname__}\n    options:\n      heading_level: 1\n"
    if inspect.isclass(value) and issubclass(value, OutputLayer) and value is not OutputLayer:
        kept = [name for name in dir(value) if name[0] != "_" and getattr(value, name) is not getattr(OutputLayer, name, None)]
        return f"{text}      inherited_members: {kept}\n\nMethods of all output layers: [OutputLayer](OutputLayer.md).\n"
    return text


def _public(module: Any) -> list[str]:
    own = (name for name, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module.__name__)
    return list(getattr(module, "__all__", own))


def _first_paragraph(module: Any) -> str:
    return " ".join((inspect.getdoc(module) or "").partition("\n\n")[0].split())
