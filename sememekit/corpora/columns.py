"""Texts out of one column of JSON lines and of Parquet files; a text may have several lines."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from sememekit.errors import DataError
from sememekit.files import by_its_beginning
from sememekit.text.huggingface import needed
from sememekit.text.reading import FaultCounter, refuse_mostly_invalid, without_mark

_ROWS: Final = 1 << 10
_HINT: Final = "; one object a line is needed; of one list of objects it is made by: jq -c '.[]' FILE.json > FILE.jsonl"


def texts_of_lines(blocks: Iterable[bytes], name: str, column: str, faults: FaultCounter) -> Iterator[bytes]:
    """The text of each JSON object, one a line, each with a line end. One line is in memory at a time.

    A byte-order mark before a line is taken off and counted, and so are lines that are not UTF-8 under ``replace`` and
    ``skip``. Raises DataError: a line that is no object with that column, with file and line; invalid UTF-8 under ``strict``,
    and under ``replace`` where most lines have some.
    """
    lines, invalid_before = 0, faults.bad_lines
    for number, line in enumerate(_lines(blocks), start=1):
        line = without_mark(line, faults)
        if not line.strip():
            continue
        lines += 1
        text = decoded(line, f"{name}:{number}", faults)
        if text is None:
            continue
        hint = (f"; {odd}" if (odd := by_its_beginning(line, name)) else _HINT) if lines == 1 else ""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name}:{number}: no JSON object: {str(error).splitlines()[0]:.120}{hint}") from None
        if hint and not isinstance(found, dict):
            raise DataError(f"{name}:{number}: no JSON object but {type(found).__name__}{hint}")
        text = found.get(column) if isinstance(found, dict) else None
        if not isinstance(text, str):
            had = f"it has {', '.join(map(str, found))}" if isinstance(found, dict) else "it is no object"
            raise DataError(f"{name}:{number}: no text in the column {column!r}, {had}; name the column with --column")
        yield _as_lines(text)
    if faults.policy == "replace":
        refuse_mostly_invalid(name, faults.bad_lines - invalid_before, lines)


def decoded(line: bytes, where: str, faults: FaultCounter) -> str | None:
    """The text of a line or a file; None where ``skip`` leaves it out. Raises DataError: invalid UTF-8 under ``strict``."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        if faults.policy == "strict":
            raise DataError(
                f"{where}: not UTF-8 at byte {error.start} of it; convert the file to UTF-8{faults.choices}"
            ) from None
        return line.decode(errors="replace") if faults.keeps("invalid_utf8") else None


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    begun: list[bytes] = []
    for block in blocks:
        first, *others = block.split(b"\n")
        begun.append(first)
        for line in others:
            yield b"".join(begun)
            begun = [line]
    yield b"".join(begun)


def texts_of_parquet(path: Path, name: str, column: str | None) -> Iterator[bytes]:
    """The texts of a column, or without one all columns as JSON lines, a thousand rows at a time. Raises DataError: no Parquet
    file, or no such column of texts. Raises ConfigError: pyarrow is not installed."""
    pyarrow, parquet = (
        needed(each, f"{name}: reading .parquet", "sememekit[remote]") for each in ("pyarrow", "pyarrow.parquet")
    )
    try:
        with parquet.ParquetFile(path) as file:
            columns = file.schema_arrow.names
            if column is None:
                for batch in file.iter_batches(batch_size=_ROWS, use_threads=False):
                    yield from (json.dumps(row, ensure_ascii=False, default=str).encode() + b"\n" for row in batch.to_pylist())
                return
            if column not in columns:
                raise DataError(f"{name}: no column {column!r}, it has {', '.join(columns)}; name the column with --column")
            for batch in file.iter_batches(batch_size=_ROWS, columns=[column], use_threads=False):
                for text in batch.column(0).to_pylist():
                    if not isinstance(text, str | None):
                        raise DataError(f"{name}: the column {column!r} holds no texts; name another with --column")
                    if text:
                        yield _as_lines(text)
    except (pyarrow.ArrowException, OSError) as error:  # it raises OSError for a damaged end
        raise DataError(f"{name}: no Parquet file, or a damaged one: {str(error).splitlines()[0]:.120}") from None


def _as_lines(text: str) -> bytes:
    return text.rstrip("\n").encode(errors="surrogatepass") + b"\n"
