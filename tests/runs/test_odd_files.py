"""Pipes, devices, sockets and links to nothing in folders are refused by name before anybody reads them for ever."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sememekit.attack.folder import AttackFolder
from sememekit.claims.results import read_results, read_times
from sememekit.data.prepared import PreparedData
from sememekit.errors import CheckpointError, DataError
from sememekit.files import refuse_odd_files
from sememekit.jobs.reproduce import uncounted
from sememekit.jobs.train import train
from sememekit.runs.run import Run
from sememekit.runs.sharing import pull_run, push_run
from tests.small_run import Place


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """A reader that waits for ever fails the test."""

    def give_up(*_: object) -> None:
        pytest.fail("a reader waits for a file that never ends")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = Place(tmp_path_factory.mktemp("odd"))
    run = place.folder / "run"
    train(place.table("softmax", schedule__epochs=1), run)
    push_run(run, str(place.folder / "pushed"), "# Card\n")
    tables = {key: {} for key in ("plan", "candidates", "language_model")}
    victim = {"kind": "function", "name": "m:f", "labels": []}
    AttackFolder.create(place.folder / "attack", {**tables, "victim": victim, "data": {"path": "d", "sha256": "0"}})
    (place.folder / "attack" / "examples.jsonl").write_bytes(b"")
    return {"run": run, "data": place.data.folder, "pushed": place.folder / "pushed", "attack": place.folder / "attack"}


OPEN: dict[str, Callable[[Path], object]] = {
    "run": lambda folder: Run.open(folder, device="cpu"),
    "data": PreparedData.open,
    "pushed": lambda folder: pull_run(str(folder), folder.parent / "pulled"),
    "attack": lambda folder: AttackFolder.open(folder),
}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def nothing(path: Path) -> None:
    path.symlink_to(path.parent / "absent")


@pytest.mark.parametrize("odd", [pipe, device, nothing])
@pytest.mark.parametrize("kind", OPEN)
def test_every_file_of_a_folder_is_asked(
    kind: str, odd: Callable[[Path], None], folders: dict[str, Path], tmp_path: Path
) -> None:
    names = [path.relative_to(folders[kind]) for path in folders[kind].rglob("*") if path.is_file()]
    names = [name for name in names if not any(part.startswith(".") or part == "tensorboard" for part in name.parts)]
    for index, name in enumerate(names):
        folder = tmp_path / str(index) / kind
        shutil.copytree(folders[kind], folder)
        (folder / name).unlink()
        odd(folder / name)
        with pytest.raises((CheckpointError, DataError), match=r"is no regular file|not written by|wrote it"):
            OPEN[kind](folder)
    assert len(names) > 1


def test_a_socket_and_links_to_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("text", encoding="utf-8")
    (tmp_path / "folder" / "linked").symlink_to(tmp_path / "text")
    (tmp_path / "folder" / ".#linked").symlink_to("somebody@somewhere.1")
    refuse_odd_files(tmp_path / "folder", DataError)
    with socket.socket(socket.AF_UNIX) as server:
        before = Path.cwd()
        os.chdir(tmp_path / "folder")  # the path of a socket has 107 bytes at most
        server.bind("talk")
        os.chdir(before)
        with pytest.raises(DataError, match="talk is no regular file"):
            refuse_odd_files(tmp_path / "folder", DataError)


@pytest.mark.parametrize("odd", [pipe, device, nothing, Path.mkdir])
def test_odd_results_of_claims_do_not_count_as_absent(odd: Callable[[Path], None], tmp_path: Path) -> None:
    odd(tmp_path / "a.json")
    with pytest.raises(DataError, match=r"a\.json is no regular file"):
        read_results([tmp_path / "a.json"])
    with pytest.raises(DataError, match=r"a\.json is no regular file"):
        read_times(tmp_path / "a.json")
    assert read_results([tmp_path / "b.json"]) == {}
    if odd is not Path.mkdir:
        with pytest.raises(DataError, match=r"a\.json is no regular file"):
            uncounted(tmp_path, tiny=False)
