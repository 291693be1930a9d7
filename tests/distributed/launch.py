"""Starting the processes of one training, as torchrun does it or without it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def start(arguments: Sequence[str], size: int, **more: str) -> list[subprocess.Popen[str]]:
    """``size`` processes of this Python with what torchrun puts into their environment."""
    shared = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    started = []
    for rank in range(size):
        environment = {**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank), **more}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environment, **pipes))  # type: ignore[call-overload]
    return started


def finish(started: Sequence[subprocess.Popen[str]], seconds: float = 250) -> list[tuple[int, str, str]]:
    """Exit code, standard output and error of each; what does not end in time is killed."""
    found = []
    try:
        for process in started:
            out, err = process.communicate(timeout=seconds)
            found.append((process.returncode, out, err))
    finally:
        for process in started:
            process.kill()
            process.wait()
    return found
