"""Every command and flag, pinned: one that is added or lost changes ``flags.txt``, and is then meant.

A flag names a thing (a recipe, a folder, a seed, a device); a setting of a model is changed with ``--set``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from sememekit.commands._program import app

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
        options = [param for param in command.params if param.param_type_name == "option"]
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
    """Same names, same values and same help, wherever they are."""
    params = {param.opts[0]: param for param in LEAVES[name].params if param.param_type_name == "option"}
    assert params.keys() >= EVERYWHERE
    train = {param.opts[0]: param for param in LEAVES["sememekit train"].params}
    for flag in ("--seed", "--device", "--dtype", "--json", "--quiet", "--debug"):
        if flag in params:
            assert (params[flag].help, params[flag].opts) == (train[flag].help, train[flag].opts)
            assert params[flag].type_descriptor.annotation == train[flag].type_descriptor.annotation


@pytest.mark.parametrize("name", LEAVES)
def test_help_names_every_option_in_full_on_a_narrow_terminal(name: str) -> None:
    result = runner.invoke(app, [*name.split()[1:], "--help"], env={"COLUMNS": "80", "TERM": "dumb"})
    printed = set(result.stdout.replace(",", " ").split())
    options = [param for param in LEAVES[name].params if param.param_type_name == "option"]
    assert {flag for param in options for flag in (*param.opts, *param.secondary_opts)} <= printed
