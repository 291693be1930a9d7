"""``preprocess`` survives a kill, a page that the disk lost and a small file of much text."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sememekit.corpora.sources import CorpusFile, unpack
from sememekit.errors import ConfigError, DataError
from sememekit.files import GRAPH, write_output
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.text.reading import FaultCounter


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"w{number % 17} v{number * number % 31}\n" for number in range(2500)))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def interrupted(text: Path, out: Path) -> Path:
    """A run that was stopped after its second shard; its work folder."""

    def stop(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("shards", 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        preprocess("plain", text, out, PreprocessSettings(shard_bytes=8000), progress=stop)
    return out.parent / f".{out.name}.partial"


def test_a_full_disk_names_the_folder_that_is_written(text: Path, tmp_path: Path) -> None:
    def fill(stage: str, done: int, total: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")  # as a write says it, without a name

    with pytest.raises(OSError, match="No space left") as caught:
        preprocess("plain", text, tmp_path / "out", progress=fill)
    assert caught.value.filename == str(tmp_path / "out")


def test_what_a_kill_in_the_last_moment_leaves_is_no_obstacle(text: Path, tmp_path: Path) -> None:
    preprocess("plain", text, tmp_path / "out")
    left = tmp_path / ".out.partial" / "replaced"
    left.mkdir(parents=True)
    (left / "train.bin").write_bytes(b"old")
    (left.parent / ".key.done.writing").write_bytes(b"half a marker")
    with pytest.raises(DataError, match=r"or replace them with --force; .*\.out\.partial is of a command that was killed"):
        preprocess("plain", text, tmp_path / "out", PreprocessSettings(seed=2))
    preprocess("plain", text, tmp_path / "out", PreprocessSettings(seed=2, force=True))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(("ending", "damage"), [(".ids", "zeros"), (".units", "half"), (".types", "absent")])
def test_a_shard_that_the_disk_lost_a_part_of_is_made_again(ending: str, damage: str, text: Path, tmp_path: Path) -> None:
    preprocess("plain", text, tmp_path / "expected", PreprocessSettings(shard_bytes=8000))
    work = interrupted(text, tmp_path / "out")
    stem = sorted(work.glob("*.done"))[0]
    path = stem.with_suffix(ending)
    content = path.read_bytes()
    if damage == "absent":
        path.unlink()
    else:
        path.write_bytes(bytes(len(content)) if damage == "zeros" else content[: len(content) // 2])
    begun: list[int] = []
    preprocess(
        "plain",
        text,
        tmp_path / "out",
        PreprocessSettings(shard_bytes=8000),
        progress=lambda stage, done, total: begun.append(done) if stage == "shards" else None,
    )
    assert begun[0] == 1, "of two shards with a marker one is whole"
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")


def test_files_are_on_the_disk_before_their_marker(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def name_of(handle: int) -> str:
        return Path(f"/proc/self/fd/{handle}").readlink().suffix

    monkeypatch.setattr(os, "fsync", lambda handle: (events.append(f"sync {name_of(handle)}"), fsync(handle))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append(f"rename {Path(b).suffix}"), replace(a, b))[1])
    preprocess("plain", text, tmp_path / "out")
    marker = events.index("rename .done")
    assert events[:marker] == ["sync .ids", "sync .units", "sync .types", "sync .writing"]
    write_output(tmp_path / "g.graph", b"x", GRAPH)
    assert events[-3:] == ["sync .writing", "rename .graph", f"sync {tmp_path.suffix}"]


def test_leftovers_of_processes_that_are_gone_are_removed(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left, alive, other = (tmp_path / name for name in (f".g.{gone.pid}.writing", f".g.{os.getppid()}.writing", ".g.x.writing"))
    for path in (left, alive, other):
        path.write_bytes(b"half")
    write_output(tmp_path / "g", b"whole", GRAPH)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["g", alive.name, other.name])
    with pytest.raises(ConfigError, match="name of a file"):
        write_output(Path(""), b"x", GRAPH)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals and /proc")
def test_workers_end_with_the_process_that_called_them(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("天地 人和 大学 。\n" * 20_000, encoding="utf-8")
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom sememekit.jobs.preprocess import preprocess\n"
        "from sememekit.prepare.settings import PreprocessSettings\n"
        "def told(stage, done, total):\n    if stage == 'shards' and done:\n"
        "        Path(sys.argv[2], 'begun').touch()\n        time.sleep(600)\n"  # until it is killed
        "if __name__ == '__main__':\n"
        "    settings = PreprocessSettings(workers=2, shard_bytes=20_000)\n"
        "    preprocess('plain', Path(sys.argv[1]), Path(sys.argv[2], 'out'), settings, progress=told)\n"
    )
    (tmp_path / "run.py").write_text(script)
    parent = subprocess.Popen([sys.executable, str(tmp_path / "run.py"), str(tmp_path / "text.txt"), str(tmp_path)])
    try:
        wait_for(lambda: (tmp_path / "begun").exists(), 240)
        workers = children(parent.pid)
        assert len(workers) >= 2
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_for(lambda: not any(is_alive(worker) for worker in workers), 240)


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(") ")[1][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


PACKERS: dict[str, Callable[[bytes], bytes]] = {".xz": lzma.compress, ".gz": gzip.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("ending", PACKERS)
def test_a_small_file_of_much_text_is_unpacked_in_bounded_memory(ending: str, tmp_path: Path) -> None:
    """45 MB in a file of some kilobytes, and another file behind it, in a process that may have 24 MB more."""
    block = (b"x" * 999 + b"\n") * 45_000  # bz2 is quick with one letter
    path = tmp_path / f"text{ending}"
    path.write_bytes(PACKERS[ending](block) + PACKERS[ending](b"the end\n"))
    size = len(block)
    del block
    child = os.fork()
    if child == 0:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + (24 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            found = unpack(CorpusFile(None, path), tmp_path, FaultCounter("strict"))
            os._exit(0 if found.text_bytes == size + 8 else 2)
        except MemoryError:
            os._exit(3)
        except BaseException:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
