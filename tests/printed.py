"""Run the blocks of a page as they are printed, in their order, in one folder, and compare the output that the page shows.

A page says where it starts (``START``). Blocks of ``sh`` are run by bash, blocks of ``python`` one after the other with the
same names; a block that begins with ``# NAME.py`` or ``# NAME.sh`` is that file. A block of ``text`` below a block shows a part
of its output. A block that needs what cannot be here has a comment above it, which the site does not show:
``<!-- not run: REASON -->``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START = re.compile(r"^(?:\*\*Start from here:\*\*|\*\*从这里开始：\*\*) ?(.*?)(?=\n\n)", re.MULTILINE | re.DOTALL)
"""The line of a page that says where its blocks start."""
TOURED = re.compile(r"`sememekit quickstart` (?:ran|的目录)|运行过 `sememekit quickstart`")
FENCE = re.compile(r"(?:<!-- not run: ([^>]*) -->\n)?^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUN = ("sh", "python")
TOUR = "sememekit quickstart"
DETERMINISTIC = {"preprocess", "build-sememe-graph", "lookup", "recipes", "settings", "segment"}
"""Commands whose figures are compared, too, if no model is named."""

WRAPPER = """#!/bin/sh
if [ "$1" = serve ]; then
  "{python}" -m sememekit "$@" > serve.log 2>&1 &
  echo $! >> served.pids
  for _ in $(seq 600); do grep -q 'http://' serve.log && exit 0; kill -0 $! || break; sleep 0.1; done
  cat serve.log; exit 1
fi
exec "{python}" -IS "{here}" "{address}" "$@"
"""
"""The command, run by ``loaded_program``; a server is a process that stays until the page is done."""


def call(address: str, words: list[str]) -> int:
    """Have ``answer`` run a command with the streams, folder and environment of this process; return its exit code."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        told = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
        socket.send_fds(connection, [len(told).to_bytes(4, "big") + told], [0, 1, 2])
        return (connection.recv(1) or b"\1")[0]


def answer(address: str) -> None:
    """Load the program once, and run each command that ``call`` sends in a fork, which need not load it."""
    import torch  # noqa: F401
    import transformers  # noqa: F401

    from sememekit.commands._program import PANELS, app

    for name in PANELS:
        import_module(f"sememekit.commands.{name.replace('-', '_')}")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listening.accept()
        if os.fork():
            connection.close()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listening.close()
        told, descriptors, *_ = socket.recv_fds(connection, 1 << 20, 3)
        while len(told) < 4 + int.from_bytes(told[:4], "big"):
            told += connection.recv(1 << 20)
        words, folder, environment = json.loads(told[4:])
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, encoding="utf-8") for number, mode in enumerate("rww"))
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[0] = ""
        code = 1
        try:
            app(words)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError):
                    stream.flush()
            connection.sendall(bytes([code]))
            os._exit(code)


@contextlib.contextmanager
def loaded_program(folder: Path) -> Iterator[Path]:
    """Start ``answer`` and give the folder of a command ``sememekit`` that calls it."""
    address, wrapper = folder / "program", folder / "bin" / "sememekit"
    wrapper.parent.mkdir()
    wrapper.write_text(WRAPPER.format(python=sys.executable, here=__file__, address=address), encoding="utf-8")
    wrapper.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    command = [sys.executable, __file__, str(address)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL) as process:
        try:
            while not address.exists():
                assert process.poll() is None, "the program could not be loaded"
                time.sleep(0.05)
            yield wrapper.parent
        finally:
            process.terminate()


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        line: of the page, at which it begins.
        language: of the fence.
        code: its text.
        not_run: the reason why it is not run; empty if it is.
        shown: the output below it; empty if there is none.
    """

    line: int
    language: str
    code: str
    not_run: str
    shown: str


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page that are code, with the output below each."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks: list[Block] = []
    for found in FENCE.finditer(text):
        reason, language, code = found[1] or "", found[2], found[3]
        if language == "text" and not reason and blocks and blocks[-1].language in RUN and not blocks[-1].shown:
            blocks[-1] = Block(**{**vars(blocks[-1]), "shown": code})
        elif language in {*RUN, "text"}:
            blocks.append(Block(text[: found.start()].count("\n") + 1, language, code, reason, ""))
    return blocks


def start_of(page: str) -> str:
    """Return where a page starts: "quickstart", "empty" or, without such a line, nothing."""
    found = START.search((ROOT / page).read_text(encoding="utf-8"))
    if found is None:
        return ""
    return "quickstart" if TOURED.search(found[1]) else "empty"


def commands_in(code: str) -> Iterator[list[str]]:
    """The words of each command of ours in a block of shell, without pipes, redirections and comments."""
    for line in code.replace("\\\n", " ").splitlines():
        for part in re.split(r"\s[|;&]+\s|;\s", re.sub(r"(?:^|\s)#.*", "", line)):
            place = part.find("sememekit ")
            if place >= 0 and part[place - 1 : place] in {"", " "} and "pip" not in part[:place]:
                with contextlib.suppress(ValueError):  # a part of a script
                    words = shlex.split(part[place:])
                    yield words[: next((at for at, word in enumerate(words) if word[0:1] in {"<", ">"}), None)]


def parse(words: list[str]) -> str:
    """Parse a command without running it, and return what is wrong with its options."""
    from typer.main import get_command

    from sememekit.commands._program import app

    command, context = get_command(app), None
    try:
        for _ in range(3):
            context = command.make_context(words[0], words[1:], parent=context, resilient_parsing=False)
            if not hasattr(command, "commands"):
                return ""
            words = [*context._protected_args, *context.args]
            _, command, rest = command.resolve_command(context, words)
            words = [words[0], *rest]
    except Exception as error:
        return str(getattr(error, "message", error))
    return ""


def frame(line: str, *, figures: bool) -> str:
    """Return a line of output without bars, without the width of its columns and, unless wanted, without its figures."""
    line = re.sub(r"[█▏▎▍▌▋▊▉│─]+", " ", line)
    line = line if figures else re.sub(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", "#", line)
    return " ".join(line.replace("…", "...").split())


def missing_lines(block: Block, printed: str, *, small: bool) -> list[str]:
    """Return the lines that the page shows and the block did not print in this order.

    With small models the lines without figures are looked for. Otherwise all are, and half of those with figures may differ,
    since trainings on other machines end with other words."""
    exact = all(words[1] in DETERMINISTIC and not {"--model", "--graph"} & set(words) for words in commands_in(block.code))
    exact = exact and block.language == "sh"
    lines, place, missing, counted = [frame(line, figures=exact) for line in printed.splitlines()], 0, [], 0
    for line in block.shown.splitlines():
        if not line.strip(" .") or (small and not exact and re.search(r"\d", line)):
            continue
        counted += 1
        wanted = frame(line, figures=exact).removesuffix("...").strip()
        at = next((number for number in range(place, len(lines)) if lines[number].startswith(wanted)), None)
        if at is None:
            missing.append(line)
        else:
            place = at
    with_figures = [line for line in missing if re.search(r"\d", line)]
    return missing if exact or len(with_figures) < len(missing) or 2 * len(missing) > counted else []


def run_page(page: str, folder: Path, toured: Path, program: Path, *, small: bool) -> list[str]:
    """Run a page in an empty folder, ``toured`` being a folder in which quickstart ran; return what went wrong."""
    if start_of(page) == "quickstart":
        shutil.copytree(toured / "quickstart", folder / "quickstart")
    path = os.pathsep.join([str(program), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    environment["BROWSER"] = "true"
    for example in re.findall(r"\(examples/(\w+\.py)\)", (ROOT / page).read_text(encoding="utf-8")):
        shutil.copy(ROOT / "docs" / "examples" / example, folder)
    names: dict[str, object] = {"__name__": "__main__"}
    failed: list[str] = []
    try:
        for block in blocks_of(page):
            if block.not_run or block.language == "text":
                continue
            where = f"{page}:{block.line}"
            try:
                printed = run_block(block, folder, environment, names, toured)
            except Exception as error:
                failed.append(f"{where}\n{block.code}\n{type(error).__name__}: {error}")
                continue
            if missing := missing_lines(block, printed, small=small):
                failed.append(f"{where}: not printed:\n" + "\n".join(missing) + f"\nbut:\n{printed[-6000:]}")
    finally:
        for served in folder.glob("served.pids"):
            for pid in served.read_text(encoding="utf-8").split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGTERM)
    return failed


def run_block(block: Block, folder: Path, environment: dict[str, str], names: dict[str, object], toured: Path) -> str:
    """Run a block and return what it printed. The line ``sememekit quickstart`` copies a folder in which it ran.

    Raises:
        AssertionError: a command failed, or Python did.
    """
    if file := re.match(r"# (\w+\.(?:py|sh))\n", block.code):
        (folder / file[1]).write_text(block.code, encoding="utf-8")
        return ""
    if block.language == "python":
        with contextlib.redirect_stdout(io.StringIO()) as told, contextlib.redirect_stderr(told), contextlib.chdir(folder):
            sys.path.insert(0, str(folder))
            try:
                exec(compile(block.code, "page", "exec"), names)
            finally:
                sys.path.remove(str(folder))
        return told.getvalue()
    copied = f"cp -a {shlex.quote(str(toured / 'quickstart'))} quickstart"
    code = re.sub(rf"^{TOUR}(?=\s*(?:#|$))", copied, block.code, flags=re.MULTILINE)
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", code],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        check=False,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-2500:]}"
    return done.stdout


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.exit(call(sys.argv[1], sys.argv[2:]))
    answer(sys.argv[1])
