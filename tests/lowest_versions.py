"""Run the fast tests of the core and of ``serve`` with the lowest versions of packages that pyproject.toml allows.

    python -m tests.lowest_versions             # in a fresh environment, which is removed afterwards
    python -m tests.lowest_versions --list      # the constraints alone
    python -m tests.lowest_versions --take torch==2.13.0 --environment DIR

``--take`` sets another version of a package, where its lowest one cannot be had. Packages that are no dependency of the core or
of ``serve``, such as the packages of the tests, come in any version."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "httpx", "httpx2", "pyyaml")
TESTS = ("config", "text", "sememes", "layers", "decoders", "encoders", "measure", "serve", "test_files.py")


def lowest(extras: tuple[str, ...] = ("serve",)) -> dict[str, str]:
    """Return package -> its lowest version, of the dependencies of the core and of ``extras``. Raises ValueError: a package has
    no lowest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]
    found = {}
    for requirement in wanted:
        name, version = re.fullmatch(r"([\w.-]+)>=([\w.]+).*", requirement).groups() if ">=" in requirement else ("", "")
        if not name:
            raise ValueError(f"pyproject.toml: {requirement!r} has no lowest version; write NAME>=VERSION")
        found[name] = version
    return found


def main() -> int:
    """Make the environment and run the tests; return the exit code of pytest."""
    parser = argparse.ArgumentParser(prog="python -m tests.lowest_versions", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the constraints, and end")
    parser.add_argument("--take", nargs="*", default=[], metavar="NAME==VERSION", help="other versions than the lowest")
    parser.add_argument("--environment", type=Path, metavar="DIR", help="keep the environment here, and use it again")
    parser.add_argument("--tests", nargs="*", default=TESTS, metavar="PATH", help="below tests/")
    given = parser.parse_args()
    versions = lowest() | dict(one.split("==", 1) for one in given.take)
    lines = [f"{name}=={version}\n" for name, version in versions.items()]
    if given.list:
        sys.stdout.writelines(lines)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder, constraints = given.environment or Path(scratch) / "environment", Path(scratch) / "lowest.txt"
        constraints.write_text("".join(lines), encoding="utf-8")
        if not (folder / "pyvenv.cfg").exists():
            venv.create(folder, with_pip=True)
        python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        environment = {name: value for name, value in os.environ.items() if name not in ("PIP_CONSTRAINT", "PYTHONPATH")}
        install = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--constraint",
            constraints,
            "--editable",
            f"{ROOT}[serve]",
            *TOOLS,
        ]
        subprocess.run(install, check=True, env=environment)
        paths = [f"tests/{path}" for path in given.tests]
        tests = [python, "-m", "pytest", "-q", "-W", "default::DeprecationWarning", *paths]  # old packages warn of newer ones
        return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
