"""Lines of a file or of stdin, for subcommands that read text."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from sememekit.commands._printing import remark
from sememekit.errors import DataError
from sememekit.files import opening

T = TypeVar("T")
_TABLES: Final = frozenset({".jsonl", ".ndjson", ".json", ".parquet"})


def input_name(file: Path | None) -> str:
    """Name the input in messages: the file, or "stdin" for None and for ``-``."""
    return "stdin" if file is None or str(file) == "-" else str(file)


def remark_file_name(text: str, instead: str, quiet: bool = False) -> None:
    """Warn that a file name was read as text, and name the command to type ``instead``."""
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):  # too long for a name
        return
    if is_file:
        remark(f"{text} is a file, and its name was read as the text; {instead}", quiet)


@contextmanager
def input_stream(file: Path | None) -> Iterator[BinaryIO]:
    """A file, or stdin for None and for ``-``, open for reading bytes."""
    if file is None or str(file) == "-":
        yield sys.stdin.buffer
        return
    if file.suffix.lower() in _TABLES and file.exists():
        raise DataError(
            f"{file}: holds JSON records, and this command reads lines of text; extract the text first, for example: "
            f"jq -r .text {file} | sememekit ..."
        )
    remedy = "" if os.path.exists(file) else "; a text itself is read from stdin: echo TEXT | sememekit ..."
    with opening(file, lambda why: DataError(f"{why}{remedy}")):
        opened = file.open("rb")
    with opened:
        yield opened


def lines_of(path: Path | None, errors: str) -> Iterator[str]:
    """Lines of a file, or of stdin, without their ends; see ``input_stream``."""
    from sememekit.text.reading import FaultCounter, read_named

    with input_stream(path) as file:
        for piece in read_named(file, input_name(path), FaultCounter(errors)):
            yield piece.text


def some(rows: Iterable[T], nothing: str) -> Iterator[T]:
    """Return ``rows`` after computing the first row, before any output. DataError with ``nothing`` if there are no rows."""
    rows = iter(rows)
    for first in rows:
        return chain([first], rows)
    raise DataError(nothing)
