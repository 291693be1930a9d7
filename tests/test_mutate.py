"""The mutants of a file, how one takes the place of code that is imported already, and which tests are given to it."""

from __future__ import annotations

import importlib.machinery
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests import mutate_trace
from tests.mutants import ROOT, Mutant, mutants, swap_code
from tests.mutate import ROOMS, interval
from tests.mutate_room import DEFAULTS, Room
from tests.mutate_trace import Traced, kept
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


def bits(*lines: int) -> int:
    return sum(1 << line for line in lines)


def test_a_mutant_is_given_to_the_tests_that_run_its_lines_quick_files_that_run_little_else_first() -> None:
    """Tests of a file keep their order."""
    one = Mutant(ROOT / "sememekit/room/thing.py", 7, "", "", "", "", lines=(7, 8), imported=False)
    thing, other, defaults = "sememekit/room/thing.py", "sememekit/other.py", f"{DEFAULTS[0]}::x"
    ran = {
        "slow::x": {thing: bits(7)},
        "wide::x": {thing: bits(8), other: bits(*range(50))},
        "a::y": {thing: bits(6, 8), other: bits(1)},
        "a::z": {thing: bits(7)},
        "a::no": {thing: bits(6, 9)},
        "a:thing": {thing: bits(7)},
        "c::x": {other: bits(7)},
    }
    seconds = {"slow::x": 9.0, "wide::x": 1.0, "a::y": 1.0, "a::z": 0.5, "a::no": 0.1, "a::constant": 0.4, "b::x": 0.1}
    seconds |= {"a:thing": 2.0, "c::x": 0.1, defaults: 0.2}
    traced = Traced(seconds, {"b::x": ["a:thing"]}, ran)
    tests = set(seconds) - {"a:thing"}
    room = Room(traced, tests)
    assert room.of(one) == ["a::y", "a::z", "b::x", "slow::x", "wide::x"], "one of them through a fixture that it shares"
    assert replace(room, budget=1.5).of(one) == ["a::y", "a::z"]
    assert replace(room, budget=0.1).of(one) == ["a::y"], "one test at least"
    imported = [defaults, "a::y", "a::z", "a::no", "a::constant", "b::x", "slow::x", "wide::x"]
    assert room.of(replace(one, imported=True)) == imported
    assert room.of(replace(one, lines=(70, 80))) == ["a::y", "a::z", "a::no", "b::x", "slow::x", "wide::x"], "another process"
    assert set(room.of(replace(one, path=ROOT / "sememekit/none.py", imported=True))) == tests
    assert traced.cost(["b::x", "c::x", "b::x"]) == pytest.approx(2.2)


def test_a_trace_is_kept_for_test_files_that_did_not_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "sememekit/a.py": "A = 1",
        "tests/small.py": "B = 1",
        "tests/test_x.py": "x",
        "tests/test_y.py": "y",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name, path in {"ROOT": tmp_path, "PACKAGE": tmp_path / "sememekit", "KEPT": tmp_path / "kept.json"}.items():
        monkeypatch.setattr(mutate_trace, name, path)
    assert not kept().files, "nothing was traced"
    x, y, fixture = "tests/test_x.py::x", "tests/test_y.py::y", "tests:small"
    traced = Traced(
        {x: 1.0, y: 2.0, fixture: 3.0},
        {x: [], y: [fixture]},
        {x: {"a": 2}, y: {"a": 4}, fixture: {"a": 8}},
        failed={y: "error"},
        files={name: mutate_trace.digest([Path(name)]) for name in ("tests/test_x.py", "tests/test_y.py")},
        package=kept().package,
    )
    (tmp_path / "kept.json").write_text(json.dumps(asdict(traced)), encoding="utf-8")
    assert kept() == traced
    (tmp_path / "tests/test_y.py").write_text("changed", encoding="utf-8")
    rest = kept()
    assert (rest.seconds, rest.fixtures, rest.ran) == ({x: 1.0}, {x: []}, {x: {"a": 2}})
    assert (rest.failed, set(rest.files)) == ({}, {"tests/test_x.py"})
    (tmp_path / "tests/small.py").write_text("B = 2", encoding="utf-8")
    assert not kept().files, "every test may import it"


CODE = """LIMIT = 3


def seen(x):
    return x + LIMIT


def made(x):
    return x * 2


def unseen(x):
    return x % 5
"""
CHECKS = """import pytest
from sememekit.room import made, seen, unseen


@pytest.fixture(scope="module")
def four():
    unseen(1)
    return made(2)


def test_first(four):
    assert seen(0) == 3


def test_second(four):
    assert four == 4


def test_broken():
    assert not seen(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mutants are tried on Linux")
def test_the_mutants_of_a_small_room(tmp_path: Path) -> None:
    """One that a test sees, two in a fixture of two tests, one on import, and two that nobody sees."""
    for folder in ("sememekit/room", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("__init__", "mutate", "mutate_guard", "mutate_room", "mutate_trace", "mutate_wait", "mutants"):
        shutil.copy(ROOT / f"tests/{name}.py", tmp_path / "tests")
    texts = {"tests/mutate_equivalent.txt": "", "sememekit/__init__.py": "", "sememekit/room/__init__.py": CODE}
    texts |= {"tests/test_room.py": CHECKS, "pytest.ini": "[pytest]\nmarkers = slow\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "tests.mutate", "room", "--record", "record.jsonl"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for _ in range(2):  # the second from the kept trace
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert "| room | 6 | 6 | 4 | 67 % |" in done.stdout, done.stdout + done.stderr
        left = [line.rpartition(": ")[2] for line in done.stdout.splitlines() if line.startswith("- ")]
        assert left == ["x % 5 -> x * 5", "5 -> 6"]
        assert "fails without any mutant, and is given none: tests/test_room.py::test_broken" in done.stderr
    record = {"room": "room", "seed": 1, "mutants": 6, "tried": 6, "caught": 4}
    for line in (tmp_path / "record.jsonl").read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        assert [one.partition(":")[0] for one in found.pop("survivors")] == ["sememekit/room/__init__.py"] * 2
        assert found == record


def test_rooms_are_those_of_the_package() -> None:
    assert {path.name for path in (ROOT / "sememekit").iterdir() if path.is_dir() and any(path.glob("*.py"))} == set(ROOMS)


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
