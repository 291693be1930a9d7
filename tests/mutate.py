"""``python -m tests.mutate``: changes the code in small ways, one at a time, and says which changes no test of the room sees.

A mutant is one node of a syntax tree changed: a comparison, an operator, a number, a truth value, a condition, or a statement
left out. No file is changed: a forked child compiles the mutant in the place of the file and runs tests until one fails. The
tests of a room run once under a tracer first; a mutant is given to the tests that run its lines, and to no others. Which
mutants are tried is a sample that depends on ``--seed`` and on the code alone. Those that change nothing that anybody could
see are listed, each with its reason, in ``mutate_equivalent.txt``; they are left out before the sample is drawn.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.machinery
import json
import math
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = str(ROOT / "sememekit") + os.sep
EQUIVALENT = Path(__file__).with_name("mutate_equivalent.txt")
DEFAULTS = "tests/config/test_defaults.py::test_defaults_and_limits_change_on_purpose_alone"
"""Sees changes of settings, which run when a file is imported."""
TESTS = {
    "attack": ["tests/attack", f"{DEFAULTS}[attack]"],
    "training": ["tests/training", f"{DEFAULTS}[training]"],
    "tasks": ["tests/tasks", f"{DEFAULTS}[tasks]"],
    "layers": ["tests/layers", "tests/encoders", "tests/decoders"],
    "measure": ["tests/measure", f"{DEFAULTS}[measure]"],
}
"""Room -> the tests that must see a change of it."""
WANTED = 0.85
MARKS = "not slow and not gpu and not network"

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutant:
    """A change: of which file and line, from what to what, and the whole text of the file after it."""

    path: Path
    line: int
    source: str
    before: str
    after: str
    text: str
    lines: tuple[int, int]
    """The first and the last line whose execution executes the change."""
    imported: bool
    """Whether they are executed by the import of the file, not by a call."""

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self._change}"

    @property
    def key(self) -> str:
        """What ``mutate_equivalent.txt`` calls it: without the number of the line, which moves."""
        return f"{self.path.relative_to(ROOT)}: {self._change}"

    @property
    def _change(self) -> str:
        return f"`{self.source}`: {self.before} -> {self.after}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file."""
    text = path.read_text(encoding="utf-8")
    written = text.splitlines(keepends=True)
    starts = [0]
    for line in written:
        starts.append(starts[-1] + len(line.encode()))
    data = text.encode()
    for node, changed, lines, imported in _changes(ast.parse(text)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        new = f"({changed})" if isinstance(node, ast.expr) else changed
        mutated = (data[:begin] + new.encode() + data[end:]).decode()
        source = written[node.lineno - 1].strip()
        yield Mutant(path, node.lineno, source, _short(ast.unparse(node)), _short(changed), mutated, lines, imported)


def _short(code: str) -> str:
    code = " ".join(code.split())
    return code if len(code) <= 70 else f"{code[:67]}..."


def _changes(tree: ast.AST) -> Iterator[tuple[Any, str, tuple[int, int], bool]]:
    """(node, the code in its place, the lines that run it, whether on import) of every change."""
    for node, lines, imported in _live(tree, (0, 0), True):
        for changed in _changed(node):
            yield node, changed, lines, imported
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if isinstance(test, _PLAIN):
                yield test, f"not {ast.unparse(test)}", (test.lineno, test.end_lineno or test.lineno), imported


def _changed(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _SWAPPED:
            yield ast.unparse(ast.Compare(node.left, [_SWAPPED[type(operator)]()], node.comparators))  # type: ignore[list-item]
        case ast.BinOp(op=operator) if type(operator) in _SWAPPED:
            yield ast.unparse(ast.BinOp(node.left, _SWAPPED[type(operator)](), node.right))  # type: ignore[arg-type]
        case ast.BoolOp(op=operator):
            yield ast.unparse(ast.BoolOp(_SWAPPED[type(operator)](), node.values))  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield ast.unparse(operand)
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int() | float() as value):
            yield repr(value + 1 if abs(value) < 10 else value * 2)
        case ast.AugAssign():
            yield "pass"
        case ast.Expr(value=ast.Call(func=function)) if not _SAID.intersection(ast.unparse(function).split(".")):
            yield "pass"
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _reads(value, name):
            yield "pass"


_SAID = {"logger", "logging", "warnings", "super()"}
"""Calls whose only effect is a message, and those without which nothing runs."""
_GUARDS = {"strict", "stacklevel"}
"""Arguments that a result never depends on: they only make a mistake elsewhere an exception, or a message clearer."""
_PLAIN = ast.Name | ast.Attribute | ast.Call
"""Conditions without an operator of their own."""


def _reads(value: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))


def _live(node: ast.AST, lines: tuple[int, int], imported: bool) -> Iterator[tuple[ast.AST, tuple[int, int], bool]]:
    """Nodes that decide what the code does: no annotations, decorators, messages, and what is raised."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.Raise | ast.JoinedStr | ast.Assert):
                continue
            if isinstance(child, ast.keyword) and child.arg in _GUARDS:
                continue
            inside, called = lines, imported
            if isinstance(node, ast.FunctionDef | ast.Lambda) and name == "body":
                called = False
            if isinstance(child, ast.stmt | ast.expr):
                compound = isinstance(child, ast.stmt) and hasattr(child, "body")
                if isinstance(child, ast.stmt) or (isinstance(node, ast.stmt) and hasattr(node, "body")):
                    inside = (child.lineno, child.lineno if compound else child.end_lineno or child.lineno)
            yield child, inside, called
            yield from _live(child, inside, called)


def of_room(room: str) -> list[Mutant]:
    """Every mutant of a room that is not known to be equivalent, in the order of its files."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines()
    known = {line for line in lines if line.startswith(f"sememekit/{room}/")}
    every = [mutant for path in sorted((ROOT / "sememekit" / room).rglob("*.py")) for mutant in mutants(path)]
    gone = known - {mutant.key for mutant in every}
    assert not gone, f"{EQUIVALENT.name} lists what is no mutant: {sorted(gone)}"
    return [mutant for mutant in every if mutant.key not in known]


@dataclass(eq=False)
class Coverage:
    """A plugin of pytest, under which it notes the lines of the package that each test runs, and how long the test takes."""

    seconds: dict[str, float] = field(default_factory=dict)
    fixtures: dict[str, list[str]] = field(default_factory=dict)
    ran: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    """Test or fixture -> (file, line) of the package."""
    now: set[tuple[str, int]] = field(default_factory=set)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        began = time.monotonic()
        self.fixtures[item.nodeid] = list(getattr(item, "fixturenames", []))
        self.now = self.ran.setdefault(item.nodeid, set())
        yield_value = yield
        self.seconds[item.nodeid] = time.monotonic() - began
        return yield_value

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """What a fixture of many tests runs, all of them depend on."""
        before = self.now
        if fixturedef.scope != "function":
            self.now = self.ran.setdefault(f"fixture {fixturedef.argname}", set())
        try:
            return (yield)
        finally:
            self.now = before

    def _trace(self, frame: Any, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE):
            return None

        def line(frame: Any, event: str, arg: Any) -> Any:
            if event == "line":
                self.now.add((name, frame.f_lineno))
            return line

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
    """What the tests import of others: imported once, and not again in every child."""

    @classmethod
    def read(cls, tests: list[str]) -> Room | None:
        """None where the tests fail without any mutant."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "coverage.json"

            def trace() -> int:
                seen = Coverage()
                code = _pytest(tests, seen)
                sys.settrace(None)
                found = {"seconds": seen.seconds, "lines": seen.tests(), "modules": _foreign_modules()}
                file.write_text(json.dumps(found), encoding="utf-8")
                return code

            if _child(trace, 3600) != 0:
                return None
            return cls(**json.loads(file.read_text(encoding="utf-8")))

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that run a mutant, those of quick files first."""
        lines = self.lines.get(str(mutant.path), {})
        first, last = (0, sys.maxsize) if mutant.imported else mutant.lines
        tests = {test for line, tests in lines.items() if first <= int(line) <= last for test in tests}
        if mutant.imported:
            tests |= {test for test in self.seconds if test.startswith(DEFAULTS)}
        if mutant.imported and not lines:
            tests = set(self.seconds)
        files: dict[str, float] = {}
        for test in tests:
            files[_file(test)] = files.get(_file(test), 0.0) + self.seconds[test]
        return sorted(tests, key=lambda test: (files[_file(test)], self.seconds[test], test))

    def survives(self, mutant: Mutant) -> bool:
        """Whether all tests that run a mutant pass with it. A mutant that hangs is caught."""
        chosen = self.of(mutant)
        if not chosen:
            return True
        limit = 30 + 6 * sum(self.seconds[test] for test in chosen)

        def run() -> int:
            _compile_in_place(mutant)
            files = list(dict.fromkeys(_file(test) for test in chosen))
            return _pytest(files, _Chosen(chosen))

        return _child(run, limit) == 0


def _pytest(tests: list[str], plugin: object) -> int:
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "-m", MARKS, "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*quiet, *tests], plugins=[plugin]))


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
        items[:] = [found[test] for test in self.tests]


_CRASHED = 70


def _child(work: Callable[[], int], limit: float) -> int:
    """The exit code of a fork that works silently; -1 where it was killed because it took longer than the limit."""
    child = os.fork()
    if child == 0:
        code = _CRASHED
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            code = work()
        finally:
            os._exit(code)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            assert code != _CRASHED, "pytest itself failed in a child"
            return code
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def _compile_in_place(mutant: Mutant) -> None:
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: importlib.machinery.SourceFileLoader, name: str) -> Any:
        if Path(self.path) == mutant.path:
            return compile(mutant.text, self.path, "exec", dont_inherit=True)
        return original(self, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]


def interval(caught: int, tried: int) -> tuple[float, float]:
    """The interval of Wilson (1927) for a share, at 95 %."""
    if not tried:
        return 0.0, 1.0
    z = 1.959964
    share, weight = caught / tried, 1 + z * z / tried
    middle = (share + z * z / (2 * tried)) / weight
    half = z / weight * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    return middle - half, middle + half


def main() -> int:
    """Try a sample of each room, and print a table with the survivors below it."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"{', '.join(TESTS)}; all unless given")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each room at most (default: 60)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--within", default="", metavar="TEXT", help="only mutants whose line of the report holds this text")
    given = parser.parse_args()
    unknown = set(given.rooms) - set(TESTS)
    if unknown:
        parser.error(f"no tests are known for {', '.join(sorted(unknown))}; allowed: {', '.join(TESTS)}")
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["CI"] = "1"  # hypothesis then tries the same examples every time
    assert not any(name.split(".")[0] == "sememekit" for name in sys.modules), "a child must compile the package itself"
    print("| room | mutants | tried | caught | share | 95 % interval |\n|---|---|---|---|---|---|", flush=True)
    left, good = [], True
    for name in given.rooms or TESTS:
        every = [mutant for mutant in of_room(name) if given.within in str(mutant)]
        sample = random.Random(given.seed).sample(every, min(given.sample, len(every)))
        room = Room.read([*TESTS[name], f"{DEFAULTS}::test_defaults_and_limits_change_on_purpose_alone[{name}]"])
        if room is None:
            print(f"| {name} | {len(every):,} | its tests fail without any mutant | | | |", flush=True)
            good = False
            continue
        for module in room.modules:
            importlib.import_module(module)
        unchanged = replace(sample[0], text=sample[0].path.read_text(encoding="utf-8"))
        assert room.survives(replace(unchanged, imported=True)), "tests fail in a child that changes nothing"
        survivors = []
        for mutant in sample:
            if room.survives(mutant):
                survivors.append(mutant)
                print(f"survived: {mutant}", file=sys.stderr, flush=True)
        tried, caught = len(sample), len(sample) - len(survivors)
        low, high = interval(caught, tried)
        print(
            f"| {name} | {len(every):,} | {tried} | {caught} | {100 * caught / max(1, tried):.0f} % "
            f"| {100 * low:.0f} to {100 * high:.0f} % |",
            flush=True,
        )
        good = good and caught >= WANTED * tried
        left += survivors
    print("\nNo test of the room sees:\n", *(f"- {mutant}" for mutant in left), sep="\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
