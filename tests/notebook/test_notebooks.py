"""The notebooks of docs/notebooks are executed, small, and show what they would show now."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.notebooks import FOLDER, empty_folder, executed, names, read

_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*")


def outputs(notebook: dict[str, Any]) -> Iterator[str]:
    """Yield the printed text, and the last values as text."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            yield "".join(output.get("text") or output["data"]["text/plain"])


def words_and_numbers(text: str) -> tuple[list[str], list[float]]:
    """A text without its numbers, and the numbers; blanks, which a longer number moves, do not count."""
    return _NUMBER.sub("#", text).split(), [float(number.replace(",", "")) for number in _NUMBER.findall(text)]


@pytest.mark.parametrize("name", names())
def test_every_cell_was_executed_in_order_without_an_error(name: str) -> None:
    notebook = read(name)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(output["output_type"] != "error" for cell in code for output in cell["outputs"])
    assert sum(1 for _ in outputs(notebook)) >= 4
    assert (FOLDER / name).stat().st_size < 40_000
    assert json.dumps(notebook, ensure_ascii=False, indent=1) + "\n" == (FOLDER / name).read_text(encoding="utf-8")
    assert "/tmp" not in "".join(outputs(notebook))


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_a_fresh_run_shows_the_same(name: str) -> None:
    """``python -m tests.notebooks`` writes the outputs anew; numbers may differ by a twentieth with the machine."""
    before, state = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(1)
    try:
        with empty_folder():
            found = executed(read(name), name)
    finally:
        torch.set_num_threads(before)
        torch.set_rng_state(state)
    for shown, stored in zip(outputs(found), outputs(read(name)), strict=True):
        (words, numbers), (stored_words, stored_numbers) = words_and_numbers(shown), words_and_numbers(stored)
        assert words == stored_words, shown
        assert numbers == pytest.approx(stored_numbers, rel=0.05, abs=0.05), shown


def test_the_three_notebooks() -> None:
    assert names() == ["attack-your-classifier.ipynb", "sememe-softmax.ipynb", "words-from-raw-chinese.ipynb"]
    page = (FOLDER.parent / "python.md").read_text(encoding="utf-8")
    assert all(f"(notebooks/{name})" in page for name in names())
