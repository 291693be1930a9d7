"""A folder that appears whole or not at all, also under a kill in the middle; single files: ``sememekit.files``."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from sememekit.files import replace_file, sync_folder, to_json, write_bytes

__all__ = ["replace_file", "sync_folder", "to_json", "write_bytes", "write_folder"]


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
