"""The files of an attack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attack.toys import TABLE, TEXTS


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """What an attack of the toy victim reads: examples, the last two without a label it knows, and a table of substitutes."""
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{text}\t{label}\n" for text, label in TEXTS) + "good\t-\nbad\tperhaps\n", encoding="utf-8")
    table = tmp_path / "table.json"
    table.write_text(json.dumps(TABLE), encoding="utf-8")
    return {"data": data, "table": table, "out": tmp_path / "out"}
