"""SHA-256 of files, computed once while a file stays unchanged."""

import hashlib
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sememekit.files.writing import to_json

REMEMBERED: Final = 64 << 20
"""Bytes from which on the hash of a file is kept for later processes."""

_SETTLED: Final = 2 * 10**9
"""Nanoseconds after its last change from which on a file is identified by its time: file systems have coarse clocks."""

_DAY: Final = 86_400
"""Seconds of a day (in UTC), to the end of which a kept hash is believed: a disk that rots changes no time and no size."""

_hashes: dict[tuple[Any, ...], str] = {}


def has_sha256(paths: Sequence[Path], expected: str) -> bool:
    """Whether the concatenated bytes of the files have this SHA-256. Raises OSError: a file cannot be read.

    A file is read once in a process while its size, time and inode stay. The hash of large files is also kept in the user's
    cache folder until the day ends; a kept hash that does not agree is computed again.
    """
    key = _key(paths)
    settled = time.time_ns() - max(part[2] for part in key) > _SETTLED
    if settled and _hashes.get(key) == expected:
        return True
    large = settled and sum(part[1] for part in key) >= REMEMBERED
    kept_as = hashlib.sha256(repr((int(time.time()) // _DAY, key)).encode(errors="surrogateescape")).hexdigest()
    if large and _remembered().get(kept_as) == expected:
        _hashes[key] = expected
        return True
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            hashlib.file_digest(stream, lambda: digest)
    found = digest.hexdigest()
    if settled and found == expected and _key(paths) == key:
        _hashes[key] = found
        if large:
            _remember(kept_as, found)
    return found == expected


def _key(paths: Sequence[Path]) -> tuple[tuple[str, int, int, int, int], ...]:
    stats = [(str(path.resolve()), path.stat()) for path in paths]
    return tuple((name, stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_dev) for name, stat in stats)


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
    with suppress(OSError, RuntimeError):
        file = _cache_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        kept = list({**_remembered(), key: value}.items())[-1000:]
        temporary = file.with_name(f".{file.name}.{os.getpid()}.writing")
        temporary.write_bytes(to_json(dict(kept)))
        os.replace(temporary, file)
