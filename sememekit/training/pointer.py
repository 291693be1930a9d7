"""The pointer of a run: which snapshot is the last and which the best, and which are being written or removed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from sememekit.errors import CheckpointError
from sememekit.files import read_object, replace_file, to_json
from sememekit.training.snapshots import NAME


def read_pointer(path: Path, offer: Callable[[], str]) -> tuple[dict[str, str], list[str]]:
    """The names that are pointed to, and those of snapshots that were being written or removed.

    Args:
        path: of the file.
        offer: says how to go on without it, for messages.

    Raises:
        CheckpointError: it is torn, or was changed.
    """
    table = read_object(path, lambda why: CheckpointError(why if "ermission" in why else f"{why}; {offer()}"))
    stated = table.pop("sha256", None)
    written = dict(table)
    others = [table.pop("next", None) or [], table.pop("stale", None) or []]
    names = [*table.values(), *(name for part in others if isinstance(part, list) for name in part)]
    good = set(table) <= {"last", "best"} and all(isinstance(part, list) for part in others)
    if not good or not all(isinstance(name, str) and NAME.fullmatch(name) for name in names):
        raise CheckpointError(f"{path} names no checkpoints; it was changed after writing; {offer()}")
    # Only now: names that are no names may hold what cannot be written as UTF-8.
    if stated is not None and stated != hashlib.sha256(to_json(written)).hexdigest():
        raise CheckpointError(f"{path} does not match its own checksum; it was changed or damaged; {offer()}")
    return table, names[len(table) :]


def write_pointer(path: Path, pointer: Mapping[str, str], **others: Iterable[str]) -> None:
    """Put a pointer in the place of the one that is there; ``others`` are ``next`` and ``stale`` names."""
    table: dict[str, Any] = {**pointer, **{key: sorted(names) for key, names in others.items() if names}}
    table["sha256"] = hashlib.sha256(to_json(table)).hexdigest()
    replace_file(path, to_json(table))
