"""Pages of the Python API: every name of ``sememekit.nn``, of the public list of ``sememekit``, and of the notebook."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, Final

from mkdocs.structure.files import File, Files

PAGES: Final = {
    "reference/nn.md": ("Modules for a model of your own", ("sememekit.nn",)),
    "reference/python.md": ("Python API", ("sememekit", "sememekit.notebook", "sememekit.errors")),
}
"""A page of the site: its title, and the packages whose public names it has."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    for uri in PAGES:
        files.append(File.generated(config, uri, content=page(uri)))
    return files


def page(uri: str) -> str:
    """A page as Markdown, in which mkdocstrings finds each name where it is defined; a name of two packages is there once."""
    title, packages = PAGES[uri]
    lines, seen = [f"# {title}", ""], set()
    for package in packages:
        module = import_module(package)
        lines += [f"`{package}`: {_first_paragraph(module)}", ""]
        for name in _public(module):
            value = getattr(module, name)
            if inspect.ismodule(value) or id(value) in seen:
                continue
            seen.add(id(value))
            if inspect.isclass(value) or inspect.isfunction(value):
                lines += [f"::: {value.__module__}.{value.__qualname__}", ""]
    return "\n".join(lines)


def _public(module: Any) -> list[str]:
    own = (name for name, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module.__name__)
    return list(getattr(module, "__all__", own))


def _first_paragraph(module: Any) -> str:
    return " ".join((inspect.getdoc(module) or "").partition("\n\n")[0].split())
