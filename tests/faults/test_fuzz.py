"""Mutants of every file that is read: a value or a SememekitError, nothing else. ``make faults`` tries more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.faults import parsers
from tests.faults.parsers import Parser, edits, mutate
from tests.faults.table import crash

CASES = json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))
"""Mutants that once ended in a traceback: the reader, the edits, and where it was."""


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Parser, Path, bytes]]:
    """name -> the reader, a folder of its own with whole files, and the bytes of the file that is mutated."""
    parsers.KEPT[:] = [parsers.Kept(tmp_path_factory.mktemp("kept"))]
    found = {}
    for parser in parsers.parsers():
        folder = tmp_path_factory.mktemp("reader")
        parser.make(folder)
        found[parser.name] = (parser, folder, (folder / parser.file).read_bytes())
    return found


def test_every_reader_reads_its_own_file(readers: dict[str, tuple[Parser, Path, bytes]]) -> None:
    assert len(readers) > 50
    for parser, folder, data in readers.values():
        (folder / parser.file).write_bytes(data)  # another test may have left a mutant there
        parser.read(folder)


def crashes(parser: Parser, folder: Path, data: bytes, examples: int) -> list[str]:
    """Return the outcomes of mutants that are neither a value nor an error of ours."""
    found = []

    @settings(max_examples=examples, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(edits)
    def try_it(changes: list[parsers.Edit]) -> None:
        (folder / parser.file).write_bytes(mutate(data, changes))
        root = crash(lambda: parser.read(folder))
        if root:
            found.append(f"{parser.name}: {root}: {changes}")

    try_it()
    return found


def test_no_mutant_ends_in_a_traceback(readers: dict[str, tuple[Parser, Path, bytes]]) -> None:
    assert [one for reader in readers.values() for one in crashes(*reader, 3 if reader[0].slow else 10)] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['parser']}, {case['was']}")
def test_what_once_failed(readers: dict[str, tuple[Parser, Path, bytes]], case: dict[str, Any]) -> None:
    parser, folder, data = readers[case["parser"]]
    (folder / parser.file).write_bytes(mutate(data, [tuple(edit) for edit in case["edits"]]))
    assert crash(lambda: parser.read(folder)) == ""
