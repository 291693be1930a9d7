"""Read whole files with uniform error messages; for a file that is not UTF-8 the message has a command that converts it."""

import codecs
import json
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sememekit.files.packed import packing_of
from sememekit.files.writing import fits_seal

Refuse = Callable[[str], Exception]  # a function from a clause with the file and its fault to an error


@contextmanager
def opening(path: Path, refuse: Refuse) -> Iterator[None]:
    """Turn errors of opening and reading a stream inside the block into errors of ``refuse``."""
    try:
        yield
    except OSError as error:
        raise refuse(f"{error.filename or path}: cannot be read: {error.strerror or error}") from None


def at_home(path: Path | str) -> Path:
    """Return the path with ``~`` expanded; ``~nobody`` stays, as in a shell."""
    return Path(os.path.expanduser(path))


def is_there(path: Path, refuse: Refuse) -> bool:
    """Return whether a file exists; ``refuse`` makes the error for anything but a file, since reading a pipe may never end."""
    if path.is_file():
        return True
    if os.path.lexists(path):
        raise refuse(f"{path} is no regular file (a folder, pipe, device, socket or link to nothing); replace or remove it")
    return False


def refuse_odd_files(folder: Path, refuse: Refuse) -> None:
    """Refuse a folder with anything but files and folders (links followed, hidden files ignored)."""
    with opening(folder, refuse):
        for path in folder.iterdir():
            if not path.name.startswith(".") and not path.is_dir():
                is_there(path, refuse)


def read_bytes(path: Path, refuse: Refuse) -> bytes:
    """The bytes of a file; ``refuse`` makes the error where it cannot be opened."""
    with opening(path, refuse):
        return path.read_bytes()


def decode(raw: bytes, path: Path, refuse: Refuse) -> str:
    """The bytes of ``path`` as UTF-8 without a byte-order mark; ``refuse`` is given the line of the first byte that is invalid
    or NUL, and how to convert the file."""
    try:
        text, bad = raw.decode("utf-8-sig"), raw.find(b"\0")
    except UnicodeDecodeError as error:
        text, bad = "", error.start
    if bad >= 0:
        line = raw.count(b"\n", 0, bad) + 1
        raise refuse(f"{path}:{line}: not UTF-8 at byte {bad}; {how_to_convert(raw[:SAMPLE], path)}")
    return text


def read_text(path: Path, refuse: Refuse) -> str:
    """The text of a file: ``decode`` of ``read_bytes``."""
    return decode(read_bytes(path, refuse), path, refuse)


def read_object(path: Path, refuse: Refuse) -> dict[str, Any]:
    """Read a JSON object; ``refuse`` makes the error if the file cannot be opened or holds no JSON object."""
    return object_of(read_bytes(path, refuse), path, refuse)


def read_sealed(path: Path, refuse: Refuse) -> dict[str, Any]:
    """``read_object`` for files of ``sealed``; ``refuse`` also makes the error for a wrong SHA-256."""
    found = read_object(path, refuse)
    if not fits_seal(found):
        raise refuse(f"{path} does not match its own checksum; it was changed or damaged after writing")
    return found


def object_of(raw: bytes, path: Path | str, refuse: Refuse) -> dict[str, Any]:
    """Parse the bytes of ``path`` as a JSON object; ``refuse`` makes the error if the bytes are no JSON object."""
    try:
        found = json.loads(raw.decode())
    except RecursionError:
        raise refuse(f"{path} is not what sememekit wrote (its JSON is nested too deeply)") from None
    except ValueError as error:
        raise refuse(f"{path} is not JSON ({str(error).splitlines()[0]:.200})") from None
    if not isinstance(found, dict):
        raise refuse(f"{path} holds no JSON object")
    return found


def typed(*words: str | Path) -> str:
    """Return the words of a command, quoted for a shell: ``sememekit train --out 'my run'``.

    Placeholders (``FORMAT:PATH``) need no quotes and get none."""
    return shlex.join(str(word) for word in words)


SAMPLE: Final = 1 << 16  # bytes for guessing an encoding
CONVERT: Final = "convert the file to UTF-8"  # advice for an unknown encoding

_BEGINNINGS: Final = (
    (b"\xff\xfe\0\0", "like UTF-32; convert it: iconv -f UTF-32 -t UTF-8"),
    (b"\0\0\xfe\xff", "like UTF-32; convert it: iconv -f UTF-32 -t UTF-8"),
    (b"\xff\xfe", "like UTF-16; convert it: iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "like UTF-16; convert it: iconv -f UTF-16 -t UTF-8"),
    (b"\x1f\x8b", "as packed ones do; unpack it: gzip -dc <"),
    (b"\xfd7zXZ\0", "as packed ones do; unpack it: xz -dc <"),
    (b"BZh91AY&SY", "as packed ones do; unpack it: bzip2 -dc <"),
    (b"\x28\xb5\x2f\xfd", "as packed ones do; unpack it: zstd -dc <"),
    (b"PK\3\4", "as packed ones do; unpack it: unzip -p"),
)
"""First bytes of files that are not UTF-8, a description, and the command that converts them."""


def by_its_beginning(head: bytes, name: str | Path) -> str:
    """Return advice for a file whose first bytes show that it is not UTF-8, as a clause of a message; otherwise ""."""
    told = next((told for begin, told in _BEGINNINGS if head.startswith(begin)), "")
    if head.startswith(b"PK") and Path(name).suffix.lower() in (".xlsx", ".ods"):
        return f"it is a spreadsheet; save it as CSV, such as with: soffice --headless --convert-to csv {typed(name)}"
    if head[257:262] == b"ustar":
        told = "as tar archives do; unpack it: tar -xOf"
    return f"the file begins {told} {'FILE' if name == 'stdin' else typed(name)} > OTHER" if told else ""


def how_to_convert(sample: bytes, name: str | Path, *, begins: bool = True) -> str:
    """Return advice for a file that is not UTF-8, as a clause; ``sample`` has its first bytes if ``begins``."""
    if begins and (told := by_its_beginning(sample, name)):
        return told
    return from_gb18030(name) if may_be_gb18030(sample) else CONVERT


def may_be_gb18030(sample: bytes) -> bool:
    """Return whether bytes are GB18030 text, perhaps with a truncated last character.

    UTF-8 with a few bad bytes and western encodings often decode as GB18030, too. They are recognised by what is rare in
    Chinese: complete UTF-8 characters, and characters outside GB2312, the common part of GB18030."""
    try:
        text = codecs.getincrementaldecoder("gb18030")().decode(sample)
    except UnicodeDecodeError:
        return False
    others = "".join(character for character in text if not character.isascii())
    if 2 * (len(others.encode("gb2312", "ignore")) // 2) <= len(others):
        return False
    as_utf8 = codecs.getincrementaldecoder("utf-8")("replace").decode(sample)
    broken = as_utf8.count("\ufffd")
    return broken > sum(character > "\u07ff" for character in as_utf8) - broken


def from_gb18030(name: str | Path) -> str:
    """Return advice for a file that may be GB18030, as a clause of a message."""
    path = Path(name)
    command = typed("iconv", "-f", "GB18030", "-t", "UTF-8")
    if packing_of(path.name) or not path.is_file():
        return f"it may be GB18030; send the plain text through: {command}"
    return f"it may be GB18030; type: {command} {typed(path)} > {typed(path.with_suffix(f'.utf8{path.suffix}'))}"
