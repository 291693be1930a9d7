"""The command ``settings``: every setting that ``--set`` takes, as its class has it, and the completion of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest
from pydantic import Field
from typer.testing import CliRunner

from sememekit import config
from sememekit.commands._program import app
from sememekit.config import COMMAND_SLOTS, Settings
from sememekit.config.tables import RUN_SLOTS
from sememekit.errors import ConfigError
from sememekit.runs.slots import Setting, SettingsTable, describe_settings, settings_slots, settings_table, summary_of

runner = CliRunner()


def tables() -> list[SettingsTable]:
    return [settings_table(info.slot, name) for info in settings_slots() for name in info.variants or ("",)]


TABLES = tables()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.slot}-{table.name}")
def test_every_setting_has_a_meaning(table: SettingsTable) -> None:
    assert table.summary
    assert [setting.key for setting in table.settings if len(setting.meaning) < 10 or not setting.values] == []


def test_all_slots_of_recipes_and_of_set_are_there() -> None:
    assert {info.slot for info in settings_slots()} == {*RUN_SLOTS, *COMMAND_SLOTS["evaluate-ppl"]}
    assert len(TABLES) > 50


def test_a_slot_has_its_command_its_default_and_its_variants() -> None:
    found = {info.slot: info for info in settings_slots()}
    commands = [found[slot].command for slot in ("data", "decoder", "run", "search", "attack", "cache", "tune")]
    assert commands == ["train", "train", "train", "attack", "attack", "evaluate-ppl", "evaluate-ppl"]
    assert (found["constraints"].usual, found["search"].usual, found["schedule"].usual) == ("", "genetic", "")
    assert found["schedule"].variants == {}
    assert found["schedule"].summary == settings_table("schedule").summary
    assert found["encoder"].variants["gru"] == settings_table("encoder", "gru").summary
    prefixes = [settings_table(*names).prefix for names in (("constraints", "share"), ("decoder", "sdlm"), ("schedule",))]
    assert prefixes == ["constraints.share.", "decoder.", "schedule."]


class Inside(Settings):
    """A table inside."""

    width: int = Field(default=3, ge=1, le=9)
    """The width."""


class Below(Settings):
    """Settings with a base."""

    kept: float = Field(default=0.5, gt=0.0)
    """The meaning of ``kept``,
    over two lines."""


class Own(Below):
    """Settings of somebody's own.

    More of them.
    """

    flag: bool = False
    """A flag."""
    names: tuple[str, ...] = ()
    """A list."""
    programs: tuple[Literal["one", "other"], ...] = ()
    """A list of a few."""
    places: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """A list of numbers with a limit."""
    number: int = Field(default=1, le=2**63 - 1)
    """One that no float has."""
    path: str
    """Without a default."""
    open: int | None = None
    """As many as there are, where it is unset."""
    weights: dict[str, float] = Field(default_factory=lambda: {"a": 0.5})
    """A table that is made anew each time."""
    either: int | Literal["all", "none"] = 3
    """A number or a word."""
    share: float = Field(default=0.1, gt=0.25, lt=1, multiple_of=0.5)
    """With several limits."""
    inside: Inside = Inside(width=5)
    """Its settings are listed, and not this line."""
    only_with: ClassVar = {"flag": config.OnlyWith("kept", values=(1.0,))}


def test_a_setting_is_described_by_its_field() -> None:
    found = {setting.key: setting for setting in describe_settings(Own)}
    assert list(found) == [
        "kept", "flag", "names", "programs", "places", "number", "path", "open", "weights",
        "either", "share", "inside.width",
    ]  # fmt: skip
    assert found["kept"] == Setting(
        key="kept", type="number", range="above 0", default=0.5, meaning="The meaning of kept, over two lines."
    )
    assert (found["flag"].values, found["flag"].default_text) == ("true or false", "false")
    assert found["flag"].read_with == "kept=1.0"
    assert (found["names"].values, found["programs"].values) == ("list of texts", "list of one | other")
    assert found["places"].values == "list of whole numbers"
    assert found["number"].range == "9223372036854775807 or less"
    assert (found["names"].values, found["names"].default_text) == ("list of texts", "[]")
    assert (found["path"].required, found["path"].default_text) == (True, "required")
    assert (found["open"].values, found["open"].default_text) == ("whole number", "unset")
    assert (found["weights"].values, found["weights"].default_text) == ("table", '{"a": 0.5}')
    assert (found["either"].type, found["either"].values) == ("whole number or one of", "all | none")
    assert (found["share"].values, found["share"].default) == ("number, above 0.25, below 1, a multiple of 0.5", 0.1)
    assert found["kept"].told == found["kept"].meaning
    assert (found["path"].values, found["path"].default) == ("text", None)
    assert found["flag"].told == "A flag. Read with kept=1.0 only."
    inner = found["inside.width"]
    assert (inner.default, inner.values, inner.meaning) == (5, "whole number, 1 or more, 9 or less", "The width.")
    assert summary_of(Own) == "Settings of somebody's own."


def test_the_table_of_a_variant_has_values_defaults_and_meanings() -> None:
    result = runner.invoke(app, ["settings", "decoder", "sdlm"])
    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if "decoder.normalisation" in line)
    assert row.split()[1:5] == ["left", "|", "symmetric", "left"]
    assert "C[k, s]" in row
    assert "``" not in result.stdout


def test_meanings_call_what_is_unset_as_the_default_does() -> None:
    for slot in settings_slots():
        for name in slot.variants or [""]:
            for setting in settings_table(slot.slot, name).settings:
                assert "None" not in setting.meaning, setting


def test_json_has_what_the_table_has() -> None:
    found = json.loads(runner.invoke(app, ["settings", "task", "headline", "--json"]).stdout)
    assert found["slot"] == "task"
    beam = next(setting for setting in found["settings"] if setting["key"] == "search.beam_size")
    assert (beam["default"], beam["type"], beam["range"]) == (5, "whole number", "1 or more, 1000 or less")
    slots = json.loads(runner.invoke(app, ["settings", "--json"]).stdout)["slots"]
    assert next(slot for slot in slots if slot["slot"] == "encoder")["usual"] == "lstm"
    variants = json.loads(runner.invoke(app, ["settings", "search", "--json"]).stdout)["variants"]
    assert set(variants) >= {"genetic", "pso"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["decodr"], "did you mean 'decoder'"),
        (["sdlm"], "it is a name in decoder: sememekit settings decoder sdlm"),
        (["decoder", "sdml"], "did you mean 'sdlm'"),
        (["schedule", "usual"], "has no variants; type: sememekit settings schedule"),
    ],
)
def test_a_wrong_name_is_told_with_the_right_one(arguments: list[str], message: str) -> None:
    result = runner.invoke(app, ["settings", *arguments])
    assert result.exit_code == 1
    assert message in result.stderr


def test_a_variant_must_be_named_in_python() -> None:
    with pytest.raises(ConfigError, match=r"name one of its variants: .*lstm"):
        settings_table("encoder")


def test_settings_of_a_class_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = (
        "from sememekit.decoders.softmax import Softmax",
        "class Mine(Softmax):",
        '    """Mine."""',
        "    class Settings(Softmax.Settings):",
        "        heat: float = 2.0",
        '        """How hot."""',
    )
    Path("lab_settings_here.py").write_text("\n".join(lines) + "\n")
    result = runner.invoke(app, ["settings", "decoder", "lab_settings_here:Mine"])
    assert result.exit_code == 0, result.stderr
    assert "How hot." in result.stdout
    assert "decoder.tied" in result.stdout


def completed(line: str) -> list[str]:
    environment = {
        "_SEMEMEKIT_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_ARGS": f"sememekit {line}",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    return runner.invoke(app, [], env=environment, prog_name="sememekit").stdout.split()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("train --set dec", ["decoder."]),
        ("train --set decoder.b", ["decoder.bias_start=", "decoder.bias="]),
        ("train --decoder sdlm --set decoder.num", ["decoder.num_bases="]),
        ("train --set decoder.name=mos --set decoder.num", ["decoder.num_components="]),
        ("train --recipe sdlm/awd-softmax --set encoder.weight", ["encoder.weight_drop="]),
        ("train --set encoder.injection=c", ["encoder.injection=concat", "encoder.injection=cell"]),
        ("train --set encoder.name=g", ["encoder.name=gru"]),
        ("sweep --set schedule.reload_best=", ["schedule.reload_best=true", "schedule.reload_best=false"]),
        ("train --set optimizer.name=a", ["optimizer.name=adam", "optimizer.name=adagrad"]),
        ("train --set nothing.", []),
        ("train --decoder no_such --set decoder.", []),
        ("attack x --set constraints.pr", ["constraints.protected."]),
        ("attack x --set constraints.share.at", ["constraints.share.at_least="]),
        ("attack x --search pso --set search.sp", ["search.speed="]),
        ("evaluate-ppl run --set cache.th", ["cache.theta="]),
        ("generate run --set task.search.beam", ["task.search.beam_size="]),
        ("build-sememe-graph --source hown", ["hownet:", "hownet2000:"]),
        ("preprocess plain --lexicon ope", ["open", "openhownet"]),
        ("evaluate-ppl run --split t", ["train", "test"]),
        ("settings enc", ["encoder"]),
        ("settings encoder la", ["lattice_lstm"]),
    ],
)
def test_the_shell_completes_settings_lexicons_and_splits(line: str, found: list[str]) -> None:
    assert completed(line) == found


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (["train", "--set", "encoder.injection", "=", "c"], ["concat", "cell"]),
        (["train", "--set", "encoder.injection", "="], ["none", "concat", "gate", "cell"]),
        (["train", "--set", "decoder.name", "=", "mos", "--set", "decoder.num"], ["decoder.num_components="]),
        (["train", "--decoder", "=", "sd"], ["sdlm"]),
        (["train", "--decod"], ["--decoder"]),
        (["build-sememe-graph", "--source", "hownet", ":", "g"], ["glossary.dat"]),
        (["build-sememe-graph", "--source", "hownet", ":"], ["glossary.dat"]),
        (["evaluate-ppl", "run", "--split", ""], ["train", "valid", "test"]),
    ],
)
def test_bash_breaks_words_at_marks(
    typed: list[str], found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bash hands over the parts of a word, and puts what is printed in the place of the last part."""
    monkeypatch.chdir(tmp_path)
    Path("glossary.dat").touch()
    words = ["sememekit", *typed]
    environment = {
        "_SEMEMEKIT_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    assert runner.invoke(app, [], env=environment, prog_name="sememekit").stdout.split() == found


def test_the_shell_completes_the_file_of_a_lexicon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("glossary.dat").touch()
    Path("folder").mkdir()
    Path("folder/more.txt").touch()
    assert completed("build-sememe-graph --source hownet:g") == ["hownet:glossary.dat"]
    assert completed("build-sememe-graph --source hownet:") == ["hownet:folder/", "hownet:glossary.dat"]
    assert completed("build-sememe-graph --source hownet:folder/") == ["hownet:folder/more.txt"]
