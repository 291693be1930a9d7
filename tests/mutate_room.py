"""Tests under mutants: a process that has collected them forks itself for each mutant.

Such a child swaps the code of the functions that the mutant changes, and runs those tests that run the changed lines, until one
fails; first those that are quick and run little else. A first child runs all tests under the tracer of coverage.py to learn
which test runs which line; that is kept in ``build``, and only test files that changed are traced again. Mutants of what a file
does when it is imported, such as defaults of arguments, are tried in a process that imports everything anew.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import ROOT, Mutant, compile_in_place, swap_code
from tests.mutate_guard import write_only_below
from tests.mutate_trace import KEPT, Traced, Tracer, digest, file_of, kept
from tests.mutate_wait import NEVER, wait_for

DEFAULTS = ("tests/config/test_defaults.py", "tests/commands/test_defaults.py")
"""See changes of settings and options, which run when a file is imported."""
MARKS = "not slow and not gpu and not network"


class BrokenTestsError(Exception):
    """Tests fail without any mutant."""


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
            near = {file_of(test) for test in tests}
            tests |= {test for test in self.tests if test.startswith(DEFAULTS) or file_of(test) in near}
        if not tests or not ran:  # other processes may run its lines, of which the tracer knows nothing
            tests = set(ran) or self.tests
        shares = {
            test: lines[path].bit_count() / sum(mask.bit_count() for mask in lines.values()) for test, lines in ran.items()
        }
        files: dict[str, list[str]] = {}
        for test in self.traced.seconds:  # in their order, on which tests of a file may depend
            if test in tests:
                files.setdefault(file_of(test), []).append(test)
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
            return _pytest(list(dict.fromkeys(file_of(test) for test in chosen)), _Chosen(chosen))

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
        new = [item for item in session.items if file_of(item.nodeid) not in traced.files]
        if new:
            traced.join(self._trace(session, new))
            traced.files |= {file: digest([Path(file)]) for file in {file_of(item.nodeid) for item in new}}
            KEPT.write_text(json.dumps(asdict(traced)), encoding="utf-8")
        for test in sorted(traced.failed.keys() & items):
            self.tell(f"fails without any mutant, and is given none: {test}: {traced.failed[test]}")
        room = Room(traced, set(items) - set(traced.failed), self.seconds)
        self._write({"traced": asdict(traced), "tests": sorted(room.tests), "lives": self._try(session, items, room)})
        return True

    def _trace(self, session: pytest.Session, items: list[pytest.Item]) -> Traced:
        def trace() -> int:
            tracer = Tracer(Traced())
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
