"""An extension of griffe: docstrings as their authors mean them, ``>>>`` lines as code and roles as names."""

from __future__ import annotations

import re
from typing import Any, Final

import griffe

_ROLE: Final = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([^`]+)`")
_INDENTED: Final = re.compile(r"::(?=\n\n? {4})")


class Docstrings(griffe.Extension):
    """What mkdocstrings is told to load in mkdocs.yml."""

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
        fenced.append(f"```pycon\n{code}\n```" + (f"\n\n{rest}" if rest else ""))
    return "\n\n".join([parts[0].strip("\n"), *fenced])
