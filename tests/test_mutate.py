"""The mutants of a file, how one takes the place of code that is imported already, and which tests are given to it."""

from __future__ import annotations

import importlib.machinery
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.config.test_defaults import ROOMS
from tests.mutants import ROOT, Mutant, mutants, swap_code
from tests.mutate import TESTS, interval
from tests.mutate_room import DEFAULTS, Room
from tests.mutate_wait import wait_for

TEXT = """
def decorated(function):
    def inner(*values):
        return function(*values) + 10
    return inner

class Thing:
    limit = 3

    def below(self, value):
        return value < self.limit

@decorated
def twice(value, by=2):
    found = [part * by for part in value]
    raise_it(by == 5)
    return sum(found)

def raise_it(bad):
    if bad:
        raise ValueError("never" + "changed")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "mutated_thing.py").write_text(TEXT, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    monkeypatch.setattr(
        importlib.machinery.SourceFileLoader, "get_code", importlib.machinery.SourceFileLoader.get_code
    )  # put back afterwards
    yield importlib.import_module("mutated_thing")
    del sys.modules["mutated_thing"]


def mutant(module: Any, before: str, after: str) -> Mutant:
    (found,) = [one for one in mutants(Path(module.__file__)) if (one.before, one.after) == (before, after)]
    return found


def test_mutants_are_of_what_code_does(module: ModuleType) -> None:
    found = {(one.before, one.after, one.imported) for one in mutants(Path(str(module.__file__)))}
    assert found == {
        ("function(*values) + 10", "function(*values) - 10", False),
        ("10", "20", False),
        ("3", "4", True),
        ("value < self.limit", "value <= self.limit", False),
        ("2", "3", True),
        ("part * by", "part / by", False),
        ("raise_it(by == 5)", "pass", False),
        ("by == 5", "by != 5", False),
        ("5", "6", False),
        ("bad", "not bad", False),
    }, "nothing of what is raised"


def test_code_is_swapped_in_functions_that_others_hold_already(module: Any) -> None:
    thing, twice = module.Thing(), module.twice
    assert (thing.below(3), twice([1, 2])) == (False, 16)
    assert swap_code(mutant(module, "value < self.limit", "value <= self.limit"))
    assert (thing.below(3), twice([1, 2])) == (True, 16)
    assert swap_code(mutant(module, "function(*values) + 10", "function(*values) - 10")), "inside a decorator that has run"
    assert (thing.below(3), twice([1, 2])) == (False, -4)
    assert swap_code(mutant(module, "part * by", "part / by"))
    assert twice([1, 2]) == 11.5


def test_another_process_imports_the_mutant_too(module: Any) -> None:
    assert swap_code(mutant(module, "part * by", "part / by"))
    script = f"import sys; sys.path.insert(0, {str(Path(module.__file__).parent)!r}); import mutated_thing as m"
    script += "; print(m.twice([1, 2]))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "11.5\n"


def test_code_that_holds_other_functions_is_not_swapped(module: Any) -> None:
    text = TEXT.replace("function(*values) + 10", "10")
    assert not swap_code(replace(mutant(module, "10", "20"), text=text)), "a function that reads less around it"
    begin, end = TEXT.index("    def inner"), TEXT.index("class Thing")
    text = f"{TEXT[:begin]}    return function\n\n{TEXT[end:]}"
    assert not swap_code(replace(mutant(module, "10", "20"), text=text)), "a function that is gone"
    assert module.twice([1, 2]) == 16


def test_a_mutant_is_given_to_the_tests_that_run_its_lines_those_of_quick_files_first() -> None:
    path = ROOT / "sememekit" / "thing.py"
    one = Mutant(path, 7, "", "", "", "", lines=(7, 8), imported=False)
    lines = {"6": ["a::no"], "7": ["slow::x", "a::z"], "8": ["a::y"], "9": ["a::no"]}
    defaults = f"{DEFAULTS}[thing]"
    seconds = {"slow::x": 3.0, "a::y": 1.0, "a::z": 0.5, "a::no": 0.1, "a::constant": 0.4, "b::x": 0.1, defaults: 0.2}
    room = Room(seconds, {str(path): lines}, [])
    assert room.of(one) == ["a::z", "a::y", "slow::x"]
    assert room.of(replace(one, imported=True)) == [defaults, "a::no", "a::constant", "a::z", "a::y", "slow::x"]
    assert room.of(replace(one, path=ROOT / "other.py")) == []
    assert room.of(replace(one, lines=(70, 80))) == ["a::no", "a::z", "a::y", "slow::x"], "another process may run them"
    everything = ["b::x", defaults, "a::no", "a::constant", "a::z", "a::y", "slow::x"]
    assert room.of(replace(one, path=ROOT / "other.py", imported=True)) == everything
    assert replace(room, lines={}, traced=False).of(one) == everything


def test_the_tests_of_every_room_are_there() -> None:
    folders = {path.name for path in (ROOT / "sememekit").iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert set(TESTS) == folders
    assert {room for room, tests in TESTS.items() if f"{DEFAULTS}[{room}]" in tests} == set(ROOMS)
    for tests in TESTS.values():
        for test in tests:
            path, _, case = test.partition("::")
            assert (ROOT / path).is_file() or any((ROOT / path).rglob("test_*.py")), path
            assert not case or case.partition("[")[2].rstrip("]") in ROOMS, "pytest refuses a case that is not there"


def test_the_interval_of_wilson() -> None:
    assert interval(37, 40) == pytest.approx((0.8014, 0.9742), abs=1e-4)
    assert interval(0, 0) == (0.0, 1.0)


@pytest.mark.skipif(sys.platform != "linux", reason="mutants are tried on Linux")
@pytest.mark.parametrize(("does", "code"), [("time.sleep(600)", -signal.SIGKILL), ("sys.exit(7)", 7)])
def test_a_child_that_does_nothing_is_not_waited_for(does: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutate_wait._IDLE", 1.0)
    with subprocess.Popen([sys.executable, "-c", f"import sys, time\n{does}"]) as child:
        assert wait_for(child.pid, 1000.0) == code


def test_a_mutant_changes_no_file_outside_of_its_folders(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "kept.txt").write_text("kept", encoding="utf-8")
    (inside / "link").symlink_to(outside)
    script = """
import os, shutil, sys
from pathlib import Path
from tests.mutate_guard import write_only_below
inside, outside = Path(sys.argv[1]), Path(sys.argv[2])
write_only_below(inside)
refused = []
for name, call in {
    "rmtree": lambda: shutil.rmtree(outside),
    "through a link": lambda: shutil.rmtree(f"{inside}/link/."),
    "unlink": (outside / "kept.txt").unlink,
    "below a link": (inside / "link" / "kept.txt").unlink,
    "overwrite": lambda: (outside / "kept.txt").write_text("gone"),
    "rename": lambda: (outside / "kept.txt").rename(inside / "moved"),
    "ignored": lambda: shutil.rmtree(outside, ignore_errors=True),
}.items():
    try:
        call()
    except PermissionError:
        refused.append(name)
assert refused == ["rmtree", "through a link", "unlink", "below a link", "overwrite", "rename", "ignored"], refused
(inside / "new.txt").write_text((outside / "kept.txt").read_text())
(inside / "link").unlink()
(inside / "folder").mkdir()
shutil.rmtree(inside / "folder")
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(inside), str(outside)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (outside / "kept.txt").read_text(encoding="utf-8") == "kept"
    assert sorted(path.name for path in inside.iterdir()) == ["kept.txt", "new.txt"]
