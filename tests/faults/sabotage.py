"""``python -m tests.faults.sabotage``: one guard after the other is taken out of the program. Which tests notice?

The tests of this folder that should see it are called in a fork whose functions have the sabotage, and so have the commands
that they run. Where they pass, the tests of its area run in a copy of the tree. A sabotage that no test sees is a hole in
the tests.
"""

from __future__ import annotations

import argparse
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import traceback
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.faults.child import Commands, take_out
from tests.faults.corrupt import Damage
from tests.faults.hostile import Stage
from tests.faults.runs import put

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("sabotages.toml")


class Sabotage(NamedTuple):
    """One guard that is taken out.

    Attributes:
        name: what is gone.
        file: below ``sememekit``.
        old, new: the text and its replacement.
        faults: the tests of this folder that should see it.
        area: the files of tests of its area, below ``tests``.
    """

    name: str
    file: str
    old: str
    new: str
    faults: str
    area: str


def sabotages() -> list[Sabotage]:
    """Return all sabotages of the table."""
    return [Sabotage(**one) for one in tomllib.loads(TABLE.read_text(encoding="utf-8"))["sabotage"]]


class Bench:
    """The tests of this folder, called one by one in forks of a process that has made what they share."""

    def __init__(self, commands: Commands, folder: Path) -> None:
        self.commands, self.folder = commands, folder
        self.shared: dict[str, Any] = {
            "commands": commands,
            "stage": Stage(commands, folder / "stage"),
            "damage": Damage(commands, folder / "damage", "sdlm"),
        }
        for name in ("stage", "damage"):
            put(folder / name, folder / f"whole-{name}")

    def notices(self, sabotage: Sabotage) -> bool:
        """Return whether a test of the sabotage's column fails with it."""
        path = ROOT / "sememekit" / sabotage.file
        text = path.read_text(encoding="utf-8").replace(sabotage.old, sabotage.new)
        child = os.fork()
        if child == 0:
            try:
                os._exit(self._fails(sabotage, path, text))
            except BaseException:
                traceback.print_exc()
                os._exit(2)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for name in ("stage", "damage"):
            put(self.folder / f"whole-{name}", self.folder / name)
        assert code in (0, 1), sabotage.name
        return code == 1

    def _fails(self, sabotage: Sabotage, path: Path, text: str) -> int:
        assert take_out(str(path), text), sabotage.name
        self.commands.sabotage = path, text
        module, _, name = sabotage.faults.partition("::")
        tests = vars(import_module(f"tests.faults.{module.removesuffix('.py')}"))
        for key, test in list(tests.items()):
            if key.startswith("test_") and key in (name or key):
                for given in _parameters(test):
                    try:
                        self._call(test, given)
                    except pytest.skip.Exception:
                        continue
                    except (Exception, pytest.fail.Exception) as error:
                        print(f"{sabotage.name}: {key}: {str(error)[:300]!r}", file=sys.stderr, flush=True)
                        return 1
        return 0

    def _call(self, test: Any, given: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            found = {**self.shared, **given, "tmp_path": Path(scratch)}
            wanted = inspect.signature(test).parameters
            if "run" in wanted:
                found["run"] = shutil.copytree(self.shared["stage"].sdlm.run, Path(scratch) / "run")
            test(**{name: found[name] for name in wanted})


def _parameters(test: Any) -> list[dict[str, Any]]:
    """Return the arguments of each case of ``pytest.mark.parametrize``."""
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    if not marks:
        return [{}]
    names = marks[0].args[0] if not isinstance(marks[0].args[0], str) else [marks[0].args[0]]
    return [dict(zip(names, value if len(names) > 1 else [value], strict=True)) for value in marks[0].args[1]]


def area_notices(sabotage: Sabotage) -> bool:
    """Return whether a test of its area fails in a copy of the tree with the sabotage."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in listed.split("\0")[:-1]:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
        file = tree / "sememekit" / sabotage.file
        file.write_text(file.read_text(encoding="utf-8").replace(sabotage.old, sabotage.new), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "CI": "1"}
        tests = [f"tests/{part}" for part in sabotage.area.split()]
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]
        return subprocess.run(command, cwd=tree, env=environment, stdout=sys.stderr, check=False).returncode != 0


def main() -> int:
    """Run all sabotages, or the named ones, and print a line for each and the sums."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.sabotage", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="only those whose name holds such a text")
    parser.add_argument("--here", action="store_true", help="ask the tests of this folder alone")
    given = parser.parse_args()
    chosen = [one for one in sabotages() if not given.only or any(text in one.name for text in given.only)]
    sums: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch, Commands(Path(scratch) / "commands") as commands:
        bench = Bench(commands, Path(scratch))
        for one in chosen:
            by = ["faults"] * bench.notices(one)
            by += ["area"] * (not by and not given.here and area_notices(one))
            sums.update(by or ["NOBODY"])
            sums["anybody"] += bool(by)
            print(f"| {one.name} | {one.file} | {', '.join(by) or 'NOBODY'} |", flush=True)
    print(f"{len(chosen)} sabotages, noticed by: {', '.join(f'{by} {count}' for by, count in sorted(sums.items()))}")
    return int(sums["NOBODY"] > 0)


if __name__ == "__main__":
    sys.exit(main())
