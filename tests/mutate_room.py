"""Tests under mutants: a process that has collected them forks itself for each mutant.

Such a child swaps the code of the functions that the mutant changes, and runs those tests that run the changed lines, until one
fails; first those that are quick and run little else. A first child runs all tests under the tracer of coverage.py to learn
which test runs which line; that is kept in ``build``, and only test files that changed are traced again. Mutants of what a file
does when it is imported, such as defaults of arguments, are tried in a process that imports everything anew.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.mutants import ROOT, Mutant, compile_in_place, swap_code
from tests.mutate_guard import write_only_below
from tests.mutate_wait import NEVER, wait_for

PACKAGE = ROOT / "sememekit"
KEPT = ROOT / "build" / "tests_of_lines.json"
DEFAULTS = ("tests/config/test_defaults.py", "tests/commands/test_defaults.py")
"""See changes of settings and options, which run when a file is imported."""
MARKS = "not slow and not gpu and not network"


class BrokenTestsError(Exception):
    """Tests fail without any mutant."""


@dataclass
class Traced:
    """Some tests as a tracer saw them: which lines of the package each runs, and how long it takes."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Test or fixture -> CPU seconds, with the seconds of processes that it started."""
    fixtures: dict[str, list[str]] = field(default_factory=dict)
    """Test -> its fixtures that other tests share."""
    ran: dict[str, dict[str, int]] = field(default_factory=dict)
    """Test or fixture -> file of the package -> the lines that it runs, a bit each."""
    failed: dict[str, str] = field(default_factory=dict)
    """Test -> its error. Such tests are given no mutant."""
    modules: list[str] = field(default_factory=list)
    """Modules of others that the tests import: imported once, and not again in every child."""
    files: dict[str, str] = field(default_factory=dict)
    """Test file -> the SHA-256 of its text."""
    package: str = ""
    """The SHA-256 of the package and of the modules that tests share."""

    def sources(self, test: str) -> list[str]:
        """A test with its shared fixtures."""
        return [test, *self.fixtures.get(test, [])]

    def cost(self, tests: Iterable[str]) -> float:
        """Seconds of the processor that tests take together: each shared fixture counts once."""
        return sum(self.seconds[source] for source in {source for test in tests for source in self.sources(test)})

    def lines(self, test: str) -> dict[str, int]:
        """File -> the lines that a test runs, with its fixtures."""
        found: dict[str, int] = {}
        for source in self.sources(test):
            for path, mask in self.ran.get(source, {}).items():
                found[path] = found.get(path, 0) | mask
        return found

    def without(self, files: set[str]) -> Traced:
        """The same without the tests of some files."""
        keep = {test for test in self.fixtures if _file(test) not in files}
        sources = {source for test in keep for source in self.sources(test)}
        return replace(
            self,
            seconds={source: seconds for source, seconds in self.seconds.items() if source in sources},
            fixtures={test: self.fixtures[test] for test in keep},
            ran={source: ran for source, ran in self.ran.items() if source in sources},
            failed={test: error for test, error in self.failed.items() if _file(test) not in files},
            files={file: digest for file, digest in self.files.items() if file not in files},
        )

    def join(self, other: Traced) -> None:
        """Add what a tracer saw of other tests."""
        for name in ("seconds", "fixtures", "ran", "failed", "files"):
            getattr(self, name).update(getattr(other, name))
        self.modules = list(dict.fromkeys([*self.modules, *other.modules]))


def kept() -> Traced:
    """The part of an earlier trace that is still true: of unchanged test files, while what they import has not changed."""
    shared = [path for path in sorted(ROOT.joinpath("tests").rglob("*.py")) if not path.name.startswith(("test_", "muta"))]
    package = _digest([*sorted(path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"), *shared])
    if not KEPT.exists():
        return Traced(package=package)
    traced = Traced(**json.loads(KEPT.read_text(encoding="utf-8")))
    if traced.package != package:
        return Traced(package=package)
    files = traced.files.items()
    return traced.without({file for file, digest in files if not Path(file).exists() or _digest([Path(file)]) != digest})


def _digest(paths: list[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def survivors(sample: list[Mutant], tests: list[str], tell: Callable[[str], None], seconds: float) -> list[Mutant]:
    """The mutants under which all tests pass that run them, or those that take so many ``seconds`` of the processor.

    Raises:
        BrokenTestsError: tests cannot be collected, or fail in a child because it is one.
    """
    KEPT.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder  # children leave their files
        host = _Host(sample, Path(folder) / "host.json", tell, seconds)
        code, output = _child(lambda: _pytest(tests, host), NEVER)
        if code != pytest.ExitCode.OK or not host.found.exists():
            raise BrokenTestsError(_complaints(code, output))
        found = json.loads(host.found.read_text(encoding="utf-8"))
        room, lives = Room(Traced(**found["traced"]), set(found["tests"]), seconds), {}
        lives = {int(number): survives for number, survives in found["lives"].items()}
        late = [number for number in range(len(sample)) if number not in lives]
        for module in room.traced.modules if late else ():
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
class _Tracer:
    """A plugin of pytest, under which it notes the lines of the package that each test runs, and how long the test takes."""

    traced: Traced
    tracer: coverage.Coverage = field(
        default_factory=lambda: coverage.Coverage(data_file=None, config_file=False, source=[str(PACKAGE)])
    )
    context: str = ""
    shared: dict[tuple[str, str], str] = field(default_factory=dict)
    """(name, where it may be used) of a fixture that tests share -> what it is called here."""
    apart: float = 0.0
    """Seconds that shared fixtures took inside of what is timed."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        result = yield from self._timed(item.nodeid)
        names = set(getattr(item, "fixturenames", []))
        used = [called for (name, base), called in self.shared.items() if name in names and item.nodeid.startswith(base)]
        self.traced.fixtures[item.nodeid] = used
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """All tests that use a shared fixture depend on the lines that it runs."""
        if fixturedef.scope == "function":
            return (yield)
        called = self.shared.setdefault((fixturedef.argname, fixturedef.baseid), f"{fixturedef.baseid}:{fixturedef.argname}")
        return (yield from self._timed(called))

    def _timed(self, source: str) -> Any:
        outside, apart, began = self.context, self.apart, _cpu_seconds()
        self.apart = 0.0
        self._switch(source)
        try:
            return (yield)
        finally:
            took = _cpu_seconds() - began
            self.traced.seconds[source] = self.traced.seconds.get(source, 0.0) + took - self.apart
            self.apart = apart + took
            self._switch(outside)

    def _switch(self, context: str) -> None:
        self.context = context
        self.tracer.switch_context(context)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.traced.failed[report.nodeid] = " ".join(report.longreprtext.split())[-300:]

    def note(self) -> None:
        """Put what was seen into ``traced``."""
        data = self.tracer.get_data()
        for path in data.measured_files():
            name = os.path.relpath(path, ROOT)
            for line, contexts in data.contexts_by_lineno(path).items():
                for source in filter(None, contexts):
                    ran = self.traced.ran.setdefault(source, {})
                    ran[name] = ran.get(name, 0) | 1 << line


@dataclass(frozen=True)
class Room:
    """The tests that mutants are given to."""

    traced: Traced
    tests: set[str]
    """The requested tests without those that fail under the tracer."""
    budget: float = 120.0
    """Seconds of the processor of the tests that one mutant is given to, at most."""

    @cached_property
    def _lines(self) -> dict[str, dict[str, int]]:
        return {test: self.traced.lines(test) for test in self.tests}

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that run a mutant, while the budget lasts: first the files that are quick and run little else."""
        path = os.path.relpath(mutant.path, ROOT)
        ran = {test: lines for test, lines in self._lines.items() if path in lines}
        first, last = mutant.lines
        between = (1 << last + 1) - (1 << first)
        tests = {test for test, lines in ran.items() if mutant.imported or lines[path] & between}
        if mutant.imported:  # a test may read nothing but a constant
            near = {_file(test) for test in tests}
            tests |= {test for test in self.tests if test.startswith(DEFAULTS) or _file(test) in near}
        if not tests or not ran:  # other processes may run its lines, of which the tracer knows nothing
            tests = set(ran) or self.tests
        shares = {
            test: lines[path].bit_count() / sum(mask.bit_count() for mask in lines.values()) for test, lines in ran.items()
        }
        files: dict[str, list[str]] = {}
        for test in self.traced.seconds:  # in their order, on which tests of a file may depend
            if test in tests:
                files.setdefault(_file(test), []).append(test)
        own = path.replace("sememekit", "tests", 1).rpartition("/")[0] + "/"

        def order(file: str) -> tuple[bool, float, str]:
            share = max(shares.get(test, 0.0) for test in files[file]) or (0.1 if file.startswith(own) else 0.01)
            return file not in DEFAULTS, self.traced.cost(files[file]) / share, file

        chosen: list[str] = []
        sources: set[str] = set()
        for test in (test for file in sorted(files, key=order) for test in files[file]):
            sources |= set(self.traced.sources(test))
            if chosen and sum(self.traced.seconds[source] for source in sources) > self.budget:
                break
            chosen.append(test)
        return chosen

    def limit(self, tests: list[str]) -> float:
        """CPU seconds, by the seconds under the tracer, after which a mutant counts as hanging."""
        return 5 + 4 * self.traced.cost(tests)

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
    seconds: float
    inside: bool = False
    """True if this is a child, in which tests run."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or self.inside:
            return None
        items = {item.nodeid: item for item in session.items}
        traced = kept()
        new = [item for item in session.items if _file(item.nodeid) not in traced.files]
        if new:
            traced.join(self._trace(session, new))
            traced.files |= {file: _digest([Path(file)]) for file in {_file(item.nodeid) for item in new}}
            KEPT.write_text(json.dumps(asdict(traced)), encoding="utf-8")
        for test in sorted(traced.failed.keys() & items):
            self.tell(f"fails without any mutant, and is given none: {test}: {traced.failed[test]}")
        room = Room(traced, set(items) - set(traced.failed), self.seconds)
        self._write({"traced": asdict(traced), "tests": sorted(room.tests), "lives": self._try(session, items, room)})
        return True

    def _trace(self, session: pytest.Session, items: list[pytest.Item]) -> Traced:
        def trace() -> int:
            tracer = _Tracer(Traced())
            session.config.pluginmanager.register(tracer)
            session.config.option.maxfail = 0
            session.items[:] = items
            tracer.tracer.start()
            self._loop(session)
            tracer.tracer.stop()
            tracer.note()
            self._write(asdict(replace(tracer.traced, modules=_foreign_modules())))
            return 0

        _child(trace, NEVER, loud=True)
        return Traced(**json.loads(self.found.read_text(encoding="utf-8")))

    def _try(self, session: pytest.Session, items: dict[str, pytest.Item], room: Room) -> dict[int, bool]:
        lives: dict[int, bool] = {}
        for number, mutant in enumerate(self.sample):
            if mutant.imported:
                continue
            chosen = room.of(mutant)

            def run(mutant: Mutant = mutant, chosen: list[str] = chosen) -> int:
                if not swap_code(mutant):
                    return _NOT_SWAPPED
                session.items[:] = [items[test] for test in chosen]
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
    """Return the lines of pytest on tests that failed, or on why it could not begin."""
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
                write_only_below(Path(tempfile.gettempdir()), ROOT / ".hypothesis", KEPT.parent, Path.home() / ".cache")
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
