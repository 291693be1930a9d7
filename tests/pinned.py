"""Files that pin lines under names: ``==== NAME``, then the lines of that name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

_HEAD = "==== "


def pinned(path: Path) -> dict[str, list[str]]:
    """Return name -> lines."""
    found: dict[str, list[str]] = {}
    for line in path.read_text("utf-8").splitlines():
        if line.startswith(_HEAD):
            found[line.removeprefix(_HEAD)] = []
        else:
            list(found.values())[-1].append(line)
    return found


def pin(path: Path, names: Iterable[str], lines: Callable[[str], Iterable[str]]) -> None:
    """Write the lines of each name into the file."""
    path.write_text("".join(f"{line}\n" for name in names for line in (_HEAD + name, *lines(name))), "utf-8")
