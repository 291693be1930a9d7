"""Read lines from possibly damaged bytes, in bounded memory, with every fault counted or refused.

Only LF ends a line. CR before it is removed, as is a byte-order mark at the start of any line (concatenated files have them).
Other white space (U+2028, U+0085, a lone CR, ...) stays inside the line. A line above the cap is read in pieces: it is cut at
white space, or else after a punctuation mark, or else between characters. Under ``skip`` a bad piece is dropped; if the last
piece is dropped, the previous piece ends the line."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from sememekit.config import Record
from sememekit.errors import ConfigError, DataError
from sememekit.files import how_to_convert, opening
from sememekit.files.reading import CONVERT, SAMPLE
from sememekit.text.other_encodings import FEWEST_LINES, refuse_encoding_of, refuse_mostly_invalid

POLICIES: Final = ("strict", "replace", "skip")
LINE_CAP: Final = 1 << 20
BOM: Final = b"\xef\xbb\xbf"
_SPACES: Final = (b" ", b"\t")
_MARKS: Final = tuple(mark.encode() for mark in "。！？；，、\u3000")


class Span(NamedTuple):
    """Bytes ``start`` to ``end`` of a file, and whether both bounds are line ends."""

    path: Path
    name: str
    start: int
    end: int
    starts_line: bool = True
    ends_line: bool = True


class Piece(NamedTuple):
    """A line, or a part of a line above the cap, and its byte offset in the file."""

    text: str
    ends_line: bool
    offset: int


class TextFaults(Record):
    """Faults in the bytes of sources, and their handling."""

    policy: str
    """``strict`` (stop), ``replace`` (U+FFFD for each bad sequence and each NUL) or ``skip`` (leave the line out)."""
    invalid_utf8: int = 0
    nul: int = 0
    """invalid_utf8, nul: lines with bytes that are not UTF-8, and with NUL, under ``replace`` or ``skip``."""
    skipped_lines: int = 0
    """Lines left out under ``skip``."""
    long_lines: int = 0
    """Lines above the cap, read in pieces."""
    cut_words: int = 0
    """Cuts of long lines between characters, without white space or punctuation."""
    byte_order_marks: int = 0
    carriage_returns: int = 0
    """byte_order_marks, carriage_returns: number of removed marks."""
    truncated_archives: int = 0
    """Compressed files without end mark, read as far as possible."""
    long_sentences: int = 0
    """Sentences above ``--max-length``, which are left out."""
    end_marks: int = 0
    """Sentences with end marks in the text, such as ``<eos>``, which are removed."""


class FaultCounter:
    """A counter of faults by the field names of ``TextFaults``."""

    def __init__(self, policy: str, *, can_choose: bool = True) -> None:
        if policy not in POLICIES:
            raise ConfigError(f"--errors {policy!r}: allowed are {', '.join(POLICIES)}")
        self.policy = policy
        self.choices = ", or pass --errors replace or --errors skip" if can_choose else ""  # for messages
        self.counts: Counter[str] = Counter()

    def add(self, name: str) -> None:
        self.counts[name] += 1

    def keeps(self, name: str) -> bool:
        """Count a fault that the policy does not treat as an error; return whether the mended line is kept."""
        self.add(name)
        if self.policy == "skip":
            self.add("skipped_lines")
        return self.policy != "skip"

    @property
    def bad_lines(self) -> int:
        """Return a lower bound of the number of bad lines so far (a line may have both faults: not UTF-8, and NUL)."""
        return max(self.counts["invalid_utf8"], self.counts["nul"])

    def report(self) -> TextFaults:
        return TextFaults(policy=self.policy, **self.counts)


@contextmanager
def _reading(path: Path, size: int) -> Iterator[BinaryIO]:
    """Open a file that had at least ``size`` bytes. Raises DataError: it is gone or shorter."""
    again = "put it back, and run the same command again"
    with opening(path, lambda why: DataError(f"{why}; {again}")), path.open("rb", buffering=1 << 18) as file:
        if (found := os.fstat(file.fileno()).st_size) < size:
            raise DataError(f"{path}: it has {found} bytes, and {size} or more when this command began; {again}")
        yield file


def read_pieces(span: Span, faults: FaultCounter, cap: int = LINE_CAP) -> Iterator[Piece]:
    """The lines of a span, a long one in pieces of at most ``cap`` bytes. Raises DataError under the policy ``strict`` for
    invalid UTF-8 and NUL, with file, line and byte offset."""
    with _reading(span.path, span.end) as file:
        file.seek(span.start)
        yield from read_stream(file, lambda offset: place(span, offset), faults, cap, span)


def read_named(file: BinaryIO, name: str, faults: FaultCounter) -> Iterator[Piece]:
    """The lines of an open file, or of standard input, with their numbers in messages. Raises DataError as
    :func:`read_pieces` and :func:`refuse_other_encoding`; standard input is refused after the 20th line or later."""
    once = faults.policy == "replace" and not file.seekable()
    if faults.policy == "replace" and not once:
        begin = file.tell()
        refuse_encoding_of(file, name)
        file.seek(begin)
    line, due, invalid_before = 1, FEWEST_LINES, faults.bad_lines

    def refuse_most() -> None:
        if once:
            refuse_mostly_invalid(name, faults.bad_lines - invalid_before, line - 1)

    def where(offset: int) -> str:
        return f"{name}:{line}"

    for piece in read_stream(file, where, faults, name=name):
        yield piece
        line += piece.ends_line
        if line > due:
            refuse_most()
            due *= 2
    refuse_most()


def refuse_other_encoding(path: Path, name: str, faults: FaultCounter) -> None:
    """Raise DataError under ``replace`` as ``refuse_encoding_of``. Messages call the file ``name``."""
    if faults.policy == "replace":
        with _reading(path, 0) as file:
            refuse_encoding_of(file, name)


def clean_blocks(span: Span, size: int = 1 << 16, cap: int = LINE_CAP) -> Iterator[str | Span]:
    """Yield a span as blocks of whole lines: a block without faults gives its text; a block with faults gives its span, for
    :func:`read_pieces`. A block has about ``size`` bytes, at most ``cap``."""
    position = span.start
    if not (span.starts_line and span.ends_line):
        yield span
        return
    with _reading(span.path, span.end) as file:
        file.seek(position)
        while position < span.end:
            raw = file.read(min(size, span.end - position))
            if not raw.endswith(b"\n") and position + len(raw) < span.end:
                raw += file.readline(min(cap - len(raw), span.end - position - len(raw)))
                if not raw.endswith(b"\n") and position + len(raw) < span.end:  # a line above the cap may begin here
                    yield span._replace(start=position)
                    return
            text = _clean(raw)
            yield span._replace(start=position, end=position + len(raw)) if text is None else text
            position += len(raw)


def _clean(raw: bytes) -> str | None:
    """Return the lines of a block, or None if a fault must be counted."""
    if b"\0" in raw or b"\r" in raw or raw.startswith(BOM) or b"\n" + BOM in raw:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def read_stream(
    file: BinaryIO,
    where: Callable[[int], str],
    faults: FaultCounter,
    cap: int = LINE_CAP,
    span: Span | None = None,
    *,
    name: str = "",
) -> Iterator[Piece]:
    """Yield the lines of an open file up to its end or the end of ``span``; ``where`` names a byte offset, ``name`` the file.
    Raises DataError as :func:`read_pieces`."""
    position, end, inside_long, last_is_whole = 0, sys.maxsize, False, True
    if span is not None:
        position, end, inside_long, last_is_whole = span.start, span.end, not span.starts_line, span.ends_line
    carried = b""
    held: Piece | None = None  # of a line that goes on
    while True:
        asked = min(cap - len(carried), end - position)
        got = file.readline(asked)
        offset = position - len(carried)
        chunk = carried + got
        if not inside_long:
            chunk = without_mark(chunk, faults)
            offset += len(got) - len(chunk)
        position += len(got)
        carried = b""
        at_end = position >= end or (len(got) < asked and not got.endswith(b"\n"))
        ends_line = chunk.endswith(b"\n") or (at_end and last_is_whole)
        if not ends_line:
            if not inside_long:
                faults.add("long_lines")
            if not at_end:
                cut = _last_cut(chunk, faults)
                chunk, carried = chunk[:cut], chunk[cut:]
        inside_long = not ends_line
        if chunk.endswith(b"\r\n"):
            faults.add("carriage_returns")
        if chunk:
            raw = chunk.rstrip(b"\r\n") if ends_line else chunk
            try:
                text = _decode(raw, faults)
            except UnicodeDecodeError as error:
                rest = file.read(SAMPLE) if file.seekable() else b""
                named = name if span is None else span.name
                raise DataError(_no_utf8(error, offset, where, chunk + rest, named, faults)) from None
            if held is not None and (text is not None or ends_line):
                yield held if text else held._replace(ends_line=ends_line)
                held = None
                text = text or None
            if text is not None:
                piece = Piece(text, ends_line, offset)
                if ends_line:
                    yield piece
                else:
                    held = piece
        if at_end:
            break
    if held is not None:
        yield held._replace(ends_line=last_is_whole)


def without_mark(line: bytes, faults: FaultCounter) -> bytes:
    """Remove and count a byte-order mark at the start of a line."""
    if not line.startswith(BOM):
        return line
    faults.add("byte_order_marks")
    return line[len(BOM) :]


def _last_cut(chunk: bytes, faults: FaultCounter) -> int:
    """Return the cut of a chunk without a line end: after its last white space, else punctuation mark, else whole character."""
    for marks in (_SPACES, _MARKS):
        if cut := max(end + len(mark) if (end := chunk.rfind(mark)) >= 0 else 0 for mark in marks):
            return cut
    faults.add("cut_words")
    cut = len(chunk)
    while cut > 1 and len(chunk) - cut < 3 and chunk[cut - 1] & 0xC0 == 0x80:
        cut -= 1
    if cut > 1 and chunk[cut - 1] >= 0xC0:  # the lead byte of a character whose end may not be here yet
        cut -= 1
    return cut


def cut_spans(path: Path, name: str, start: int, end: int, target: int, cap: int = LINE_CAP) -> list[Span]:
    """Cut a range of a file into spans of about ``target`` bytes, at line ends if lines are shorter than ``cap``."""
    spans = []
    starts_line = True
    with _reading(path, end) as file:
        while end - start > target:
            file.seek(start + target)
            ahead = file.readline(min(cap, end - start - target))
            ends_line = ahead.endswith(b"\n")
            if not ends_line and len(ahead) < cap:
                break  # the last line, which has no end
            stop = start + target + (len(ahead) if ends_line else _first_cut(ahead))
            if stop >= end:
                break
            spans.append(Span(path, name, start, stop, starts_line, ends_line))
            start, starts_line = stop, ends_line
    spans.append(Span(path, name, start, end, starts_line, True))
    return spans


def _first_cut(ahead: bytes) -> int:
    for marks in (_SPACES, _MARKS):
        if cuts := [found + len(mark) for mark in marks if (found := ahead.find(mark)) >= 0]:
            return min(cuts)
    return next((index for index, byte in enumerate(ahead) if byte & 0xC0 != 0x80), len(ahead))


def _decode(chunk: bytes, faults: FaultCounter) -> str | None:
    """Decode a line; None if ``skip`` drops it. Raises UnicodeDecodeError under ``strict``, also for NUL."""
    try:
        text = chunk.decode()
    except UnicodeDecodeError:
        if faults.policy == "strict":
            raise
        if not faults.keeps("invalid_utf8"):
            return None
        text = chunk.decode(errors="replace")
    if "\0" not in text:
        return text
    if faults.policy == "strict":
        at = chunk.find(b"\0")
        raise UnicodeDecodeError("utf-8", chunk, at, at + 1, "NUL")
    return text.replace("\0", "\ufffd") if faults.keeps("nul") else None


def _no_utf8(
    error: UnicodeDecodeError, offset: int, where: Callable[[int], str], sample: bytes, name: str, faults: FaultCounter
) -> str:
    """Return the message for a bad line at ``offset``; ``sample`` has the line and following bytes."""
    at, bad = offset + error.start, error.object[error.start : error.end].hex(" ")
    told = f"{where(at)}: a NUL at byte {at}" if bad == "00" else f"{where(at)}: not UTF-8 at byte {at} ({bad})"
    remedy = how_to_convert(sample, name, begins=offset == 0)
    if remedy != CONVERT:
        return f"{told}; {remedy}"
    return f"{told}; {'clean the file' if bad == '00' else CONVERT}{faults.choices}"


def place(span: Span, offset: int) -> str:
    """``file:line`` of a byte offset, for messages."""
    line = 1
    left = offset
    with span.path.open("rb") as file:
        while block := file.read(min(left, 1 << 20)):
            line += block.count(b"\n")
            left -= len(block)
    return f"{span.name}:{line}"
