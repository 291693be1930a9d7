"""The benchmarks: ``make bench`` runs each without arguments, and reads one JSON object a line."""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if path.name != "measuring.py")


class Parsed(Exception):  # noqa: N818
    """The arguments were read, and nothing was measured."""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_no_benchmark_demands_an_argument(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(script.parent)
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "1")  # a benchmark sets it where it is not set
    name = f"benchmark_{script.stem}"
    spec = importlib.util.spec_from_file_location(name, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    real = argparse.ArgumentParser.parse_args

    def parse(parser: argparse.ArgumentParser, *given: Any) -> NoReturn:
        real(parser, [])
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    with pytest.raises(Parsed):
        module.main()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_prints_an_object_a_line(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert "json.dumps(" in text
    assert "indent=" not in text


def test_every_benchmark_is_named_in_the_docs() -> None:
    text = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `benchmarks/(\w+)\.py` \|", text, re.MULTILINE)
    assert sorted(rows) == [path.stem for path in SCRIPTS]


def test_scores_of_suggested_sememes() -> None:
    """The gold sememes 0 and 2 stand at ranks 1 and 3; of those suggested (0 and 1) one is right."""
    spec = importlib.util.spec_from_file_location("benchmark_of_suggesting", ROOT / "benchmarks" / "suggesting.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    precision, f1 = module.precision_and_f1(np.array([1.0, 0.7, 0.3, 0.1]), [0, 2])
    assert (precision, f1) == pytest.approx(((1 + 2 / 3) / 2, 0.5))
