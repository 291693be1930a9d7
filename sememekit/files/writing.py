"""Write files and folders atomically, even if the process is killed in between, and compute their SHA-256."""

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic import BaseModel

_BINARY: Final = getattr(os, "O_BINARY", 0)  # flag for binary files, which only Windows needs
_NO_SYNC_OF_FOLDERS: Final = (errno.EACCES, errno.EPERM, errno.EBADF, errno.EINVAL, errno.EOPNOTSUPP)
"""Errors of systems that do not sync folders: Windows, and file systems over a network."""


def sync_to_disk(path: Path) -> None:
    """Wait until a file, or the renames inside a folder, are on the disk.

    Windows and some file systems sync no folder; there a rename is as durable as they make it. Raises OSError: of a file."""
    is_folder = path.is_dir()
    try:  # Windows syncs a file that is open for writing only
        handle = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if not is_folder or error.errno not in _NO_SYNC_OF_FOLDERS:
            raise


def write_bytes(path: Path, content: bytes | Iterable[bytes | memoryview]) -> str:
    """Write a new file, perhaps in pieces, wait until it is on the disk, and return its SHA-256. A file in its place is removed
    first. Raises OSError with the name of the file, also where the disk is full."""
    digest, only_new = hashlib.sha256(), os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
    path.unlink(missing_ok=True)
    # A link is never followed, since in somebody else's folder it may lead to any file of the user.
    with naming(path), os.fdopen(os.open(path, only_new, 0o666), "wb") as stream:
        for piece in [content] if isinstance(content, bytes) else content:
            digest.update(piece)
            stream.write(piece)
        stream.flush()
        os.fsync(stream.fileno())
    return digest.hexdigest()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add ``path`` to an OSError without a file name inside the block, such as for a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:  # a text alone stays as it is
            error.filename = str(path)
        raise


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file in one step: a reader sees the old content or the new one."""
    temporary = path.with_name(f".{path.name}.writing")
    write_bytes(temporary, content)
    os.replace(temporary, path)
    sync_to_disk(path.parent)


def to_json(value: Any) -> bytes:
    """Readable JSON in UTF-8 with sorted keys and a final newline."""
    return (json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def sealed(table: "Mapping[str, Any] | BaseModel") -> bytes:
    """JSON of a table or report with its own SHA-256, which ``fits_seal`` compares."""
    table = table if isinstance(table, Mapping) else json.loads(table.model_dump_json())
    return to_json({**table, "sha256": hashlib.sha256(to_json(table)).hexdigest()})


def fits_seal(table: dict[str, Any]) -> bool:
    """Take the SHA-256 out of a table, and return whether it is the SHA-256 of the rest. A table without one fits."""
    stated = table.pop("sha256", None)
    try:
        return stated is None or stated == hashlib.sha256(to_json(table)).hexdigest()
    except UnicodeEncodeError:  # half a surrogate, which nobody could have written
        return False


def write_folder(folder: Path, contents: Mapping[str, bytes | Iterable[bytes | memoryview]], manifest: str) -> None:
    """Write a folder of files with a manifest of their SHA-256, atomically.

    The content of a file may come in pieces, held one at a time. The files are written into a hidden folder beside the final
    one and synced; one rename makes them visible. Leftovers of killed processes are removed first, even of this PID."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.writing-{os.getpid()}")
    remove_leftovers(folder.parent, f".{folder.name}.writing-", "")
    temporary.mkdir()
    hashes = {name: write_bytes(temporary / name, content) for name, content in contents.items()}
    write_bytes(temporary / manifest, to_json(hashes))
    sync_to_disk(temporary)
    os.rename(temporary, folder)
    sync_to_disk(folder.parent)


def remove_leftovers(folder: Path, before: str, after: str) -> None:
    """Remove files and folders called ``before`` PID ``after`` whose PID belongs to no living process of this machine.

    Files that cannot be removed stay."""
    with suppress(OSError):
        for entry in list(folder.iterdir()):
            number = entry.name.removeprefix(before).removesuffix(after)
            named = entry.name == f"{before}{number}{after}" and number.isascii() and number.isdecimal() and len(number) < 12
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


_SETTLED: Final = 2 * 10**9  # age in nanoseconds from which the time of a file identifies its content: clocks are coarse

_hashes: dict[tuple[Any, ...], str] = {}


def has_sha256(paths: Sequence[Path], expected: str) -> bool:
    """Return whether the concatenated files have this SHA-256. Raises OSError: a file cannot be read.

    A process reads a file once while its size, time and inode stay."""
    key = _key(paths)
    settled = time.time_ns() - max(part[2] for part in key) > _SETTLED
    if settled and _hashes.get(key) == expected:
        return True
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            hashlib.file_digest(stream, lambda: digest)
    found = digest.hexdigest()
    if settled and found == expected and _key(paths) == key:
        _hashes[key] = found
    return found == expected


def _key(paths: Sequence[Path]) -> tuple[tuple[str, int, int, int, int], ...]:
    stats = [(str(path.resolve()), path.stat()) for path in paths]
    return tuple((name, stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_dev) for name, stat in stats)
