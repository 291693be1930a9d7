"""The trace of tests: the lines of the package that each test runs, by coverage.py; kept in ``build`` while nothing changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.mutants import ROOT

PACKAGE = ROOT / "sememekit"
KEPT = ROOT / "build" / "tests_of_lines.json"


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
        keep = {test for test in self.fixtures if file_of(test) not in files}
        sources = {source for test in keep for source in self.sources(test)}
        return replace(
            self,
            seconds={source: seconds for source, seconds in self.seconds.items() if source in sources},
            fixtures={test: self.fixtures[test] for test in keep},
            ran={source: ran for source, ran in self.ran.items() if source in sources},
            failed={test: error for test, error in self.failed.items() if file_of(test) not in files},
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
    package = digest([*sorted(path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"), *shared])
    if not KEPT.exists():
        return Traced(package=package)
    traced = Traced(**json.loads(KEPT.read_text(encoding="utf-8")))
    if traced.package != package:
        return Traced(package=package)
    files = traced.files.items()
    return traced.without({file for file, own in files if not Path(file).exists() or digest([Path(file)]) != own})


def digest(paths: list[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def file_of(test: str) -> str:
    return test.split("::")[0]


def _cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


@dataclass(eq=False)
class Tracer:
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
