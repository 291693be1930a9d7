"""Every command and flag, pinned: one that is added or lost changes ``flags.txt``, and is then meant.

A flag names a thing (a recipe, a folder, a seed, a device); a setting of a model is changed with ``--set``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from sememekit.analysis.analyze import analyze
from sememekit.analysis.evaluate import evaluate
from sememekit.analysis.explanations.label import explain_label
from sememekit.analysis.explanations.words import explain
from sememekit.analysis.explanations.written_text import explain_writing
from sememekit.attack import read_attack_plan
from sememekit.commands._completion import _names
from sememekit.commands._program import app
from sememekit.jobs.seeds import JOBS
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.generation import generate
from sememekit.runs.plan import read_plan

FROZEN = Path(__file__).with_name("flags.txt")
EVERYWHERE = {"--debug"}
runner = CliRunner()


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """(full name, command) of every leaf."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
    else:
        for key, value in inner.items():
            yield from commands(value, f"{name} {key}")


LEAVES = dict(commands(typer.main.get_command(app), "sememekit"))


def describe() -> list[str]:
    """One line for each command: its arguments in order, then its flags, sorted."""
    lines = []
    for name, command in LEAVES.items():
        arguments = [param.metavar or param.name for param in command.params if param.param_type_name == "argument"]
        shown = [param for param in command.params if not getattr(param, "hidden", False)]
        options = [param for param in shown if param.param_type_name == "option"]
        flags = sorted(flag for param in options for flag in (*param.opts, *param.secondary_opts))
        lines.append(" ".join([name, *arguments, *flags]))
    return lines


def test_the_flags_are_those_of_the_list() -> None:
    assert describe() == FROZEN.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", LEAVES)
def test_help_shows_what_it_does_and_an_example(name: str) -> None:
    result = runner.invoke(app, [*name.split()[1:], "--help"], env={"COLUMNS": "82", "TERM": "dumb"})
    assert (result.exit_code, result.stderr) == (0, "")
    heading = re.search(r"^ *Examples?:", result.stdout, re.MULTILINE)
    assert heading is not None
    start = heading.start()
    assert name in result.stdout[start:], "the example calls the command"
    lines = [line.strip() for line in result.stdout[start:].splitlines()]
    wrapped = [line for line in lines if line and not line.startswith(("Example", "sememekit", "echo"))]
    assert wrapped == [], "an example fits its line, so that it can be copied"


@pytest.mark.parametrize("name", LEAVES)
def test_common_flags_mean_the_same_everywhere(name: str) -> None:
    """Common flags have the names, values and help of ``train``, wherever they are."""
    params = {param.opts[0]: param for param in LEAVES[name].params if param.param_type_name == "option"}
    assert params.keys() >= EVERYWHERE
    train = {param.opts[0]: param for param in LEAVES["sememekit train"].params}
    for flag in ("--seed", "--device", "--dtype", "--json", "--quiet", "--debug"):
        if flag in params:
            assert (params[flag].help, params[flag].opts) == (train[flag].help, train[flag].opts)
            assert params[flag].type_descriptor.annotation == train[flag].type_descriptor.annotation


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("name", LEAVES)
def test_no_word_of_a_help_page_is_cut(name: str, columns: int) -> None:
    """Every word of the command's text, and of the help, type and default of each option, is there in full."""
    result = runner.invoke(app, [*name.split()[1:], "--help"], env={"COLUMNS": str(columns), "TERM": "dumb"})
    assert max(map(len, result.stdout.splitlines())) <= columns
    assert "…" not in result.stdout.replace("[…", "")
    shown = [param for param in LEAVES[name].params if not getattr(param, "hidden", False)]
    options = [param for param in shown if param.param_type_name == "option"]
    second = {flag for param in options for flag in param.secondary_opts}  # below the name, in the middle of the help
    flat = " ".join(word for word in re.sub("[│╭╮╰╯─]", " ", result.stdout).split() if word not in second)
    texts = [*LEAVES[name].help.split("\n\n"), *(param.help or "" for param in shown)]
    texts += [f"[{param.metavar}]" for param in options if param.metavar]
    assert {flag for param in options for flag in (*param.opts, *param.secondary_opts)} <= set(
        result.stdout.replace(",", " ").split()
    )
    assert [text for text in texts if " ".join(text.split()) not in flat] == []


def wide_help(*command: str) -> str:
    return " ".join(runner.invoke(app, [*command, "--help"], env={"COLUMNS": "400", "TERM": "dumb"}).stdout.split())


def test_help_shows_names_and_defaults() -> None:
    shown = wide_help("train")
    for words in ("headline, language_model, lattice", "[default: softmax]", "[default: lstm]", "[N >= 0] [default: 1]"):
        assert words in shown, words
    assert "<bool>" not in shown
    assert "(softmax)" not in shown
    assert "[1 <= N <= 20]" in wide_help("reproduce", "run")


def test_defaults_that_are_told_are_those_of_the_settings() -> None:
    """An option that is None unless it is typed says in words what holds then."""
    told = {
        (name, param.opts[0][2:].replace("-", "_")): param.show_default
        for name in ("sememekit train", "sememekit preprocess", "sememekit attack")
        for param in LEAVES[name].params
        if param.param_type_name == "option" and isinstance(param.show_default, str)
    }
    plan = read_plan({}, "the plan").table()
    expected = {("sememekit train", slot): plan[slot]["name"] for slot in ("task", "encoder", "decoder")}
    expected |= {("sememekit train", key): str(plan["run"][key]) for key in ("seed", "device", "dtype")}
    expected[("sememekit train", "jobs")] = str(JOBS)
    expected[("sememekit train", "engine")] = "local"
    usual = PreprocessSettings()
    expected |= {
        ("sememekit preprocess", key): str(getattr(usual, key))
        for key in ("pieces", "piece_model", "errors", "workers", "engine", "seed")
    }
    expected[("sememekit preprocess", "segmenter")] = "the data set's"
    attack = read_attack_plan({}, "the plan").table()
    expected |= {("sememekit attack", slot): attack[slot]["name"] for slot in ("goal", "search", "candidates")}
    expected[("sememekit attack", "seed")] = str(attack["attack"]["seed"])
    assert told == expected


@pytest.mark.parametrize(
    ("name", "function", "told"),
    [
        ("explain", explain, {"top": "10", "top_sememes": "12; of written texts 5", "min_count": "10"}),
        ("explain", explain_label, {"top_sememes": "12; of written texts 5"}),
        ("explain", explain_writing, {"top_sememes": "12; of written texts 5", "min_count": "10"}),
        ("generate", generate, {"num_tokens": "30", "temperature": "1", "top_k": "0"}),
        ("analyze", analyze, {"memory": "2", "cases": "6"}),
        ("eval", evaluate, {"split": "test"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_defaults_that_are_told_are_those_of_the_functions(
    name: str, function: Callable[..., object], told: dict[str, str]
) -> None:
    shown = {param.name: param.show_default for param in LEAVES[f"sememekit {name}"].params}
    defaults = {key: inspect.signature(function).parameters[key].default for key in told}
    assert {key: shown[key] for key in told} == told
    numbers = {key: default if isinstance(default, str) else f"{default:g}" for key, default in defaults.items()}
    assert [key for key, default in numbers.items() if default not in re.split("[; ]", told[key])] == []


def test_the_usual_segmenter_and_lexicon_are_those_of_the_command() -> None:
    told = {(name, param.name): param.show_default for name, command in LEAVES.items() for param in command.params}
    usual = told["sememekit segment", "segmenter"]
    text = "今天上海市体育局召开了会议"
    cut, as_told, other = (
        runner.invoke(app, ["segment", *typed], input=text).stdout
        for typed in ([], ["--segmenter", usual], ["--segmenter", "jieba"])
    )
    assert cut == as_told != other
    assert told["sememekit quickstart", "segmenter"] == "none, or fmm"
    assert told["sememekit quickstart", "sources"] == told["sememekit lookup", "sources"] == "open"
    found, as_told = (runner.invoke(app, ["lookup", "苹果", "--json", *typed]).stdout for typed in ([], ["--source", "open"]))
    assert found == as_told != ""


def test_every_option_is_used_by_its_name() -> None:
    """No search and no type checker follows an option through ``locals()``."""
    files = sorted((Path(__file__).parents[2] / "sememekit").rglob("*.py"))
    assert [path.name for path in files if re.search(r"\b(locals|vars)\(\)", path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("command", "parameter", "kind"),
    [
        ("preprocess", "dataset", "data set"),
        ("preprocess", "segmenter", "segmenter"),
        ("build-sememe-graph", "sources", "lexicon format"),
        ("attack", "goal", "goal"),
        ("attack", "search", "search"),
        ("attack", "candidates", "candidates"),
        ("train", "engine", "engine"),
    ],
)
def test_a_help_names_every_variant_of_its_table(command: str, parameter: str, kind: str) -> None:
    (found,) = (one for one in LEAVES[f"sememekit {command}"].params if one.name == parameter)
    unlisted = {"words", "se-wrl"} if kind == "lexicon format" else set()  # of the authors' own files
    missing = [name for name in _names(kind) if not re.search(rf"\b{re.escape(name)}\b", found.help) and name not in unlisted]
    assert missing == []
