"""The benchmarks: ``make bench`` runs each without arguments, and reads one JSON object a line."""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest

from sememekit.config.recipes import Cost, Shelf, list_recipes, resources_folder

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if path.name not in ("measuring.py", "gpu_steps.py"))


class Parsed(Exception):  # noqa: N818
    """The arguments were read, and nothing was measured."""


def loaded(script: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(script.parent)
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "1")  # a benchmark sets it where it is not set
    name = f"benchmark_{script.stem}"
    spec = importlib.util.spec_from_file_location(name, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_no_benchmark_demands_an_argument(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if script.stem == "textattack_bridge":
        pytest.importorskip("textattack")
    module = loaded(script, monkeypatch)
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
    assert "json.dumps(" in text or "fill(given.results" in text  # which prints a line for each cell
    assert "indent=" not in text


def test_every_benchmark_is_named_in_the_docs() -> None:
    text = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `benchmarks/(\w+)\.py` \|", text, re.MULTILINE)
    assert sorted(rows) == [path.stem for path in SCRIPTS]


def test_scores_of_suggested_sememes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the suggested sememes 0 and 1 is right, and one of two gold sememes is found."""
    module = loaded(ROOT / "benchmarks" / "suggesting.py", monkeypatch)
    assert module.f1(np.array([1.0, 0.7, 0.3, 0.1]), [0, 2]) == 0.5
    assert module.f1(np.zeros(4), [0, 2]) == 0.0


def test_what_has_a_result_is_not_measured_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measuring, results = loaded(ROOT / "benchmarks" / "measuring.py", monkeypatch), tmp_path / "results.json"
    results.write_text('{"a": {"1": {"perplexity": 5.0}}}', encoding="utf-8")
    asked = list[str]()

    def measure(name: str) -> dict[str, float]:
        if name == "torn":
            raise KeyboardInterrupt
        asked.append(name)
        return {"perplexity": 7.0}

    cells = [(name, seed, partial(measure, name)) for name, seed in (("a", 1), ("a", 2), ("b", 1), ("torn", 1), ("c", 1))]
    with pytest.raises(KeyboardInterrupt):
        measuring.fill(results, cells)
    assert asked == ["a", "b"]
    kept = json.loads(results.read_text(encoding="utf-8"))
    assert kept == {"a": {"1": {"perplexity": 5.0}, "2": {"perplexity": 7.0}}, "b": {"1": {"perplexity": 7.0}}}
    assert [json.loads(line)["cell"] for line in capsys.readouterr().out.splitlines()] == ["a", "b"]


SOME_PARTS = """
import argparse, fcntl, json, os, sys, time
parser = argparse.ArgumentParser()
for name in ("step", "parts", "part-limit", "out", "device", "words", "training"):
    parser.add_argument(f"--{name}")
options = parser.parse_args()
for part in options.parts.split("|"):
    if part == "breaks" or options.device == "cuda":
        sys.exit("CUDA error: an illegal memory access")
    if part.startswith("hangs"):
        lock = open(options.out + "/lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fork():  # a child of its own, as pytest is
            open(options.out + "/locked", "w").close()
        time.sleep(600)
    with open(options.out + "/gpu.jsonl", "a") as stream:
        stream.write(json.dumps({"step": options.step, "part": part, "process": os.getpid()}) + "\\n")
"""


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The GPU benchmark with a program of steps that writes a line for each part, breaks and hangs."""
    module = loaded(ROOT / "benchmarks" / "gpu.py", monkeypatch)
    (tmp_path / "steps.py").write_text(SOME_PARTS, encoding="utf-8")
    monkeypatch.setattr(module, "PROGRAM", tmp_path / "steps.py")
    return module


def some_options(out: Path) -> argparse.Namespace:
    return argparse.Namespace(out=out, training=out, device="cpu", words=1, data=None, graph=None, rehearse=False)


def test_after_a_part_that_breaks_the_others_run(gpu: ModuleType, tmp_path: Path) -> None:
    options, parts = some_options(tmp_path), ("first", "breaks", "second", "third")
    gpu.run_step(options, gpu.Step("some", parts, 120, 60), time.monotonic() + 120)
    lines = gpu.recorded(options)
    assert [line["part"] for line in lines] == list(parts)
    assert lines[1]["error"] == "exit code 1: CUDA error: an illegal memory access"
    assert lines[2]["process"] == lines[3]["process"] != lines[0]["process"], "one process until one breaks"


def test_after_a_part_that_hangs_the_others_run(gpu: ModuleType, tmp_path: Path) -> None:
    options, parts = some_options(tmp_path), ("hangs", "hangs again")
    gpu.run_step(options, gpu.Step("some", parts, 120, 0), time.monotonic() + 120)
    lines = gpu.recorded(options)
    assert [line["part"] for line in lines] == list(parts)
    assert all(re.fullmatch(r"stopped after \d+ seconds", line["error"]) for line in lines)


def test_without_a_device_nothing_follows_the_first_step(
    gpu: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    monkeypatch.delenv("OUT", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="nothing was measured: exit code 1: CUDA error"):
        gpu.main()
    assert [line["step"] for line in map(json.loads, gpu.lines_of(tmp_path / "runs/gpu/gpu.jsonl"))] == ["machine"]


def test_parts_without_time_are_lines(gpu: ModuleType, tmp_path: Path) -> None:
    options = some_options(tmp_path)
    gpu.run_step(options, gpu.Step("some", ("first", "second"), 120, 60), time.monotonic() - 1)
    assert [(line["part"], line["error"]) for line in gpu.recorded(options)] == [
        ("first", "no time left for this part"),
        ("second", "no time left for this part"),
    ]


def test_an_interrupted_call_leaves_no_process(gpu: ModuleType, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")

    def interrupt() -> bool:
        if (tmp_path / "locked").exists():
            raise KeyboardInterrupt
        return False

    watch = gpu.Watch(some_options(tmp_path), "some", ["hangs"], 120)
    with pytest.raises(KeyboardInterrupt):
        watch.wait(time.monotonic() + 120, interrupt)
    assert watch.process.returncode is not None
    with (tmp_path / "lock").open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # waits for whoever is left


def rehearse(out: Path, *more: str) -> list[dict[str, Any]]:
    """The lines of a rehearsal, which are printed and in the file."""
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "--rehearse", "--out", str(out), *more]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in (out / "gpu.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [json.loads(line) for line in printed.splitlines()] == [
        {name: value for name, value in line.items() if name != "profile"} for line in lines
    ]
    return lines


@pytest.mark.slow
def test_the_gpu_steps_can_be_rehearsed_and_their_training_resumed(tmp_path: Path) -> None:
    lines = rehearse(tmp_path / "first")
    assert [line["step"] for line in lines] == ["machine", "tests", *["steps"] * 10, *["compiled"] * 4, "training"]
    assert not [line for line in lines if "error" in line or not line["rehearsal"]]
    assert lines[1]["passed"] >= 3
    assert lines[1]["failures"] == []
    for line in lines[2:12]:
        assert line["profile"]["top"]
        assert line["share_of_floor"].keys() == line["seconds"].keys() == {"float32", "tf32", "bfloat16"}
    medium = {line["part"]: line["floor"]["gigaflop"] for line in lines[2:12]}
    assert medium["medium self-organized"] < medium["medium softmax"] < medium["medium sdlm"]
    assert all(line["largest_difference_of_nll"] < 1e-4 for line in lines[12:16])
    first = lines[-1]
    assert (first["resumed"], first["exit_code"]) == (False, 75)
    again = rehearse(tmp_path / "second", "--steps", "training", "--resume", str(tmp_path / "first" / "training"))
    assert [line["step"] for line in again] == ["machine", "training"]
    assert again[-1]["resumed"]
    assert again[-1]["steps_in_all"] > first["steps_in_all"]


def test_each_recipe_states_its_own_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost is what benchmarks/recipe_costs.py measures or computes today; after a change of settings: ``--write``."""
    costs = loaded(ROOT / "benchmarks" / "recipe_costs.py", monkeypatch)
    shelf, known = Shelf(resources_folder() / "recipes"), costs.measured()
    stated = {info.name: info.cost for info in list_recipes()}
    today = {name: Cost(**costs.cost_of(shelf.find(name), known)) for name in stated}
    assert {name: cost for name, cost in stated.items() if cost != today[name]} == {}
    assert sum(cost.measured for cost in today.values()) > 60


def test_a_stopped_training_is_not_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    measuring = loaded(SCRIPTS[0].with_name("measuring.py"), monkeypatch)
    for stopped in (False, True):
        monkeypatch.setattr(
            "sememekit.jobs.train.train", lambda *given, stopped=stopped, **more: SimpleNamespace(stopped=stopped)
        )
        with pytest.raises(SystemExit, match="same command continues") if stopped else nullcontext():
            assert measuring.train_to_the_end({}, tmp_path) == tmp_path


def test_the_trigrams_beside_our_models_are_normalised(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("a b a c <unk> b c a a b d " * 9 + "d d c b a " * 4).split()
    text = loaded(ROOT / "benchmarks" / "perplexity_speed.py", monkeypatch).arpa(words, 3)
    rows = [line.split("\t") for line in text.splitlines() if "\t" in line and "<s>" not in line and "</s>" not in line]
    share = {tuple(row[1].split()): 10 ** float(row[0]) for row in rows if row[1] != "<unk>"}
    weight = {tuple(row[1].split()): 10 ** float(row[2]) for row in rows if len(row) == 3}

    def probability(gram: tuple[str, ...]) -> float:
        return share[gram] if gram in share else weight.get(gram[:-1], 1.0) * probability(gram[1:])

    known = {word for (word,) in (gram for gram in share if len(gram) == 1)}
    for context in [(), ("a",), ("a", "b"), ("d", "d"), ("c", "d"), ("<unknown>", "b")]:
        assert sum(probability((*context, word)) for word in known) == pytest.approx(1.0, abs=1e-4)
