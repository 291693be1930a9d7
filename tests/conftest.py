"""Fixtures that every room's tests may use."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from sememekit.signals import STOPPING
from tests.pages import empty_frames

pytest_plugins = ["tests.trained_runs"]

# Tests never time: a busy machine is no failure. Under CI the examples are the same every time, so that a change is evaluated
# by what it changed; everywhere else they are new every time, which is how new failures are found.
settings.register_profile("sememekit", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "sememekit")


# Nor does a result depend on where they run: on the number of cores, on the width and colours of a terminal, on signals that a
# shell or nohup has them ignore. All this is inherited by the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
_cache = tempfile.TemporaryDirectory(prefix="sememekit-cache-")
os.environ["SEMEMEKIT_CACHE"] = _cache.name  # what commands keep between calls
for _name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PYTHONUNBUFFERED"):
    os.environ.pop(_name, None)
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for _name in ("SIGTERM", "SIGHUP", "SIGUSR1"):
        if hasattr(signal, _name):
            signal.signal(getattr(signal, _name), signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    """A command that a signal has stopped ignores further ones for good, as its process is about to end; a test goes on."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield
    if threading.current_thread() is threading.main_thread():
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _working_folder_of_one_test(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Code of the working folder stays importable for the life of a command; the next test may have a module of this name."""
    path, folder = list(sys.path), str(tmp_path_factory.getbasetemp())
    yield
    if sys.path != path:
        sys.path[:] = path
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(folder):
                del sys.modules[name]


@pytest.fixture(scope="session", autouse=True)
def _quick_disk() -> Iterator[None]:
    """Files are not forced onto the disk, which takes a busy one a tenth of a second each: no test cuts the power. Processes
    that tests start do force them."""

    def fsync(handle: int) -> None:
        os.fstat(handle)  # an error where it is not open, as of the real one

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


@pytest.fixture(scope="session", autouse=True)
def _quick_pages() -> Iterator[None]:
    """The pages that every training and every attack leave have their charts as empty frames: drawing takes longer than all
    else there. Processes that tests start do draw them, and so do tests that ask for ``real_charts``."""
    from sememekit.reports import attack, run

    with pytest.MonkeyPatch.context() as patch:
        for page in (attack, run):
            patch.setattr(page, "chart", empty_frames)
        yield


@pytest.fixture
def real_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of runs and attacks with the charts that a user sees."""
    from sememekit.reports import attack, charts, run

    for page in (attack, run):
        monkeypatch.setattr(page, "chart", charts.chart)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the real corpora: $SEMEMEKIT_DATA, or ``../shared/data`` beside the repository."""
    named = os.environ.get("SEMEMEKIT_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real corpora here; set SEMEMEKIT_DATA to the folder that holds them")
    return folder
