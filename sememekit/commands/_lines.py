"""Lines of a file or of stdin, for subcommands that read text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sememekit.errors import DataError


@contextmanager
def input_stream(file: Path | None) -> Iterator[BinaryIO]:
    """A file, or stdin for None, open for reading bytes."""
    if file is None:
        yield sys.stdin.buffer
        return
    try:
        opened = file.open("rb")
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from None
    with opened:
        yield opened


def lines_of(path: Path | None, errors: str) -> Iterator[str]:
    """Lines of a file, or of stdin, without their ends."""
    from sememekit.text.reading import FaultCounter, read_named

    name = "stdin" if path is None else str(path)
    with input_stream(path) as file:
        for piece in read_named(file, name, FaultCounter(errors)):
            yield piece.text
