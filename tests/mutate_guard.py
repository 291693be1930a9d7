"""A mutant may remove or overwrite anything that its process may: a guard for the processes that run them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

_REMOVING = frozenset({"os.remove", "os.rmdir", "os.rename", "os.truncate", "shutil.rmtree", "shutil.move"})
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def write_only_below(*folders: Path) -> None:
    """From now on this process, and what it forks, changes no file outside of ``folders``: PermissionError.

    Devices may be written. Paths relative to an open folder are not looked at: their top folder was.
    """
    allowed = tuple(os.path.realpath(folder) + os.sep for folder in (*folders, Path("/dev")))

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _REMOVING:
            relative = len(arguments) > 1 and isinstance(arguments[-1], int) and arguments[-1] >= 0
            paths = () if relative else arguments[: 2 if event in {"os.rename", "shutil.move"} else 1]
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            paths = arguments[:1]
        else:
            return
        for path in paths:
            if isinstance(path, str | bytes | os.PathLike):
                named = os.fsdecode(path)
                place = os.path.realpath(named) if event == "shutil.rmtree" else _place(named)
                if not (place + os.sep if event == "open" else place).startswith(allowed):
                    raise PermissionError(f"{event} of {named}, which a mutant may not touch")

    sys.addaudithook(refuse)


def _place(path: str) -> str:
    """The path with links resolved, but for its last part: to remove a link is not to remove what it points to."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)
