"""Whole files, read with one wording for what can go wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Refuse = Callable[[str], Exception]
"""Makes an error of what is wrong with a file, which is a clause that names the file."""


def read_bytes(path: Path, refuse: Refuse) -> bytes:
    """The bytes of a file; ``refuse`` is told where there is none, or no permission."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise refuse(f"{path}: cannot be read: {error.strerror or error}") from None


def decode(raw: bytes, path: Path, refuse: Refuse) -> str:
    """Bytes of ``path`` as UTF-8, without a byte-order mark at the front; ``refuse`` is told the line of what is none."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise refuse(f"{path}:{line}: not UTF-8 at byte {error.start}; save the file as UTF-8") from None


def read_text(path: Path, refuse: Refuse) -> str:
    """``decode`` of ``read_bytes``."""
    return decode(read_bytes(path, refuse), path, refuse)


def read_object(path: Path, refuse: Refuse, damaged: Refuse | None = None) -> dict[str, Any]:
    """A JSON object out of a file.

    Args:
        path: the file.
        refuse: for a file that cannot be opened.
        damaged: for one that is no JSON object; ``refuse`` unless given.
    """
    raw, damaged = read_bytes(path, refuse), damaged or refuse
    try:
        found = json.loads(raw.decode())
    except RecursionError:
        raise damaged(f"{path} is not what sememekit wrote (its JSON is nested too deeply)") from None
    except ValueError as error:
        raise damaged(f"{path} is not JSON ({str(error).splitlines()[0]:.200})") from None
    if not isinstance(found, dict):
        raise damaged(f"{path} holds no JSON object")
    return found
