"""Output files at a path of the user's choice: they replace only files of their own kind."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sememekit.errors import ConfigError
from sememekit.files.reading import typed
from sememekit.files.writing import remove_leftovers, sync_to_disk, write_bytes


@dataclass(frozen=True)
class Kind:
    """A kind of output file: its name with an article, for messages, and a test of the first and the last 4 KiB of a file."""

    name: str
    begins: Callable[[bytes], bool]


def _is_format(name: bytes) -> Callable[[bytes], bool]:
    return lambda head: b"".join(head[:80].split()).startswith(b'{"format":"' + name + b'"')


FIGURE: Final = Kind(
    "a figure that sememekit drew", lambda head: head.startswith((b"\x89PNG", b"<?xml", b"%PDF")) and b"sememekit" in head
)
PAGE: Final = Kind(
    "a page that sememekit wrote",
    lambda head: head[:15].lower() == b"<!doctype html>" and b'<meta name="generator" content="sememekit">' in head,
)
TEXTS: Final = Kind("a file of texts as 'eval --texts' writes it", lambda head: head.startswith(b'{"source": '))
GRAPH: Final = Kind("a sememe graph", _is_format(b"sememekitsememegraph"))
CLUSTERS: Final = Kind("a file of word clusters that sememekit wrote", _is_format(b"sememekitwordclusters"))
TABLE: Final = Kind("a lexicon as 'lookup --dump' writes it", lambda head: head.startswith(b"word\tpos\tgloss\tsememes\tdef\n"))
SUGGESTIONS: Final = Kind(
    "suggested sememes as 'lookup --suggest' writes them", lambda head: head.startswith(b"word\tcount\tsememes\t")
)
CARD: Final = Kind(
    "a model card that sememekit wrote", lambda head: head.startswith(b"---\nlicense: ") and b"sememekit" in head
)
OVERLAY: Final = Kind("an overlay as 'lookup --change' writes it", lambda head: head.startswith(b"# sememekit overlay "))


def check_output(path: Path | str | None, kind: Kind) -> None:
    """Refuse an output that would replace anything but an empty file or an earlier file of its kind, or whose folder is missing
    or cannot be written. None: nothing is written. Raises ConfigError."""
    if path is None:
        return
    path = Path(path)
    folder = path.parent
    if not folder.exists():
        raise ConfigError(f"cannot write to {path}: the folder {folder} does not exist; type: {typed('mkdir', '-p', folder)}")
    if not folder.is_dir():
        raise ConfigError(f"cannot write to {path}: {folder} is no folder; give another name")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"cannot write to {path}: the folder {folder} cannot be written by you; give a name in another one")
    if not path.name:
        raise ConfigError(f"cannot write to {str(path)!r}: a folder; give the name of a file")
    if not path.exists():
        return
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no regular file"
        raise ConfigError(f"cannot write to {path}: it is {what}; give the name of a file")
    with path.open("rb") as stream:
        head = stream.read(4096)
        stream.seek(max(4096, path.stat().st_size - 4096))
        head += stream.read()  # a PDF says at its end who drew it
    if head and not kind.begins(head):
        raise ConfigError(
            f"{path} is there already and is not {kind.name}, so it is not replaced; give another name, or delete it first"
        )


def write_output(path: Path | str, content: bytes, kind: Kind) -> None:
    """Write an output file atomically, through links; see :func:`check_output` for what it replaces.

    Temporary files of killed processes beside it are removed. Raises OSError: it cannot be written; the old content stays."""
    check_output(path, kind)
    target = Path(path).resolve()
    remove_leftovers(target.parent, f".{target.name}.", ".writing")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.writing")
    try:
        write_bytes(temporary, content)
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        if error.filename == str(temporary):
            error.filename, error.filename2 = str(path), None
        raise
    sync_to_disk(target.parent)
