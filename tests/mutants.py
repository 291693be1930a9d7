"""Mutants: one small change each of a file of the package, as ``python -m tests.mutate`` tries them.

A mutant is one node of a syntax tree changed: a comparison, an operator, a number, a truth value, a condition, or a statement
left out. Those that change nothing that anybody could see are listed, each under its reason, in ``mutate_equivalent.txt``.
"""

from __future__ import annotations

import ast
import gc
import inspect
import os
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_name("mutate_equivalent.txt")

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
    """True if they are executed by the import of the file, not by a call."""

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self._change}"

    @property
    def key(self) -> str:
        """Return its name in ``mutate_equivalent.txt``, without the number of the line, which moves."""
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
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if isinstance(test, _PLAIN) and not _typing(
                test
            ):
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


def _typing(test: ast.expr) -> bool:
    """Return whether a condition is ``TYPE_CHECKING``: imports for types alone do no harm when the code runs."""
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


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


_IN_PLACE = """
from importlib.machinery import SourceFileLoader

def in_place(path, text, original=SourceFileLoader.get_code):
    def get_code(self, name):
        return compile(text, self.path, "exec", dont_inherit=True) if self.path == path else original(self, name)
    SourceFileLoader.get_code = get_code

"""
"""The script that lets a process import a text in place of a file."""


def compile_in_place(mutant: Mutant) -> None:
    """From now on this process, and those that it starts, import the mutant instead of its file."""
    script = f"{_IN_PLACE}in_place({str(mutant.path)!r}, {mutant.text!r})\n"
    exec(script, {})
    folder = tempfile.mkdtemp(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    Path(folder, "sitecustomize.py").write_text(script, encoding="utf-8")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))


def swap_code(mutant: Mutant) -> bool:
    """Put the mutant into the functions that were imported from its file, and into the file, should it be imported yet.

    False, and nothing is done, where mutant and file do not have the same functions one by one: a statement left out may
    hold one, or be all that a function reads of the function around it.
    """
    written = mutant.path.read_text(encoding="utf-8")
    old, new = (compile(text, str(mutant.path), "exec", dont_inherit=True) for text in (written, mutant.text))
    pairs: dict[tuple[str, int], types.CodeType | None] = {}
    _pair(old, new, pairs)
    functions = [thing for thing in gc.get_objects() if type(thing) is types.FunctionType]
    swapped = []
    for function in functions:
        code = function.__code__
        if code.co_filename != str(mutant.path):
            continue
        changed = pairs.get((code.co_qualname, code.co_firstlineno))
        if changed is None or changed.co_freevars != code.co_freevars:
            return False
        swapped.append((function, changed))
    compile_in_place(mutant)
    for function, changed in swapped:
        function.__code__ = changed
    return True


def _pair(old: types.CodeType, new: types.CodeType, pairs: dict[tuple[str, int], types.CodeType | None]) -> None:
    """(name, first line) of each function in the old code -> the same function in the new; None where it is not certain."""
    inside, changed = ([part for part in code.co_consts if inspect.iscode(part)] for code in (old, new))
    certain = [part.co_qualname for part in inside] == [part.co_qualname for part in changed]
    for part, other in zip(inside, changed, strict=False):
        key = part.co_qualname, part.co_firstlineno
        pairs[key] = other if certain and key not in pairs else None
        if certain:
            _pair(part, other, pairs)
