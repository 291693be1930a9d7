"""``python -m tests.mutate``: changes the code in small ways, one at a time, and says which changes no test of the room sees.

A mutant is one node of a syntax tree changed: a comparison, an operator, a number, a truth value, or a statement left out. No
file is changed: a forked child compiles the mutant in the place of the file and runs the tests of its room until one fails.
Which mutants are tried is a sample that depends on ``--seed`` alone; ``--seconds`` bounds each room.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.machinery
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS = {
    "attack": ["tests/attack"],
    "training": ["tests/training"],
    "tasks": ["tests/tasks"],
    "layers": ["tests/layers", "tests/encoders", "tests/decoders"],
    "measure": ["tests/measure"],
}
"""Room -> the tests that must see a change of it."""
WANTED = 0.85
LONGEST = 300
"""Seconds of the tests of a room; a mutant that hangs is caught."""

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
    """A change: of which file and line, from what to what, and the whole text after it."""

    path: Path
    line: int
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.before} -> {self.after}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    data = text.encode()
    for node, changed in _changes(ast.parse(text)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        new = f"({changed})" if isinstance(node, ast.expr) else changed
        mutated = (data[:begin] + new.encode() + data[end:]).decode()
        yield Mutant(path, node.lineno, _short(ast.unparse(node)), _short(changed), mutated)


def _short(code: str) -> str:
    code = " ".join(code.split())
    return code if len(code) <= 70 else f"{code[:67]}..."


def _changes(tree: ast.AST) -> Iterator[tuple[Any, str]]:
    """(node, the code in its place) of every change; nothing in annotations, messages and what is raised."""
    for node in _live(tree):
        match node:
            case ast.Compare(ops=[operator]) if type(operator) in _SWAPPED:
                yield node, ast.unparse(ast.Compare(node.left, [_SWAPPED[type(operator)]()], node.comparators))  # type: ignore[list-item]
            case ast.BinOp(op=operator) if type(operator) in _SWAPPED:
                yield node, ast.unparse(ast.BinOp(node.left, _SWAPPED[type(operator)](), node.right))  # type: ignore[arg-type]
            case ast.BoolOp(op=operator):
                yield node, ast.unparse(ast.BoolOp(_SWAPPED[type(operator)](), node.values))  # type: ignore[arg-type]
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                yield node, ast.unparse(operand)
            case ast.Constant(value=bool(value)):
                yield node, str(not value)
            case ast.Constant(value=int() | float() as value):
                yield node, repr(value + 1)
            case ast.AugAssign() | ast.Expr(value=ast.Call()):
                yield node, "pass"


def _live(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that decide what the code does."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.Raise | ast.JoinedStr | ast.Assert):
                yield child
                yield from _live(child)


def of_room(room: str) -> list[Mutant]:
    """Every mutant of a room, in the order of its files."""
    return [mutant for path in sorted((ROOT / "sememekit" / room).rglob("*.py")) for mutant in mutants(path)]


def survives(mutant: Mutant | None, tests: list[str]) -> bool:
    """Whether all tests pass in a child that compiles the mutant; None changes nothing."""
    child = os.fork()
    if child == 0:
        _run(mutant, tests)
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _run(mutant: Mutant | None, tests: list[str]) -> None:
    """The child: never returns."""
    code = 70
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        if mutant is not None:
            _compile_in_place(mutant)
        import pytest

        marks = "not slow and not gpu and not network"
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", marks, *tests]))
    finally:
        os._exit(code)


def _compile_in_place(mutant: Mutant) -> None:
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: importlib.machinery.SourceFileLoader, name: str) -> Any:
        if Path(self.path) == mutant.path:
            return compile(mutant.text, self.path, "exec", dont_inherit=True)
        return original(self, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]


def main() -> int:
    """Try a sample of each room, and print a table with the survivors below it."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"{', '.join(TESTS)}; all unless given")
    parser.add_argument("--sample", type=int, default=40, help="mutants of each room at most")
    parser.add_argument("--seconds", type=float, default=1200.0, help="of each room at most")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    unknown = set(given.rooms) - set(TESTS)
    if unknown:
        parser.error(f"no tests are known for {', '.join(sorted(unknown))}; allowed: {', '.join(TESTS)}")
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["CI"] = "1"  # hypothesis then tries the same examples every time
    for module in ("torch", "numpy", "pydantic", "safetensors.torch", "pytest", "typer"):
        importlib.import_module(module)  # once, and not again in every child
    assert not any(name.split(".")[0] == "sememekit" for name in sys.modules), "a child must compile the package itself"
    print("| room | mutants | tried | caught | share |\n|---|---|---|---|---|", flush=True)
    left, good = [], True
    for room in given.rooms or TESTS:
        every = of_room(room)
        sample = random.Random(given.seed).sample(every, min(given.sample, len(every)))
        if not survives(None, TESTS[room]):
            print(f"| {room} | {len(every):,} | its tests fail without any mutant | | |", flush=True)
            good = False
            continue
        end, tried, survivors = time.monotonic() + given.seconds, 0, []
        for mutant in sample:
            if time.monotonic() > end:
                break
            tried += 1
            if survives(mutant, TESTS[room]):
                survivors.append(mutant)
        caught = tried - len(survivors)
        print(f"| {room} | {len(every):,} | {tried} | {caught} | {100 * caught / max(1, tried):.0f} % |", flush=True)
        good = good and caught >= WANTED * tried
        left += survivors
    print("\nNo test of the room sees:\n", *(f"- {mutant}" for mutant in left), sep="\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
