"""Files on the ground floor: atomically, replaced by their own kind alone, hashed once, one writer."""

from __future__ import annotations

import ast
import errno
import hashlib
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sememekit.errors import ConfigError
from sememekit.files import (
    CLUSTERS,
    GRAPH,
    PAGE,
    TEXTS,
    Kind,
    check_output,
    has_sha256,
    remove_leftovers,
    replace_file,
    sole_writer,
    sync_to_disk,
    write_output,
)
from sememekit.reports import pages

OWN: dict[str, tuple[Kind, bytes]] = {
    "page": (PAGE, pages.render("layout", title="a title").encode()),
    "texts": (TEXTS, b'{"source": "a b", "texts": ["a"], "references": ["b"]}\n'),
    "graph": (GRAPH, b'{"format": "sememekit sememe graph", "version": 1,\n'),
    "clusters": (CLUSTERS, b'{"format": "sememekit word clusters", "version": 1,\n'),
}


@pytest.mark.parametrize("name", OWN)
def test_an_output_replaces_its_own_kind_and_nothing_else(tmp_path: Path, name: str) -> None:
    kind, content = OWN[name]
    path = tmp_path / "out"
    write_output(path, content, kind)
    write_output(path, content + b"more", kind)
    assert path.read_bytes() == content + b"more"
    path.write_bytes(b"")
    write_output(path, content, kind)
    foreign = [b"my thesis\n", b"<!DOCTYPE html>\n<html><body>mine</body></html>", b'{"format": "other"}', b"\x7fELF"]
    foreign += [other for key, (_, other) in OWN.items() if key != name]
    for other in foreign:
        path.write_bytes(other)
        with pytest.raises(ConfigError, match="is not replaced"):
            write_output(path, content, kind)
        assert path.read_bytes() == other
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_folders_devices_and_no_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a folder"):
        write_output(tmp_path, b"x", PAGE)
    with pytest.raises(ConfigError, match="no regular file"):
        write_output("/dev/null", b"x", PAGE)
    with pytest.raises(ConfigError, match="give the name of a file"):
        write_output("", b"x", PAGE)
    assert not Path("/dev/null").is_file()


def test_a_folder_that_is_missing_or_closed_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "no dir"
    with pytest.raises(ConfigError, match=f"the folder {missing} does not exist; type: mkdir -p '{missing}'$"):
        check_output(missing / "a.html", PAGE)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file is no folder; give another name"):
        check_output(tmp_path / "file" / "a.html", PAGE)
    check_output(tmp_path / "a.html", PAGE)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ConfigError, match=f"the folder {tmp_path} cannot be written"):
        check_output(tmp_path / "a.html", PAGE)


def test_a_full_disk_leaves_what_was_there_and_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    content = OWN["page"][1]
    write_output(path, content, PAGE)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left") as caught:
            write_output(path, content + b"later", PAGE)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


def test_a_link_is_followed_and_rights_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    write_output(real, OWN["page"][1], PAGE)
    real.chmod(0o640)
    link.symlink_to(real)
    write_output(link, OWN["page"][1] + b"2", PAGE)
    assert link.is_symlink()
    assert real.read_bytes().endswith(b"2")
    assert real.stat().st_mode & 0o777 == 0o640


def test_leftovers_of_dead_processes_go_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    dead, living = tmp_path / f".g.graph.{child.pid}.partial", tmp_path / f".g.graph.{os.getppid()}.partial"
    mine = tmp_path / ".g.graph.notes.partial"
    for path in (dead, living, mine):
        path.write_text("half")
    remove_leftovers(tmp_path, ".g.graph.", ".partial")
    assert {entry.name for entry in tmp_path.iterdir()} == {living.name, mine.name}


def test_a_system_that_opens_no_folders_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def as_windows(path: Any, *rest: Any, **more: Any) -> int:
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", as_windows)
    replace_file(tmp_path / "a", b"1")
    sync_to_disk(tmp_path)
    assert (tmp_path / "a").read_bytes() == b"1"


def test_a_file_system_that_syncs_no_folders_can_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def as_a_share(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(handle)

    monkeypatch.setattr(os, "fsync", as_a_share)
    replace_file(tmp_path / "a", b"1")
    assert (tmp_path / "a").read_bytes() == b"1"

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        sync_to_disk(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda handle: as_a_share(os.open(tmp_path, os.O_RDONLY)))
    with pytest.raises(OSError, match="Invalid"):
        sync_to_disk(tmp_path / "a")


def test_a_file_is_synced_through_a_handle_that_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no other way."""
    written: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda handle: written.append(b"x" * os.write(handle, b"")))
    (tmp_path / "a").write_bytes(b"1")
    sync_to_disk(tmp_path / "a")
    assert written == [b""]


def test_nothing_is_imported_or_called_that_windows_lacks() -> None:
    """Names of ``os`` and ``signal`` that are POSIX alone stand behind a question whether they are there."""
    lacking = {
        "O_DIRECTORY",
        "wait4",
        "sched_getaffinity",
        "killpg",
        "getpgid",
        "setsid",
        "fork",
        "geteuid",
        "getuid",
        "mkfifo",
    }
    lacking |= {"SIGHUP", "SIGUSR1", "SIGUSR2", "SIGKILL", "pthread_sigmask", "pthread_kill"}
    found = []
    for path in sorted((Path(__file__).parent.parent / "sememekit").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        names = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
        asked = {name for name in lacking if f'"{name}")' in text or 'sys.platform == "linux"' in text}
        found += [f"{path.name}: {name}" for name in sorted((names & lacking) - asked)]
    assert found == []


def test_a_hash_is_taken_again_when_the_file_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "big"
    path.write_bytes(b"x" * 1000)
    old = time.time_ns() - 60 * 10**9
    os.utime(path, ns=(old, old))
    right = hashlib.sha256(b"x" * 1000).hexdigest()
    assert has_sha256([path], right)
    with monkeypatch.context() as patch:
        patch.setattr(hashlib, "sha256", _counting(hashlib.sha256, calls := []))
        assert has_sha256([path], right)
        assert all(len(content) < 1000 for content in calls), "the file itself was not hashed again"
    path.write_bytes(b"x" * 999 + b"z")  # as a disk that rots: same size, same time
    os.utime(path, ns=(old, old))
    monkeypatch.setattr("sememekit.files.writing._hashes", {})
    assert not has_sha256([path], right), "another process reads the file"
    path.write_bytes(b"x" * 999 + b"y")
    os.utime(path, ns=(old + 1, old + 1))
    assert not has_sha256([path], right), "the time differs"


def _counting(real: Any, calls: list[bytes]) -> Any:
    def made(content: bytes = b"", **more: Any) -> Any:
        calls.append(content)
        return real(content, **more)

    return made


HOLD = """
import sys, time
from pathlib import Path
from sememekit.files import sole_writer
with sole_writer(Path(sys.argv[1]), RuntimeError):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_names_its_holder_and_a_kill_frees_it(tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    with pytest.raises(RuntimeError, match=f"process {child.pid} on "), sole_writer(lock, RuntimeError):
        pass
    child.kill()
    child.wait()
    child.stdout.close()
    here = f"process {os.getpid()} on "
    with sole_writer(lock, RuntimeError), pytest.raises(RuntimeError, match=here), sole_writer(lock, RuntimeError):
        pass
    with sole_writer(lock, RuntimeError):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(tmp_path: Path) -> None:
    """A folder out of an archive may hold links to any file of whoever unpacks it."""
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".plan.json.writing").symlink_to(precious)
    replace_file(folder / "plan.json", b"{}")
    assert (precious.read_bytes(), (folder / "plan.json").read_bytes()) == (b"mine", b"{}")
    assert not (folder / "plan.json").is_symlink()
    for place in (precious, tmp_path / "nothing"):
        (folder / ".lock").unlink(missing_ok=True)
        (folder / ".lock").symlink_to(place)
        with pytest.raises(OSError, match="no regular file") as caught, sole_writer(folder / ".lock", RuntimeError):
            pass
        assert caught.value.filename == str(folder / ".lock")
    assert precious.read_bytes() == b"mine"
    assert not (tmp_path / "nothing").exists()
    (folder / ".lock").unlink()
    os.mkfifo(folder / ".lock")
    with pytest.raises(OSError, match="no regular file"), sole_writer(folder / ".lock", RuntimeError):
        pass


def test_a_file_system_without_locks_is_told_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl", reason="Windows locks otherwise")

    def no_locks(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    told = pytest.raises(OSError, match="has no locks; choose a folder on another one")
    with told as caught, sole_writer(tmp_path / ".lock", RuntimeError):
        pass
    assert caught.value.filename == str(tmp_path / ".lock")
