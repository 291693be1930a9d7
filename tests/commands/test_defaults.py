"""Defaults of options: the defaults of the function that the command calls, and the lines of ``defaults.txt``.

After a change on purpose: ``python -m tests.commands.test_defaults``
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_flags import LEAVES

FROZEN = Path(__file__).with_name("defaults.txt")
CALLED = {
    "build_sememe_graph": "jobs.build_sememe_graph:build_sememe_graph",
    "cluster_update": "jobs.cluster_update:cluster_update",
    "clusters": "analysis.clusters:clusters",
    "compare": "analysis.compare_runs:compare",
    "evaluate_ppl": "analysis.evaluate_ppl:evaluate_ppl",
    "lookup": "sememes.lookup:lookup",
    "predict": "analysis.predict:predict",
    "quickstart": "jobs.quickstart:quickstart",
    "score": "analysis.score:score",
    "sweep": "jobs.sweep:sweep",
}


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """name -> default; None and nothing both mean that nothing was typed."""
    found = inspect.signature(function).parameters.values()
    return {item.name: item.default or None for item in found if item.default is not item.empty}


@pytest.mark.parametrize("name", CALLED)
def test_a_command_and_its_function_agree(name: str) -> None:
    module, _, function = CALLED[name].partition(":")
    typed = defaults(import_module(f"sememekit.commands.{name}").command)
    called = defaults(getattr(import_module(f"sememekit.{module}"), function))
    both = (typed.keys() & called.keys()) - {"by", "sources", "tops", "words"}  # collected, and empty where not typed
    assert both, "the names of the two are alike"
    assert {key: typed[key] for key in both} == {key: called[key] for key in both}


def described() -> list[str]:
    """One line for each option that has a default or limits, or that takes more than a value."""
    lines = []
    for name, command in LEAVES.items():
        for param in command.params:
            default = None if callable(param.default) else param.default
            limits = [getattr(param, end, None) for end in ("min", "max")]
            told = [] if default in (None, False, ()) else [f"= {default}"]
            told += [f"from {limits[0]} to {limits[1]}"] if limits != [None, None] else []
            told += ["required"] * param.required + ["repeatable"] * bool(getattr(param, "multiple", False))
            if told:
                lines.append(f"{name} {param.opts[0]}: {', '.join(told)}")
    return lines


def test_defaults_and_limits_change_on_purpose_alone() -> None:
    assert described() == FROZEN.read_text(encoding="utf-8").splitlines(), f"on purpose? then: python -m {__spec__.name}"


def test_the_help_of_a_command_imports_no_other() -> None:
    """A process of its own runs the help, as any other test may have imported them."""
    script = """
import sys
from typer.testing import CliRunner
from sememekit.commands._program import PANELS, app
assert CliRunner().invoke(app, ["score", "--help"]).exit_code == 0
print(sorted(name for name in PANELS if f"sememekit.commands.{name.replace('-', '_')}" in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "['score']\n"


@pytest.mark.parametrize("name", ["attack", "compare", "explain", "preprocess", "quickstart", "segment", "sweep", "train"])
def test_the_help_of_a_command_imports_neither_torch_nor_numpy(name: str) -> None:
    script = f"import sys, sememekit.commands.{name}; print(sorted({{'torch', 'numpy', 'jieba'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


if __name__ == "__main__":
    FROZEN.write_text("".join(f"{line}\n" for line in described()), encoding="utf-8")
