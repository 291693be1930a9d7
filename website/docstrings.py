"""An extension of griffe: docstrings as their authors mean them, ``>>>`` lines as code and roles as names.

A use in a docstring begins with what it is about. On a page it begins with the imports and values that it needs, so that it can
be copied and run.
"""

from __future__ import annotations

import ast
import builtins
import re
from importlib import import_module
from typing import Any, Final

import griffe

_ROLE: Final = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([^`]+)`")
_PACKAGES: Final = ("sememekit", "sememekit.nn", "sememekit.notebook")
"""Packages from which names are imported; the first that has a name counts."""
_VALUES: Final = {
    "torch": "import torch",
    "np": "import numpy as np",
    "counts": "counts = [1, 5, 2, 3]",
    "num_words": "num_words = 4",
    "senses": "senses = [[[0, 1], [2]], [[1]], [], [[3]]]",
    "embedding": "embedding = torch.nn.Embedding(4, 16)",
    "hidden_TBH": "hidden_TBH = torch.randn(5, 2, 16)",
    "vectors_TBE": "vectors_TBE = torch.randn(5, 2, 8)",
    "target_TB": "target_TB = torch.randint(3, (5, 2))",
    "scores_BTLE": "scores_BTLE = torch.randn(2, 5, 3, 1)",
    "words": 'words = Vocabulary.from_counts({"今天": 4, "工人": 2, "<unk>": 1})',
    "graph": 'graph = build_graph(words, [open_lexicon("open")])',
}
"""Names that docstrings take as given, and a line that gives them."""
_INDENTED: Final = re.compile(r"::(?=\n\n? {4})")


class Docstrings(griffe.Extension):
    """The extension that mkdocs.yml loads into mkdocstrings."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of a module, a class, a function or an attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """A docstring whose paragraphs of ``>>>`` lines are fenced."""
    text = _INDENTED.sub(":", _ROLE.sub(r"`\1`", text))
    parts = re.split(r"\n{2,}(?=>>> )", f"\n\n{text}")
    fenced = []
    for part in parts[1:]:
        code, _, rest = part.partition("\n\n")
        fenced.append(f"```pycon\n{with_what_it_needs(code)}\n```" + (f"\n\n{rest}" if rest else ""))
    return "\n\n".join([parts[0].strip("\n"), *fenced])


def with_what_it_needs(code: str) -> str:
    """A block of ``>>>`` lines after the imports and values that its names need, so that it runs alone."""
    typed = "\n".join(line[4:] for line in code.splitlines() if line.startswith((">>> ", "... ")))
    imports: dict[str, list[str]] = {}
    values: list[str] = []
    _collect(typed, imports, values)
    lines = [line for line in values if line.startswith("import ")]
    lines += [f"from {package} import {', '.join(sorted(names))}" for package, names in sorted(imports.items())]
    lines += [line for line in values if not line.startswith("import ")]
    return "\n".join([*(f">>> {line}" for line in lines), code])


def _collect(code: str, imports: dict[str, list[str]], values: list[str]) -> None:
    """Add what ``code`` needs, and what that needs, first things first."""
    names = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)} | {*vars(builtins)}
    own |= {node.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)}
    own |= {node.arg for node in ast.walk(ast.parse(code)) if isinstance(node, ast.arg)}
    for name in dict.fromkeys(node.id for node in names if node.id not in own):
        package = next((each for each in _PACKAGES if name in _public(each)), None)
        if package is not None:
            if name not in imports.setdefault(package, []):
                imports[package].append(name)
        elif name in _VALUES and _VALUES[name] not in values:  # another is of a docstring that is on no page
            _collect(_VALUES[name], imports, values)
            values.append(_VALUES[name])


def _public(package: str) -> set[str]:
    module = import_module(package)
    return {*getattr(module, "__all__", ()), *(name for name in vars(module) if name[:1].isupper())}
