"""What an option is worth when it is not typed: the default of the function that the command calls."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

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


def test_the_help_of_a_command_imports_no_other() -> None:
    """In a process of its own, as any other test may have imported them."""
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
