"""The contract of engines: results by index, errors as they were raised, and the cost of a killed process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest

from sememekit.engines import ENGINES
from sememekit.engines.base import Engine, open_engine
from sememekit.errors import ConfigError, DataError, EngineError
from sememekit.jobs.trainings import Trainings
from sememekit.signals import STOPPING
from tests.engines.work import deaf, double, held, mark_and_die_once, process_of, refuse, wait_there

SPECS = {"local": "local", "dask": "dask", "slurm": "slurm:cluster=local,timeout_min=60"}
NEEDS = {"dask": "distributed", "slurm": "submitit"}


def skip_without(name: str) -> None:
    """Skip where the package of an engine is missing, or cannot work."""
    pytest.importorskip(NEEDS.get(name, "sys"))
    if name == "slurm" and sys.platform == "win32":
        pytest.skip("there is no Slurm on Windows")


@pytest.fixture(scope="module", params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    skip_without(request.param)
    with open_engine(SPECS[request.param], 2, tmp_path_factory.mktemp(request.param)) as opened:
        yield opened


def test_results_come_with_their_index(engine: Engine) -> None:
    assert dict(engine.map(double, [5, 6, 7])) == {0: 10, 1: 12, 2: 14}
    assert list(engine.map(double, [])) == []
    assert engine.submit(double, 4).result() == 8


def test_results_that_come_in_any_order_are_given_in_the_order_of_the_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_engine("local", 1, tmp_path) as opened:
        monkeypatch.setattr(opened, "map", lambda work, items: iter([(2, "c"), (0, "a"), (1, "b")]))
        reports: list[int] = []
        assert list(opened.in_order(double, [5, 6, 7], reports.append)) == ["a", "b", "c"]
        assert reports == [1, 2, 3]


def test_an_error_arrives_as_it_was_raised(engine: Engine) -> None:
    with pytest.raises(DataError, match=r"^number 3$"):
        list(engine.map(refuse, [3, 3]))


def lines(path: Path) -> int:
    """Lines of a file; a process that was killed may have left an empty one."""
    return len(path.read_text().split()) if path.exists() else 0


@pytest.mark.parametrize("name", sorted(ENGINES))
@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot kill a process by SIGKILL")
def test_a_killed_process_loses_no_finished_call(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask gives the call to another worker; elsewhere the call ends with an error, and a new engine continues."""
    skip_without(name)
    if name == "slurm":  # submitit looks for the file of a lost job for 15 seconds: disks that machines share are slow
        monkeypatch.setattr("submitit.core.core.Job._results_timeout_s", 0)
    tasks = [(tmp_path, number) for number in range(4)]
    done: dict[int, int] = {}
    try:
        with open_engine(SPECS[name], 2, tmp_path / "engine") as engine:
            done.update(engine.map(mark_and_die_once, tasks))
    except EngineError:
        assert name != "dask"
        left = [task for task in tasks if not lines(tmp_path / f"done-{task[1]}")]
        assert len(left) < 4
        assert tasks[1] in left
        with open_engine(SPECS[name], 2, tmp_path / "engine") as engine:
            list(engine.map(mark_and_die_once, left))
    else:
        assert name == "dask"
        assert done == {number: number for number in range(4)}
    assert all(lines(tmp_path / f"done-{number}") for number in range(4))
    assert (tmp_path / "died").exists()


def test_a_scheduler_begins_beside_another_one(tmp_path: Path) -> None:
    """The scheduler's pages take any free port, without a warning."""
    pytest.importorskip("distributed")
    with socket.socket() as taken:
        with suppress(OSError):  # another one listens there in truth
            taken.bind(("", 8787))
            taken.listen()
        with open_engine("dask", 1, tmp_path) as engine:
            assert engine.submit(double, 4).result() == 8


def test_a_scheduler_of_this_machine_is_encrypted_where_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    asked: list[dict[str, Any]] = []

    def begin(**given: Any) -> Any:
        asked.append(given)
        raise RuntimeError("begun")

    monkeypatch.setattr(distributed, "LocalCluster", begin)
    for there in (None, "a specification"):
        monkeypatch.setattr("sememekit.engines.dask.find_spec", lambda module, there=there: there)
        with pytest.raises(RuntimeError, match="begun"), open_engine("dask", 1, tmp_path):
            pass
    assert ["security" in given for given in asked] == [False, True]
    assert (asked[1]["security"], asked[1]["protocol"]) == (True, "tls://")


@pytest.mark.parametrize(("workers", "items"), [(1, [1, 2]), (2, [1]), (2, [])])
def test_one_worker_or_item_of_this_machine_needs_no_other_process(workers: int, items: list[int], tmp_path: Path) -> None:
    with open_engine("local", workers, tmp_path) as engine:
        found = list(engine.map(lambda number: (number, os.getpid()), items))  # what cannot be pickled
    assert found == [(index, (number, os.getpid())) for index, number in enumerate(items)]


@pytest.mark.parametrize(("items", "looked"), [([1], lambda: None), ([1, 2], None)])
def test_who_looks_or_has_two_items_works_elsewhere(
    items: list[int], looked: Callable[[], None] | None, tmp_path: Path
) -> None:
    """A caller that looks can then stop a long call."""
    with open_engine("local", 2, tmp_path) as engine:
        found = dict(engine.map(process_of, items, looked))
    assert len(found) == len(items)
    assert os.getpid() not in found.values()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("loca", "unknown engine 'loca' .*did you mean 'local'"),
        ("local:fast", "--engine local:fast: it has no options"),
        ("pathlib:Path", "no engine"),
        ("slurm:cluster", "expected KEY=VALUE with commas between, given 'cluster'"),
        ("slurm:cluster=local,nonsense=1", "--engine slurm:cluster=local,nonsense=1: .*nonsense"),
        ("dask:tcp://127.0.0.1:9", "no scheduler answers there"),
    ],
)
def test_what_is_no_engine_is_told(spec: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without(spec.partition(":")[0])
    monkeypatch.setattr("sememekit.engines.dask._PATIENCE", "0.2s")
    with pytest.raises(ConfigError, match=message):
        open_engine(spec, 2, tmp_path)


@pytest.mark.parametrize(("name", "package"), NEEDS.items())
def test_a_missing_package_is_named(name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ConfigError, match=rf"--engine {name} needs the package '{package}', .*run: pip install .sememekit\[{name}\]."
    ):
        open_engine(name, 2, tmp_path)


def test_less_than_one_worker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--workers 0: 1 or more is needed"):
        open_engine("local", 0, tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no such signals")
def test_a_training_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command would otherwise wait for it for ever, or leave it behind."""
    monkeypatch.setattr("sememekit.jobs.trainings.PATIENCE", 0.2)
    monkeypatch.setattr("sememekit.jobs.trainings.train_there", deaf)
    with Trainings("local", 1, tmp_path) as trainings:
        trainings.begin("deaf", {}, tmp_path / "ready")
        while not (tmp_path / "ready").exists():
            time.sleep(0.02)
        worker = trainings._engine._processes[0]  # type: ignore[attr-defined]
    assert worker.exitcode == -signal.SIGKILL
    assert not trainings._folder.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot kill a process by SIGKILL")
def test_a_killed_process_of_this_machine_costs_its_own_call(tmp_path: Path) -> None:
    (tmp_path / "done-0").touch()
    with open_engine("local", 2, tmp_path) as engine:
        killed, other = engine.submit(mark_and_die_once, (tmp_path, 1)), engine.submit(double, 4)
        assert other.result() == 8
        with pytest.raises(EngineError, match=r"^its process ended with exit code -9 before it was done$"):
            killed.result()


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held on this system")
def test_a_process_of_this_machine_begins_with_signals_held(tmp_path: Path) -> None:
    """The first process holds them, too; the process that counts what is shared begins beside it."""
    resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]
    with open_engine("local", 2, tmp_path) as engine:
        assert all(engine.submit(held).result() >= set(STOPPING) for _ in range(2))


@pytest.mark.parametrize("name", ["local", "slurm"])
@pytest.mark.skipif(sys.platform == "win32", reason="there is no Slurm on Windows")
def test_an_engine_that_is_closed_has_ended_its_calls(name: str, tmp_path: Path) -> None:
    skip_without(name)
    with open_engine(SPECS[name], 2, tmp_path) as engine:
        engine.submit(wait_there, tmp_path / "process")
        while not (tmp_path / "process").exists():
            time.sleep(0.02)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "process").read_text()), 0)


UNDER_WAY = """
import sys, time
from pathlib import Path
from sememekit.engines.base import open_engine
from tests.engines.work import wait_there

how, folder = sys.argv[1], Path(sys.argv[2])
with open_engine("local", 2, folder) as engine:
    if how == "map":
        list(engine.map(wait_there, [folder / "0", folder / "1"]))
    engine.submit(wait_there, folder / "0"), engine.submit(wait_there, folder / "1")
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", ["map", "submit"])
def test_processes_of_this_machine_end_with_the_one_that_was_killed(how: str, tmp_path: Path) -> None:
    files = [tmp_path / "0", tmp_path / "1"]
    with subprocess.Popen([sys.executable, "-c", UNDER_WAY, how, str(tmp_path)]) as process:
        while not all(file.exists() for file in files):
            time.sleep(0.02)
        process.kill()
    left = {Path("/proc", file.read_text(), "stat") for file in files}
    while left := {path for path in left if runs(path)}:
        time.sleep(0.02)


def runs(path: Path) -> bool:
    """True unless the process has ended, or has yet to be taken note of."""
    try:
        return path.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
