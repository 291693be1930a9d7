"""Files on the disk: written whole or not at all, replaced only by their own kind, hashed once, one writer at a time.

Everything here stands on the ground floor, so that every room writes and checks files in the same way.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sememekit.errors import ConfigError

REMEMBERED: Final = 64 << 20
"""Bytes from which on the hash of a file is kept for the next process."""

_SETTLED: Final = 2 * 10**9
"""Nanoseconds after its last change from which on a file is known by its time: clocks of file systems tick slowly."""

_hashes: dict[tuple[Any, ...], str] = {}


def sync_folder(folder: Path) -> None:
    """Make renames inside ``folder`` durable, where the system lets a folder be opened; Windows does not."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk.

    Raises:
        OSError: it cannot be written; it names the file, also where the disk is full.
    """
    with naming(path), path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Inside, an error of the system that names no file names ``path``: a full disk is met while writing, not on opening."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file in one step: a reader sees the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.writing")
    write_bytes(temporary, content)
    os.replace(temporary, path)
    sync_folder(path.parent)


def to_json(value: Any) -> bytes:
    """Readable JSON in UTF-8 with sorted keys and a final newline."""
    return (json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


@dataclass(frozen=True)
class Kind:
    """A kind of file that a command writes where its user says.

    Attributes:
        name: with its article, for messages.
        begins: whether a file that begins with these bytes (4 KiB of it at most) is one.
    """

    name: str
    begins: Callable[[bytes], bool]


def _is_page(head: bytes) -> bool:
    # Pages of earlier versions have no line that says who wrote them; their style has this name for its paper.
    own = b'<meta name="generator" content="sememekit">' in head or b"color-scheme: light dark; --paper:" in head
    return head[:15].lower() == b"<!doctype html>" and own


def _is_texts(head: bytes) -> bool:
    return head.startswith(b'{"source": ')


def _is_graph(head: bytes) -> bool:
    return b"".join(head[:80].split()).startswith(b'{"format":"sememekitsememegraph"')


def _is_clusters(head: bytes) -> bool:
    return b"".join(head[:80].split()).startswith(b'{"format":"sememekitwordclusters"')


def _is_figure(head: bytes) -> bool:
    return head.startswith((b"\x89PNG", b"<?xml")) and b"sememekit" in head


FIGURE: Final = Kind("a figure that sememekit drew", _is_figure)
PAGE: Final = Kind("a page that sememekit wrote", _is_page)
TEXTS: Final = Kind("a file of texts as 'eval --texts' writes it", _is_texts)
GRAPH: Final = Kind("a sememe graph", _is_graph)
CLUSTERS: Final = Kind("a file of word clusters that sememekit wrote", _is_clusters)


def check_output(path: Path | str, kind: Kind) -> None:
    """Refuse an output that would replace anything but an empty file or an earlier file of its own kind.

    Raises:
        ConfigError: no name, a folder, a device, or a file of another kind.
    """
    path = Path(path)
    if not path.name:
        raise ConfigError(f"cannot write to {str(path)!r}: a folder; give the name of a file")
    if not path.exists():
        return
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no regular file"
        raise ConfigError(f"cannot write to {path}: it is {what}; give the name of a file")
    with path.open("rb") as stream:
        head = stream.read(4096)
    if head and not kind.begins(head):
        raise ConfigError(
            f"{path} is there already and is not {kind.name}, so it is not replaced; give another name, or delete it first"
        )


def write_output(path: Path | str, content: bytes, kind: Kind) -> None:
    """Write what a command was asked for, whole or not at all; see :func:`check_output` for what it replaces.

    A link is followed. What killed processes left beside the file is removed.

    Raises:
        ConfigError: as ``check_output``.
        OSError: it cannot be written; what was there stays as it was.
    """
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
    sync_folder(target.parent)


def remove_leftovers(folder: Path, before: str, after: str) -> None:
    """Remove files and folders called ``before`` NUMBER ``after`` whose number is of no living process of this machine.

    What cannot be removed stays: it is only in the way of nobody.
    """
    with suppress(OSError):
        for entry in list(folder.iterdir()):
            number = entry.name.removeprefix(before).removesuffix(after)
            named = entry.name == f"{before}{number}{after}" and number.isascii() and number.isdigit() and len(number) < 12
            if named and (int(number) == os.getpid() or not _lives(int(number))):
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)


def _lives(number: int) -> bool:
    if os.name == "nt":
        return True  # there, asking would end the process
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def has_sha256(paths: Sequence[Path], expected: str) -> bool:
    """Whether the bytes of the files, one after the other, have this SHA-256.

    A file is read once in a process as long as its size, time and number stay; of files that are large together the hash
    is kept in the user's cache folder as well, and a hash that does not agree is taken anew before it is believed.

    Raises:
        OSError: a file cannot be read.
    """
    key = _key(paths)
    settled = time.time_ns() - max(part[2] for part in key) > _SETTLED
    if settled and _hashes.get(key) == expected:
        return True
    large = settled and sum(part[1] for part in key) >= REMEMBERED
    if large and _remembered().get(_spelled(key)) == expected:
        _hashes[key] = expected
        return True
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    found = digest.hexdigest()
    if settled and found == expected and _key(paths) == key:
        _hashes[key] = found
        if large:
            _remember(_spelled(key), found)
    return found == expected


def _key(paths: Sequence[Path]) -> tuple[tuple[str, int, int, int, int], ...]:
    found = []
    for path in paths:
        stat = path.stat()
        found.append((str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_dev))
    return tuple(found)


def _spelled(key: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr(key).encode(errors="surrogateescape")).hexdigest()


def _cache_file() -> Path:
    given = os.environ.get("SEMEMEKIT_CACHE")
    if given:
        return Path(given) / "hashes.json"
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "sememekit" / "hashes.json"


def _remembered() -> dict[str, str]:
    try:
        found = json.loads(_cache_file().read_bytes())
    except (OSError, ValueError, RuntimeError, RecursionError):  # none yet, damaged, or a user without a home
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}


def _remember(key: str, value: str) -> None:
    """Keep a hash for other processes; without a folder to keep it in, they take it themselves."""
    with suppress(OSError, RuntimeError):
        file = _cache_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        kept = list({**_remembered(), key: value}.items())[-1000:]
        temporary = file.with_name(f".{file.name}.{os.getpid()}.writing")
        temporary.write_bytes(to_json(dict(kept)))
        os.replace(temporary, file)


@contextmanager
def sole_writer(file: Path, busy: Callable[[str], Exception]) -> Iterator[None]:
    """Hold the lock ``file`` for this process; the system lets go of it when the process ends, however it ends.

    Args:
        file: of the lock; it is made, and stays there when the lock is free again.
        busy: makes the error of somebody who comes second, from who holds it: ``process 12 on host since ...``.
    """
    with file.open("a+b") as stream:
        if not _take(stream.fileno()):
            stream.seek(0)
            holder = " ".join(stream.read(300).decode(errors="replace").split())
            raise busy(holder or "another process")
        try:
            stream.truncate(0)
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            stream.write(f"process {os.getpid()} on {socket.gethostname()} since {since}\n".encode())
            stream.flush()
            yield
        finally:
            _let_go(stream.fileno())


def _take(handle: int) -> bool:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        os.lseek(handle, 1 << 20, os.SEEK_SET)  # a place behind the text, which others read
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def _let_go(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        os.lseek(handle, 1 << 20, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(handle, fcntl.LOCK_UN)


def read_object(path: Path, refuse: Callable[[str], Exception]) -> dict[str, Any]:
    """A JSON object out of a file.

    Args:
        path: the file.
        refuse: makes the error from what is wrong with the file, which is in words and names it.
    """
    try:
        found = json.loads(path.read_bytes().decode())
    except OSError as error:
        raise refuse(f"{path} cannot be read ({error.strerror or error})") from None
    except RecursionError:
        raise refuse(f"{path} is not what sememekit wrote (its JSON is nested too deeply)") from None
    except ValueError as error:
        raise refuse(f"{path} is not JSON ({str(error).splitlines()[0]:.200})") from None
    if not isinstance(found, dict):
        raise refuse(f"{path} holds no JSON object")
    return found


class RunWarning(UserWarning):
    """Something that the user of a folder should know, though the command goes on."""


__all__ = [
    "CLUSTERS",
    "GRAPH",
    "PAGE",
    "TEXTS",
    "Kind",
    "RunWarning",
    "check_output",
    "has_sha256",
    "naming",
    "read_object",
    "remove_leftovers",
    "replace_file",
    "sole_writer",
    "sync_folder",
    "to_json",
    "write_bytes",
    "write_output",
]
