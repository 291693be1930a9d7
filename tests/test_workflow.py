"""The workflow of the usual host: valid, for the Pythons of pyproject.toml, and with the commands of the Makefile."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")


def workflow() -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(TEXT)
    return found


def test_three_systems_run_every_python_of_the_project() -> None:
    matrix = workflow()["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["system"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    classified = [name.rpartition(" ")[2] for name in project["classifiers"] if re.search(r"Python :: 3\.\d+$", name)]
    assert matrix["python"] == classified
    assert project["requires-python"] == f">={classified[0]}"


def test_each_system_has_steps_and_windows_the_commands_of_the_makefile() -> None:
    steps = workflow()["jobs"]["test"]["steps"]
    run = {step["if"]: step["run"] for step in steps if "run" in step}
    assert set(run) == {"runner.os != 'Windows'", "runner.os == 'Windows'"}
    assert run["runner.os != 'Windows'"].split()[-1] == "test"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    wanted = re.findall(r"^\t\$\(BIN\)/((?:ruff|mypy|python -m pytest).*)$", makefile, re.MULTILINE)
    assert len(wanted) == 4
    assert set(wanted) <= set(run["runner.os == 'Windows'"].splitlines())
    extras = re.search(r'--editable "(\.\[dev.*?\])"', makefile)
    assert extras is not None
    assert f'--editable "{extras[1]}"' in run["runner.os == 'Windows'"]


def test_torch_is_pinned_where_the_workflow_looks() -> None:
    assert (ROOT / workflow()["env"]["PIP_CONSTRAINT"]).is_file()
    assert re.search(r"^torch==\d", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
