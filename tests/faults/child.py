"""Command lines in forked children of one process that has imported everything, so that thousands are affordable.

An audit hook in the child sees every file-system event below a folder (opening for writing, mkdir, rename, remove, rmdir,
link) before it happens; there it counts, or kills the process with SIGKILL. The parent of the children is a process of its
own: it has no threads, whatever the process of the tests has done.
"""

from __future__ import annotations

import gc
import json
import mmap
import multiprocessing
import os
import pkgutil
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, final

from tests.mutants import Mutant, swap_code
from tests.pages import empty_frames

ROOT = Path(__file__).resolve().parents[2]
CANARY = Path(__file__).resolve().parent / "canary"
SECONDS = 60
"""Longest time of most commands."""
MEMORY = 24 << 30
"""Address space of a child: a number that asks for more than any machine has must not take down this one."""

_EVENTS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Outcome:
    """The end of a command.

    Attributes:
        code: exit code; minus the number of the signal that ended it.
        out, err: what it printed.
        events: file-system events below the watched folder.
    """

    code: int
    out: str
    err: str
    events: int

    @property
    def killed(self) -> bool:
        """True if SIGKILL ended it, and not the time limit."""
        return self.code == -signal.SIGKILL

    @property
    def bug(self) -> bool:
        """True if it calls itself a bug, shows a traceback, was ended by a signal of the system, or hung."""
        return "this is a bug" in self.err or "Traceback" in self.err or self.code not in (0, 1, 2, 75, 130)

    @property
    def clean(self) -> bool:
        """Exit code 1 and one line that says why."""
        lines = self.err.strip().splitlines()
        return self.code == 1 and not self.bug and bool(lines) and lines[-1].startswith("sememekit: error: ")


@final
class Commands:
    """The process that forks children; use it with ``with``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.canary = folder / "executed"
        self.count = 0
        self.sabotage: tuple[Path, str] | None = None
        """A file of the package and what stands in it instead, for every command from now on."""
        folder.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(CANARY)]),
            "FAULT_CANARY": str(self.canary),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "200",
        }
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment,
            text=True,
        )

    def __enter__(self) -> Commands:
        return self

    def __exit__(self, *problem: object) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def __call__(
        self,
        *arguments: object,
        watch: Path | None = None,
        kill: int = 0,
        cwd: Path | None = None,
        seconds: int = SECONDS,
        synced: Path | None = None,
    ) -> Outcome:
        """Run a command line.

        Args:
            arguments: what follows ``sememekit``.
            watch: file-system events below this folder, or of this file and its neighbours of a like name, are counted.
            kill: end the process before its event of this number, from 1; 0 lets it be.
            cwd: working folder.
            seconds: longest time of the command; whatever takes longer hangs.
            synced: gets a line for each file and folder that is synced to the disk: its inode.
        """
        self.count += 1
        request = {
            "arguments": [str(argument) for argument in arguments],
            "watch": str(watch) if watch is not None else "",
            "kill": kill,
            "cwd": str(cwd or self.folder),
            "seconds": seconds,
            "synced": str(synced or ""),
            "sabotage": [str(part) for part in self.sabotage or ()],
            "out": str(self.folder / "stdout"),
            "err": str(self.folder / "stderr"),
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        line = self._server.stdout.readline()
        assert line, "the process that forks children has ended"
        code, events = json.loads(line)
        texts = [(self.folder / name).read_bytes().decode(errors="replace") for name in ("stdout", "stderr")]
        return Outcome(code, *texts, events)

    def do(self, *arguments: object, **options: Any) -> Outcome:
        """Run a command line that must succeed."""
        found = self(*arguments, **options)
        assert found.code == 0, f"sememekit {' '.join(map(str, arguments))}: {found}"
        return found

    def executed(self) -> bool:
        """Return whether something has run what it must not since this was asked last."""
        found = self.canary.exists()
        self.canary.unlink(missing_ok=True)
        return found


def _import_everything() -> None:
    import sememekit

    sys.modules["tensorboard"] = None  # type: ignore[assignment]  # it writes from a thread of its own, at moments of its own

    for module in pkgutil.walk_packages(sememekit.__path__, "sememekit."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    from sememekit.engines import local
    from sememekit.reports import attack, run

    local._SPAWN = multiprocessing.get_context("fork")  # type: ignore[assignment]  # all is imported; groups.py has real ones
    for page in (attack, run):
        page.chart = empty_frames  # drawing would take longer than all else that a command does here
    for name in ("torch._dynamo", "torch.optim", "sentencepiece", "lzma", "gzip"):
        import_module(name)


def _serve() -> None:
    _import_everything()
    protocol = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints must not be taken for an answer
    shared = mmap.mmap(-1, 8)
    import typer

    from sememekit.commands._program import app

    command = typer.main.get_command(app)
    gc.freeze()  # what no child collects, no child copies
    for line in sys.stdin:
        request = json.loads(line)
        shared[:] = struct.pack("q", 0)
        child = os.fork()
        if child == 0:
            _run(command, request, shared)
        code = _wait(child, request["seconds"])
        protocol.write(json.dumps([code, struct.unpack("q", shared[:])[0]]) + "\n")
        protocol.flush()


def _wait(child: int, seconds: int) -> int:
    """Exit code of the child; one that takes too long ends by SIGALRM."""
    descriptor = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
    if descriptor is not None:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        if not ready:
            os.kill(child, signal.SIGALRM)
            time.sleep(0.5)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(descriptor)
            return -signal.SIGALRM
        os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(command: Any, request: dict[str, Any], shared: mmap.mmap) -> None:
    """Run a command line in the child, and never return."""
    code = 70
    try:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        os.chdir(request["cwd"])
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if request["sabotage"]:
            gc.unfreeze()
            assert take_out(*request["sabotage"]), "the functions of the file are not those that were there"
        if request["synced"]:
            _note_syncs(request["synced"])
        if request["watch"]:
            sys.addaudithook(_hook(request["watch"], request["kill"], shared))
        command.main(request["arguments"])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def take_out(path: str, text: str) -> bool:
    """Put another text into the functions of a file of the package, in this process."""
    return swap_code(Mutant(Path(path), 1, "", "", "", text, (1, 1), imported=False))


def _note_syncs(log: str) -> None:
    real, notes = os.fsync, os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def fsync(handle: Any) -> None:
        real(handle)
        os.dup(handle)  # kept open, so that no later file gets the inode of a removed one
        os.write(notes, f"{os.fstat(handle).st_ino}\n".encode())

    os.fsync = fsync  # type: ignore[assignment]


def _hook(watch: str, kill: int, shared: mmap.mmap) -> Any:
    here = os.path.dirname(watch) + os.sep
    name = os.path.basename(watch)

    def watched(path: Any, folder: object = -1) -> bool:
        if isinstance(path, int) or path is None:
            return False
        beside = os.readlink(f"/proc/self/fd/{folder}") if isinstance(folder, int) and folder >= 0 else ""
        text = os.path.abspath(os.path.join(beside, os.fsdecode(path)))
        return text.startswith(here) and name in text[len(here) :].split(os.sep)[0]

    def see(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = bool((flags or 0) & _WRITING) or (isinstance(mode, str) and any(letter in mode for letter in "wax+"))
            if not writes or not watched(path):
                return
        elif event not in _EVENTS:
            return
        elif len(arguments) == 4:  # os.rename, os.link: from, to, and the folders that they are relative to
            if not (watched(arguments[0], arguments[2]) or watched(arguments[1], arguments[3])):
                return
        elif not watched(arguments[0], arguments[-1] if event != "os.truncate" else -1):
            return
        number = struct.unpack("q", shared[:])[0] + 1
        shared[:] = struct.pack("q", number)
        if number == kill:
            os.kill(os.getpid(), signal.SIGKILL)

    return see


if __name__ == "__main__":
    _serve()
