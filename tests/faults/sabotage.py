"""``python -m tests.faults.sabotage``: one guard after the other is taken out of the program. Which tests notice?

Each sabotage is done in a copy of the tree. First the tests of this folder run that should see it, then, where they pass, those
of its area. What nothing sees is a hole in the tests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

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
    """All of the table."""
    return [Sabotage(**one) for one in tomllib.loads(TABLE.read_text(encoding="utf-8"))["sabotage"]]


def tests_fail(tree: Path, tests: list[str]) -> bool:
    """Whether a test fails in a copy of the tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "CI": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode not in (0, 1):
        print(done.stdout[-1500:], done.stderr[-1500:], file=sys.stderr)
    return done.returncode != 0


def seen_by(tree: Path, sabotage: Sabotage) -> str:
    """Do it, run the tests, undo it; who noticed."""
    file = tree / "sememekit" / sabotage.file
    whole = file.read_text(encoding="utf-8")
    if sabotage.old not in whole:
        return "NO SUCH TEXT"
    file.write_text(whole.replace(sabotage.old, sabotage.new), encoding="utf-8")
    try:
        if tests_fail(tree, [f"tests/faults/{sabotage.faults}"]):
            return "faults"
        return "area" if tests_fail(tree, [f"tests/{part}" for part in sabotage.area.split()]) else "NOBODY"
    finally:
        file.write_text(whole, encoding="utf-8")


def main() -> int:
    """Do all, or those that are named, and print a line for each and the sums."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.sabotage", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="only those whose name holds such a text")
    given = parser.parse_args()
    chosen = [one for one in sabotages() if not given.only or any(text in one.name for text in given.only)]
    sums: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in listed.split("\0")[:-1]:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
        for sabotage in chosen:
            seen = seen_by(tree, sabotage)
            sums[seen] = sums.get(seen, 0) + 1
            print(f"| {sabotage.name} | {sabotage.file} | {seen} |", flush=True)
    print(f"{len(chosen)} sabotages: {', '.join(f'{count} {seen}' for seen, count in sums.items())}")
    return int("NOBODY" in sums or "NO SUCH TEXT" in sums)


if __name__ == "__main__":
    sys.exit(main())
