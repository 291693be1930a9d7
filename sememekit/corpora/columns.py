"""Texts out of one column of JSON lines and of Parquet files; a text may have several lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from sememekit.errors import ConfigError, DataError
from sememekit.text.reading import BOM, FaultCounter

_ROWS: Final = 1 << 10


def texts_of_lines(blocks: Iterable[bytes], name: str, column: str, faults: FaultCounter) -> Iterator[bytes]:
    """The text of each JSON object, one a line, each with a line end. One line is in memory at a time.

    A byte-order mark before the first line is taken off and counted. Raises DataError: a line that is no object with that
    column, with file and line; invalid UTF-8 under ``strict``.
    """
    for number, line in enumerate(_lines(blocks), start=1):
        if number == 1 and line.startswith(BOM):
            line = line[len(BOM) :]
            faults.add("byte_order_marks")
        if not line.strip():
            continue
        try:
            found = json.loads(line if faults.policy == "strict" else line.decode(errors="replace"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name}:{number}: no JSON object: {str(error).splitlines()[0]:.120}") from None
        text = found.get(column) if isinstance(found, dict) else None
        if not isinstance(text, str):
            had = f"it has {', '.join(map(str, found))}" if isinstance(found, dict) else "it is no object"
            raise DataError(f"{name}:{number}: no text in the column {column!r}, {had}; name the column with --column")
        yield _as_lines(text)


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    begun: list[bytes] = []
    for block in blocks:
        first, *others = block.split(b"\n")
        begun.append(first)
        for line in others:
            yield b"".join(begun)
            begun = [line]
    yield b"".join(begun)


def texts_of_parquet(path: Path, name: str, column: str) -> Iterator[bytes]:
    """The texts of a column, a thousand rows at a time. Raises DataError: no Parquet file, or no such column of texts.
    Raises ConfigError: pyarrow is not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise ConfigError(f"{name}: .parquet files need the package pyarrow; run: pip install 'sememekit[remote]'") from None
    try:
        with parquet.ParquetFile(path) as file:
            columns = file.schema_arrow.names
            if column not in columns:
                raise DataError(f"{name}: no column {column!r}, it has {', '.join(columns)}; name the column with --column")
            for batch in file.iter_batches(batch_size=_ROWS, columns=[column], use_threads=False):
                for text in batch.column(0).to_pylist():
                    if not isinstance(text, str | None):
                        raise DataError(f"{name}: the column {column!r} holds no texts; name another with --column")
                    if text:
                        yield _as_lines(text)
    except pyarrow.ArrowException as error:
        raise DataError(f"{name}: no Parquet file, or a damaged one: {str(error).splitlines()[0]:.120}") from None


def _as_lines(text: str) -> bytes:
    return text.rstrip("\n").encode(errors="surrogatepass") + b"\n"
