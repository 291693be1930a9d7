"""Writing that is whole or not at all, also when the process is killed in the middle."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def sync_folder(folder: Path) -> None:
    """Make renames inside ``folder`` durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file in one step: a reader sees the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.writing")
    write_bytes(temporary, content)
    os.replace(temporary, path)
    sync_folder(path.parent)


def to_json(value: Any) -> bytes:
    """Readable JSON in UTF-8 with sorted keys and a final newline."""
    return (json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def write_folder(folder: Path, contents: Mapping[str, bytes], manifest: str) -> None:
    """Write a folder of files with a manifest of their SHA-256, whole or not at all.

    The files go to a hidden folder beside it, reach the disk, and one rename makes them visible. What a killed process of
    the same number left there is removed first: in a container every process may have the same.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.writing-{os.getpid()}")
    if temporary.exists():
        shutil.rmtree(temporary)
    temporary.mkdir()
    hashes = {}
    for name, content in contents.items():
        write_bytes(temporary / name, content)
        hashes[name] = hashlib.sha256(content).hexdigest()
    write_bytes(temporary / manifest, to_json(hashes))
    sync_folder(temporary)
    os.rename(temporary, folder)
    sync_folder(folder.parent)
