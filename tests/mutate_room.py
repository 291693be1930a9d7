"""The tests of a room under mutants: a process that has collected them forks itself for each mutant.

Such a child swaps the code of the functions that the mutant changes, and runs those tests that run the changed lines, the tests
of quick files first, until one fails. A first child runs all tests under a tracer to learn which test runs which line. Mutants
of what a file does when it is imported, such as defaults of arguments, are tried in a process that imports everything anew.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import ROOT, Mutant, compile_in_place, swap_code
from tests.mutate_guard import write_only_below
from tests.mutate_wait import NEVER, wait_for

PACKAGE = str(ROOT / "sememekit") + os.sep
DEFAULTS = "tests/config/test_defaults.py::test_defaults_and_limits_change_on_purpose_alone"
"""Sees changes of settings, which run when a file is imported."""
MARKS = "not slow and not gpu and not network"
CALLS_WITHOUT_NEWS = 1_000
"""After so many calls of a function in a test that ran no line of it for the first time, the test traces it no more."""


class BrokenTestsError(Exception):
    """Tests fail without any mutant."""


def survivors(sample: list[Mutant], tests: list[str], tell: Callable[[str], None], traced: bool = True) -> list[Mutant]:
    """The mutants under which all tests pass that run them; where no test is ``traced``, each is given to all of them.

    Raises:
        BrokenTestsError: tests fail without any mutant; it names them.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder  # children leave their files
        host = _Host(sample, Path(folder) / "host.json", tell, traced)
        code, output = _child(lambda: _pytest(tests, host), NEVER)
        if code != pytest.ExitCode.OK or not host.found.exists():
            raise BrokenTestsError(_complaints(code, output))
        found = json.loads(host.found.read_text(encoding="utf-8"))
        if found["failed"]:
            raise BrokenTestsError(found["failed"])
        room, lives = Room(**found["room"]), {int(number): survives for number, survives in found["lives"].items()}
        late = [number for number in range(len(sample)) if number not in lives]
        for module in room.modules if late else ():
            with suppress(ImportError):  # a module that must not be the first of its package
                importlib.import_module(module)
        for number in late[:1]:
            room.check(sample[number])
        for number in late:
            lives[number] = room.survives(sample[number])
            _tell(tell, sample, lives, number)
        return [mutant for number, mutant in enumerate(sample) if lives[number]]


def _tell(tell: Callable[[str], None], sample: list[Mutant], lives: dict[int, bool], number: int) -> None:
    tell(f"{len(lives)} of {len(sample)}: {'SURVIVED' if lives[number] else 'caught'}: {sample[number]}")


@dataclass(eq=False)
class Coverage:
    """A plugin of pytest, under which it notes the lines of the package that each test runs, and how long the test takes."""

    seconds: dict[str, float] = field(default_factory=dict)
    """CPU seconds, with the seconds of processes that the test started."""
    fixtures: dict[str, list[str]] = field(default_factory=dict)
    ran: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    """Test or fixture -> (file, line) of the package."""
    failed: list[str] = field(default_factory=list)
    now: set[tuple[str, int]] = field(default_factory=set)
    unseen: dict[Any, set[int]] = field(default_factory=dict)
    """Code -> its lines that this test has not run yet; none where it is traced no more."""
    idle: dict[Any, int] = field(default_factory=dict)

    def begin(self) -> None:
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        began = _cpu_seconds()
        self.fixtures[item.nodeid] = list(getattr(item, "fixturenames", []))
        self._note(item.nodeid)
        yield_value = yield
        self.seconds[item.nodeid] = _cpu_seconds() - began
        return yield_value

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """Note the lines of a shared fixture, on which many tests depend."""
        before = self.now, self.unseen, self.idle
        if fixturedef.scope != "function":
            self._note(f"fixture {fixturedef.argname}")
        try:
            return (yield)
        finally:
            self.now, self.unseen, self.idle = before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid}: {' '.join(report.longreprtext.split())[-300:]}")

    def _note(self, name: str) -> None:
        self.now, self.unseen, self.idle = self.ran.setdefault(name, set()), {}, {}

    def _trace(self, frame: Any, event: str, arg: Any) -> Any:
        code = frame.f_code
        unseen = self.unseen.get(code)
        if unseen is None:
            ours = code.co_filename.startswith(PACKAGE)
            unseen = self.unseen[code] = {line for *_, line in code.co_lines() if line} if ours else set()
        self.idle[code] = self.idle.get(code, 0) + 1
        if not unseen or self.idle[code] > CALLS_WITHOUT_NEWS:
            return None
        name, now, idle = code.co_filename, self.now, self.idle

        def line(frame: Any, event: str, arg: Any) -> Any:
            if event == "line" and frame.f_lineno in unseen:
                unseen.discard(frame.f_lineno)
                now.add((name, frame.f_lineno))
                idle[code] = 0
            return line if unseen else None

        return line

    def tests(self) -> dict[str, dict[int, list[str]]]:
        """File -> line -> the tests that run it."""
        found: dict[str, dict[int, set[str]]] = {}
        for test, fixtures in self.fixtures.items():
            for source in [test, *(f"fixture {name}" for name in fixtures)]:
                for name, line in self.ran.get(source, ()):
                    found.setdefault(name, {}).setdefault(line, set()).add(test)
        return {name: {line: sorted(tests) for line, tests in lines.items()} for name, lines in found.items()}


@dataclass(frozen=True)
class Room:
    """The tests of a room: how long each takes, and which run a line."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[str]]]
    modules: list[str]
    """Modules that the tests import of others: imported once, and not again in every child."""
    traced: bool = True
    """True if ``lines`` tells anything; a mutant is given to all tests otherwise."""

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that run a mutant, quick files first."""
        lines = self.lines.get(str(mutant.path), {})
        first, last = (0, sys.maxsize) if mutant.imported else mutant.lines
        tests = {test for line, tests in lines.items() if first <= int(line) <= last for test in tests}
        if mutant.imported:  # a test may read nothing but a constant
            near = {_file(test) for test in tests}
            tests |= {test for test in self.seconds if test.startswith(DEFAULTS) or _file(test) in near}
        if not self.traced or (mutant.imported and not lines):
            tests = set(self.seconds)
        if not tests:  # other processes may run its lines, of which the tracer knows nothing
            tests = {test for others in lines.values() for test in others}
        files: dict[str, float] = {}
        for test in tests:
            files[_file(test)] = files.get(_file(test), 0.0) + self.seconds[test]
        return sorted(tests, key=lambda test: (files[_file(test)], self.seconds[test], test))

    def limit(self, tests: list[str]) -> float:
        """Seconds of the processor, by those under the tracer, after which a mutant counts as hanging."""
        return 5 + 4 * sum(self.seconds[test] for test in tests)

    def survives(self, mutant: Mutant) -> bool:
        """Return whether all tests that run a mutant pass with it, in a process that imports everything anew."""
        chosen = self.of(mutant)
        return not chosen or self._run(mutant, chosen)[0] in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)

    def check(self, mutant: Mutant) -> None:
        """Tests that fail in a child because it is one, not because of what is changed there, would catch everything."""
        same = replace(mutant, text=mutant.path.read_text(encoding="utf-8"), imported=True)
        code, output = self._run(same, self.of(same))
        if code != pytest.ExitCode.OK:
            raise BrokenTestsError(_complaints(code, output))

    def _run(self, mutant: Mutant, chosen: list[str]) -> tuple[int, str]:
        def run() -> int:
            compile_in_place(mutant)
            return _pytest(list(dict.fromkeys(_file(test) for test in chosen)), _Chosen(chosen))

        return _child(run, _IMPORTS + self.limit(chosen))


@dataclass(eq=False)
class _Host:
    """A plugin of pytest that, in the place of running the collected tests, runs them in children under each mutant."""

    sample: list[Mutant]
    found: Path
    tell: Callable[[str], None]
    traced: bool = True
    inside: bool = False
    """True if this is a child, in which tests run."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or self.inside:
            return None
        tests = {item.nodeid: item for item in session.items}
        seen = Coverage()

        def trace() -> int:
            session.config.pluginmanager.register(seen)
            if self.traced:
                seen.begin()
            self._loop(session)
            sys.settrace(None)
            room = {"seconds": seen.seconds, "lines": seen.tests(), "modules": _foreign_modules(), "traced": self.traced}
            self._write({"room": room, "lives": {}, "failed": "; ".join(seen.failed)})
            return 0

        _child(trace, NEVER, loud=True)
        found = json.loads(self.found.read_text(encoding="utf-8"))
        if not found["failed"]:
            found["lives"] = self._try(session, tests, Room(**found["room"]))
            self._write(found)
        return True

    def _try(self, session: pytest.Session, tests: dict[str, pytest.Item], room: Room) -> dict[int, bool]:
        lives: dict[int, bool] = {}
        for number, mutant in enumerate(self.sample):
            if mutant.imported:
                continue
            chosen = room.of(mutant)

            def run(mutant: Mutant = mutant, chosen: list[str] = chosen) -> int:
                if not swap_code(mutant):
                    return _NOT_SWAPPED
                session.items[:] = [tests[test] for test in chosen]
                return self._loop(session)

            code = _child(run, room.limit(chosen), loud=True)[0] if chosen else 0
            if code != _NOT_SWAPPED:
                lives[number] = code == 0
                _tell(self.tell, self.sample, lives, number)
        return lives

    def _loop(self, session: pytest.Session) -> int:
        """Run the items of the session in a child, and return whether one failed."""
        self.inside = True
        try:
            session.config.hook.pytest_runtestloop(session=session)
        except session.Failed:
            return 1
        return int(session.testsfailed > 0)

    def _write(self, found: dict[str, Any]) -> None:
        self.found.write_text(json.dumps(found), encoding="utf-8")


def _pytest(tests: list[str], plugin: object) -> int:
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "-m", MARKS, "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*quiet, "-o", "timeout=0", *tests], plugins=[plugin]))


def _complaints(code: int, output: str) -> str:
    """Return pytest's lines on the tests that failed, or its reason for not beginning."""
    lines = output.splitlines()
    named = [line for line in lines if line.startswith(("FAILED", "ERROR", "INTERNALERROR"))][-3:]
    return "; ".join(named or lines[-1:]) or f"pytest ended with {code}"


def _foreign_modules() -> list[str]:
    """Modules that tests imported from site-packages, in their order."""
    found = []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is not None and spec.name == name and "site-packages" in (spec.origin or ""):
            found.append(name)
    return found


def _file(test: str) -> str:
    return test.split("::")[0]


@dataclass(eq=False)
class _Chosen:
    """A plugin of pytest that runs these tests alone, in this order."""

    tests: list[str]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in self.tests if test in found]  # a mutant may rename the cases of a test


_CRASHED = 70
_NOT_SWAPPED = 71
_IMPORTS = 30.0
"""Seconds of the processor for importing and collecting."""


def _cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _child(work: Callable[[], int], limit: float, *, loud: bool = False) -> tuple[int, str]:
    """The exit code of a fork, and what it wrote, unless it is ``loud`` and writes to where its parent does.

    It is killed after ``limit`` seconds of the processor, or when it does nothing any more.
    """
    with tempfile.TemporaryFile() as written:
        child = os.fork()
        if child == 0:
            code = _CRASHED
            try:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_CPU, (int(limit), resource.getrlimit(resource.RLIMIT_CPU)[1]))
                if not loud:
                    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                    os.dup2(written.fileno(), 1)
                    os.dup2(written.fileno(), 2)
                write_only_below(Path(tempfile.gettempdir()), ROOT / ".hypothesis", Path.home() / ".cache")
                code = work()
            except BaseException:
                written.write(traceback.format_exc().encode())
                written.flush()
            finally:
                sys.stdout.flush()
                os._exit(code)
        code = wait_for(child, limit)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it left behind
        written.seek(0)
        output = written.read().decode(errors="replace")
    assert code != _CRASHED, f"pytest itself failed in a child:\n{output}"
    return code, output
