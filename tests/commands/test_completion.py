"""Completion in the shell, function by function: words of bash, names, files, settings and their values."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sememekit.commands import _completion
from sememekit.commands._completion import (
    complete_path,
    complete_search_setting,
    complete_setting,
    complete_slot,
    complete_source,
    complete_split,
    complete_variant,
    completing,
    names_of,
    words_of_bash,
)
from sememekit.config import COMMAND_SLOTS


@pytest.mark.parametrize(
    ("parts", "current", "words", "printed", "left"),
    [
        (["s", "--set", "a", "=", "b"], 4, ["s", "--set", "a=b"], "a=bc", "bc"),
        (["s", "--set", "a", "="], 3, ["s", "--set", "a="], "a=b", "b"),
        (["s", "--set", "a"], 2, ["s", "--set", "a"], "a=", "a="),
        (["s", "--over", "=", "a", "=", "b"], 5, ["s", "--over=a=b"], "--over=a=b", "b"),
        (["s", "list", ":", "-x"], 3, ["s", "list:", "-x"], "-xy", "-xy"),
        (["s", "list", ":", "", "more"], 3, ["s", "list:"], "list:file", "file"),
        (["=", "a"], 1, ["=a"], "=ab", "ab"),
        (["s", "a:", "b"], 2, ["s", "a:b"], "b", "b"),
        (["s", "a", "b", "c"], 1, ["s", "a"], "ab", "ab"),
        (["s", ""], 1, ["s", ""], "x", "x"),
    ],
)
def test_bash_has_the_words_as_they_were_typed_and_gets_the_last_part(
    parts: list[str],
    current: int,
    words: list[str],
    printed: str,
    left: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("_SEMEMEKIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(parts))
    monkeypatch.setenv("COMP_CWORD", str(current))

    def complete() -> None:
        with words_of_bash():
            print(f"{printed}\nother")
            raise SystemExit  # as typer does

    with pytest.raises(SystemExit):
        complete()
    assert (os.environ["COMP_WORDS"].split("\n"), os.environ["COMP_CWORD"]) == (words, str(len(words) - 1))
    assert capsys.readouterr().out == f"{left}\nother\n"


def test_another_shell_keeps_its_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("_SEMEMEKIT_COMPLETE", "complete_zsh")
    monkeypatch.setenv("COMP_WORDS", "a\n=\nb")
    monkeypatch.setenv("COMP_CWORD", "2")
    with words_of_bash():
        print("a=b")
    assert (os.environ["COMP_WORDS"], capsys.readouterr().out) == ("a\n=\nb", "a=b\n")


def test_a_line_of_bash_without_words_is_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_SEMEMEKIT_COMPLETE", "complete_bash")
    for name in ("COMP_WORDS", "COMP_CWORD"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    with words_of_bash():
        pass
    assert (os.environ["COMP_WORDS"], os.environ["COMP_CWORD"]) == ("", "0")


def test_names_are_completed_by_their_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completing(lambda: ["ab", "a", "ba"])("a") == ["ab", "a"]
    assert complete_split("") == ["train", "valid", "test"]
    assert complete_slot("") == [slot for slots in COMMAND_SLOTS.values() for slot in slots]
    monkeypatch.setattr("sememekit.config.installed_variants", lambda kind: {"engine": ["zoo", "local"]}.get(kind, ["own"]))
    assert names_of("engine")("") == ["dask", "local", "slurm", "zoo"]
    assert names_of("of no table")("") == ["own"]
    assert complete_variant(SimpleNamespace(params={"slot": "engine"}), "l") == ["local"]  # type: ignore[arg-type]


def test_a_lexicon_is_its_format_and_then_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("b").touch()
    monkeypatch.setattr(_completion, "_names", lambda kind: {"lexicon format": ["hownet", "open", "wordnet"]}[kind])
    assert complete_source("") == ["hownet:", "open", "wordnet"]
    assert complete_source("h") == ["hownet:"]
    assert complete_source("hownet:") == ["hownet:b"]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["folder/", "name"]),
        ("n", ["name"]),
        ("./n", ["name"]),
        ("folder", ["folder/"]),
        ("folder/", ["folder/a", "folder/b"]),
        ("folder//a", ["folder/a"]),
        ("no/", []),
        ("no/a", []),
        ("name/", []),
        ("~/fo", ["~/folder/"]),
    ],
)
def test_files_are_completed_and_folders_end_in_a_slash(
    typed: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("folder").mkdir()
    for name in ("name", "folder/b", "folder/a"):
        Path(name).touch()
    assert complete_path(typed) == found


def context(command: str, **params: Any) -> Any:
    return SimpleNamespace(info_name=command, params=params)


SETTINGS = {
    "decoder": {"tied": ("true or false", ()), "kind": ("one of", ("a", "b")), "size": ("number", ())},
    "schedule": {"epochs": ("number", ())},
    "optimizer": {"name": ("one of", ("sgd", "adam"))},
    "constraints": {"at_least": ("number", ())},
    "task": {"search.beam_size": ("number", ()), "other": ("number", ())},
}


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The tables that are asked for: each slot has a few settings."""
    asked: list[tuple[str, str]] = []

    def table(slot: str, name: str = "") -> SimpleNamespace:
        asked.append((slot, name))
        settings = [SimpleNamespace(key=key, type=kind, choices=found) for key, (kind, found) in SETTINGS[slot].items()]
        return SimpleNamespace(prefix=f"{slot}.{name}." if slot == "constraints" else f"{slot}.", settings=settings)

    monkeypatch.setattr("sememekit.runs.slots.settings_table", table)
    monkeypatch.setattr(
        _completion, "_names", lambda kind: {"decoder": ["mos", "sdlm"], "constraints": ["share", "stop"]}[kind]
    )
    return asked


@pytest.mark.parametrize(
    ("command", "params", "typed", "found", "asked"),
    [
        ("train", {}, "sch", ["schedule."], []),
        ("sweep", {}, "sch", ["schedule."], []),
        ("attack", {}, "sch", [], []),
        ("lookup", {}, "sch", [], []),
        ("train", {}, "no.", [], []),
        ("train", {}, "schedule.", ["schedule.epochs="], [("schedule", "")]),
        ("train", {}, "schedule.epochs=", [], [("schedule", "")]),
        ("train", {}, "optimizer.", ["optimizer.name="], [("optimizer", "")]),
        ("train", {}, "optimizer.name=a", ["optimizer.name=adam"], [("optimizer", "")]),
        (
            "train",
            {},
            "decoder.",
            ["decoder.name=", "decoder.tied=", "decoder.kind=", "decoder.size="],
            [("decoder", "softmax")],
        ),
        ("train", {"decoder": "sdlm"}, "decoder.t", ["decoder.tied="], [("decoder", "sdlm")]),
        ("train", {"overrides": ["decoder.name=mos", "half"]}, "decoder.s", ["decoder.size="], [("decoder", "mos")]),
        ("train", {}, "decoder.name=", ["decoder.name=mos", "decoder.name=sdlm"], [("decoder", "softmax")]),
        ("train", {}, "decoder.name=s", ["decoder.name=sdlm"], [("decoder", "softmax")]),
        ("train", {}, "decoder.tied=", ["decoder.tied=true", "decoder.tied=false"], [("decoder", "softmax")]),
        ("train", {}, "decoder.kind=b", ["decoder.kind=b"], [("decoder", "softmax")]),
        ("train", {}, "decoder.none=", [], [("decoder", "softmax")]),
        ("train", {"recipe": "no/such"}, "decoder.", [], []),
        ("attack", {}, "constraints.s", ["constraints.share.", "constraints.stop."], []),
        ("attack", {}, "constraints.share.", ["constraints.share.at_least="], [("constraints", "share")]),
    ],
)
def test_a_setting_is_its_slot_then_its_key_then_its_value(
    command: str,
    params: dict[str, Any],
    typed: str,
    found: list[str],
    asked: list[tuple[str, str]],
    tables: list[tuple[str, str]],
) -> None:
    assert complete_setting(context(command, **params), typed) == found
    assert tables == asked


def test_settings_of_a_search_are_those_of_headlines(tables: list[tuple[str, str]]) -> None:
    assert complete_search_setting("task.") == ["task.search.beam_size="]
    assert tables == [("task", "headline")]
