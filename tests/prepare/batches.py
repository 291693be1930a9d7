"""Batches of lines, and files of every kind that holds them."""

from __future__ import annotations

import gzip
import json
import lzma
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

BATCHES = [[f"w{number * other % 23} 天地 x{number % 7}" for number in range(500)] for other in (1, 3, 5, 7)]


def pack_zstd(data: bytes) -> bytes:
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    return bytes(zstd.compress(data))


def write_batch(path: Path, lines: Sequence[str]) -> Path:
    """The lines as a file of the kind that its name says; in columns two lines are one text."""
    rows = [{"url": "x", "text": "\n".join(lines[first : first + 2])} for first in range(0, len(lines), 2)]
    if path.name.endswith(".parquet"):
        table = pytest.importorskip("pyarrow").Table.from_pylist(rows)
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
        return path
    plain = "".join(f"{json.dumps(row)}\n" for row in rows) if "json" in path.name else "".join(f"{line}\n" for line in lines)
    packers = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": pack_zstd}
    path.write_bytes(packers.get(path.suffix, bytes)(plain.encode()))
    return path
