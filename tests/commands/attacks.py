"""Attacks on the toy victim: its plan, and how a test runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sememekit.jobs.attack import attack
from tests.attack import toys

VICTIM = "tests.attack.toys:predict"


def table_of(files: dict[str, Path], **changes: Any) -> dict[str, Any]:
    table: dict[str, Any] = {
        "search": {"name": "genetic", "population": 6, "generations": 4},
        "candidates": {"name": "table", "path": str(files["table"])},
        "attack": {"together": 3},
    }
    for path, value in changes.items():
        slot, _, key = path.partition("__")
        table[slot] = {**table.get(slot, {}), key: value}
    return table


def run(files: dict[str, Path], out: Path, **options: Any) -> Any:
    table = options.pop("table", None) or table_of(files)
    return attack(VICTIM, files["data"], out, table=table, labels=toys.LABELS, **options)
