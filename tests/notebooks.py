"""Run the notebooks of docs/notebooks: ``python -m tests.notebooks`` writes their outputs anew, a test compares them.

A cell is executed as a notebook does it: what it prints, and what its last line is worth, as text and as HTML.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"


def names() -> list[str]:
    return sorted(path.name for path in FOLDER.glob("*.ipynb"))


def read(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def executed(notebook: dict[str, Any], where: str) -> dict[str, Any]:
    """The same notebook with the outputs of a fresh run in the working folder; ``where`` names it in tracebacks."""
    variables: dict[str, Any] = {"__name__": "__main__"}
    cells, number = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            outputs = _outputs("".join(cell["source"]), variables, f"{where}, cell {number}", number)
            cell = {**cell, "execution_count": number, "outputs": outputs}
        cells.append(cell)
    return {**notebook, "cells": cells}


def _outputs(source: str, variables: dict[str, Any], where: str, number: int) -> list[dict[str, Any]]:
    tree = ast.parse(source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), variables)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), where, "eval"), variables)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        outputs.append({"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}})
    return outputs


@contextlib.contextmanager
def empty_folder() -> Any:
    """Make an empty folder the working folder."""
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def main() -> None:
    import torch

    torch.set_num_threads(1)
    for name in sys.argv[1:] or names():
        with empty_folder():
            found = executed(read(name), name)
        text = json.dumps(found, ensure_ascii=False, indent=1) + "\n"
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
