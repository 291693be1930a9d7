"""Lines of a file or of stdin, for subcommands that read text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path


def lines_of(path: Path | None, errors: str) -> Iterator[str]:
    """Lines of a file, or of stdin."""
    from sememekit.text.reading import FaultCounter, read_stream

    name = "stdin" if path is None else str(path)
    with nullcontext(sys.stdin.buffer) if path is None else path.open("rb") as file:
        for piece in read_stream(file, lambda offset: name, FaultCounter(errors)):
            yield piece.text
