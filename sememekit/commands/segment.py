"""``sememekit segment``: text in, words between blanks out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sememekit.errors import DataError
from sememekit.text.reading import FaultCounter, read_stream
from sememekit.text.segmenters import Segmenter


@contextmanager
def input_stream(file: Path | None) -> Iterator[BinaryIO]:
    """A file, or stdin for None, open for reading bytes.

    Raises:
        DataError: the file cannot be read.
    """
    if file is None:
        yield sys.stdin.buffer
        return
    try:
        opened = file.open("rb")
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from None
    with opened:
        yield opened


def segment_stream(
    file: BinaryIO, segmenter: Segmenter, *, errors: str = "strict", name: str = "stdin", faults: FaultCounter | None = None
) -> Iterator[str]:
    """Segment a stream line by line; write what is yielded as it comes, line ends are in it.

    A line above 1 MiB is segmented in pieces, cut at white space or sentence marks, so memory stays bounded; its output is one
    line again. Each line of the input that is not left out gives one line of output.

    Args:
        file: open for reading bytes, such as ``sys.stdin.buffer``.
        segmenter: see :func:`segmenter_for`.
        errors: ``strict``, ``replace`` or ``skip`` for bytes that are not UTF-8 and for NUL.
        name: of the stream, for messages.
        faults: a counter to fill, in place of ``errors``.

    Raises:
        DataError: under ``strict``, for bytes that are not UTF-8 and for NUL, with the byte offset.
    """
    counter = faults if faults is not None else FaultCounter(errors)
    for piece in read_stream(file, lambda offset: name, counter):
        words = " ".join(segmenter.segment(piece.text))
        yield words + ("\n" if piece.ends_line else " ")
