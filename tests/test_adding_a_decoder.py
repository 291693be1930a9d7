"""docs/adding-a-decoder.md, followed to the letter in a copy of the project."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sememekit.decoders import DECODERS
from sememekit.jobs.train import train
from tests.decoders import test_contract
from tests.small_run import Place

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "adding-a-decoder.md"


def blocks() -> tuple[str, str, str, str]:
    """The code of the page: the file, the line of the table, the line of the tests, the file with sampled words."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(found) == 4
    return found[0], found[1], found[2], found[3]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project with what the page says."""
    skipped = shutil.ignore_patterns("__pycache__")
    for name in ("sememekit", "tests", "resources"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skipped)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    file, line, case, _ = blocks()
    package = tmp_path / "sememekit" / "decoders"
    (package / "temperature.py").write_text(file, encoding="utf-8")
    for path, before, added in (
        (package / "__init__.py", '    "tree_hsm"', f"    {line}"),
        (tmp_path / "tests" / "decoders" / "test_contract.py", '    Case("tree_hsm"),\n', f"    {case.strip()},\n"),
    ):
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1
        path.write_text(text.replace(before, f"{added}{before}"), encoding="utf-8")
    return tmp_path


def run(copy: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=copy, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.timeout(600)
def test_the_page_passes_the_suite_as_written(copy: Path) -> None:
    """The style passes, too; the suite runs over the copy, not over the installed package."""
    added = "sememekit/decoders/temperature.py"
    changed = [added, "sememekit/decoders/__init__.py", "tests/decoders/test_contract.py"]
    run(copy, "ruff", "check", "--no-cache", *changed)
    run(copy, "ruff", "format", "--no-cache", "--check", *changed)
    check = "import sememekit, pathlib; assert pathlib.Path(sememekit.__file__).is_relative_to(pathlib.Path.cwd())\n"
    (copy / "tests" / "decoders" / "test_copy.py").write_text(f"def test_temperature() -> None:\n    {check}", encoding="utf-8")
    run(copy, "pytest", "-q", "-p", "no:cacheprovider", "tests/decoders", "-k", "temperature or every_decoder")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_commands_of_the_page_write_what_the_tests_hold(copy: Path) -> None:
    """Both files lack the layer before, and have it and nothing else new afterwards."""
    held = ("tests/test_golden.py", "tests/config/test_defaults.py")
    check = "written_down or temperature or defaults_and_limits"
    modules = re.findall(r"^\.venv/bin/python -m (\S+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert modules == ["tests.golden", "tests.config.test_defaults"]
    files = [copy / "tests" / "golden.json", copy / "tests" / "config" / "defaults.txt"]
    for test in held:
        with pytest.raises(AssertionError, match="1 failed"):
            run(copy, "pytest", "-q", "-p", "no:cacheprovider", test, "-k", "written_down or defaults_and_limits")
    before = [set(file.read_text(encoding="utf-8").splitlines()) for file in files]
    for module in modules:
        run(copy, module)
    run(copy, "pytest", "-q", "-p", "no:cacheprovider", *held, "-k", check)
    for file, lines in zip(files, before, strict=True):
        added = set(file.read_text(encoding="utf-8").splitlines()) - lines
        assert added
        assert all("temperature" in line for line in added), added


def test_a_decoder_without_a_case_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step of the page adds the case that is missing here."""
    test_contract.test_every_decoder_has_a_case()
    monkeypatch.setitem(DECODERS, "temperature", "sememekit.decoders.temperature:Temperature")
    with pytest.raises(AssertionError, match="temperature"):
        test_contract.test_every_decoder_has_a_case()


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_it_learns_at_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temperature: float) -> None:
    """The class is a user's; optimiser, rate and clip are the defaults, at which the softmax of the house is the measure."""
    (tmp_path / "my_layers.py").write_text(blocks()[0], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    place = Place(tmp_path / "place")
    monkeypatch.setattr(
        "sememekit.training.divergence.uniform_perplexity", lambda task: None
    )  # ten words at the rate of ten thousand
    table = place.table(schedule__epochs=2)
    table["decoder"] = {"name": "my_layers:Temperature", "temperature": temperature}
    del table["optimizer"]
    best = train(table, tmp_path / "run").best_valid
    usual = train({**table, "decoder": {"name": "softmax"}}, tmp_path / "softmax").best_valid
    assert best is not None
    assert usual is not None
    assert best < 2 * usual, (best, usual)


def test_the_layer_with_sampled_words_is_the_one_above_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without draws it learns what the layer above learns; with them nearly as well, and something else."""
    for name, code in (("exact_layers", blocks()[0]), ("drawn_layers", blocks()[3])):
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    table, best = Place(tmp_path / "place").table(schedule__epochs=2), []
    drawn = {"name": "drawn_layers:Temperature", "temperature": 2.0}
    for number, decoder in enumerate(({**drawn, "name": "exact_layers:Temperature"}, drawn, {**drawn, "samples": 6})):
        best.append(train({**table, "decoder": decoder}, tmp_path / f"run-{number}").best_valid)
    assert best[0] == pytest.approx(best[1], rel=1e-6)
    assert best[2] != best[1]
    assert best[2] == pytest.approx(best[1], rel=0.2)
