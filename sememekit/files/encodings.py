"""Messages on files that are not UTF-8: encoding or compression, and the command that converts them."""

import codecs
from pathlib import Path
from typing import Final

from sememekit.files.packed import packing_of
from sememekit.files.reading import typed

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
    """Return the next step for a file that is not UTF-8 by its first bytes, as a clause of a message; otherwise ""."""
    told = next((told for begin, told in _BEGINNINGS if head.startswith(begin)), "")
    if head.startswith(b"PK") and Path(name).suffix.lower() in (".xlsx", ".ods"):
        return f"it is a spreadsheet; save it as CSV, such as with: soffice --headless --convert-to csv {typed(name)}"
    if head[257:262] == b"ustar":
        told = "as tar archives do; unpack it: tar -xOf"
    return f"the file begins {told} {'FILE' if name == 'stdin' else typed(name)} > OTHER" if told else ""


def may_be_gb18030(sample: bytes) -> bool:
    """Return whether bytes are GB18030 text, perhaps with a truncated last character.

    UTF-8 with a few bad bytes and western encodings often decode as GB18030, too. Such text has what is rare in Chinese:
    complete UTF-8 characters, and characters outside GB2312, the common part of GB18030.
    """
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
    """Return the next step for a file that may be GB18030, as a clause of a message."""
    path = Path(name)
    command = typed("iconv", "-f", "GB18030", "-t", "UTF-8")
    if packing_of(path.name) or not path.is_file():
        return f"it may be GB18030; send the plain text through: {command}"
    return f"it may be GB18030; type: {command} {typed(path)} > {typed(path.with_suffix(f'.utf8{path.suffix}'))}"
