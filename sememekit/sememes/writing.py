"""Writing one file whole or not at all, so that it outlives a kill and a power cut."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from sememekit.text.shards import sync


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file in one step: whoever reads it sees the old bytes or the new ones, and the new ones are on the disk.

    What processes that were killed while they wrote the same file left beside it is removed.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
    """
    if path.is_dir() or not path.name:
        raise IsADirectoryError(21, "a folder, where a file is to be written")
    _remove_leftovers(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        sync(partial)
        os.replace(partial, path)
        sync(path.parent)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def _remove_leftovers(path: Path) -> None:
    """Remove the partial files of this path whose process is gone."""
    pattern = re.compile(re.escape(f".{path.name}.") + r"(\d+)\.partial")
    with suppress(OSError):
        for left in path.parent.iterdir():
            match = pattern.fullmatch(left.name)
            if match is not None and not _is_running(int(match[1])):
                left.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    if os.name == "nt":
        return True  # asking would end it there
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
