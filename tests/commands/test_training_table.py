"""From flags to the table of a run: the recipe, then variants and things, then overrides."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sememekit.commands import attack
from sememekit.commands._program import app
from sememekit.commands._typed_table import typed_table

RECIPE = """# A recipe.
[data]
path = "data/pd"
prepare = "sememekit preprocess peoples-daily --out data/pd"
[encoder]
name = "lstm"
hidden_size = 650
[decoder]
name = "softmax"
tied = false
[run]
seed = 5
"""
runner = CliRunner()


def training_table(recipe: str | None = None, overrides: list[str] | None = None, **values: object) -> dict[str, Any]:
    named = {slot: values.pop(slot) for slot in ("encoder", "decoder") if slot in values}
    return typed_table(recipe, overrides, named, {name.replace("__", "."): value for name, value in values.items()})


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return str(path)


def test_flags_come_after_the_recipe_and_overrides_last(recipe: str) -> None:
    typed = {"decoder": "sdlm", "encoder": "lstm", "data__path": Path("other"), "graph__path": Path("pd.graph")}
    typed |= {"clusters__path": Path("words.json"), "run__seed": 7, "run__device": "cpu", "run__dtype": None}
    overrides = ["encoder.hidden_size=16", "run.seed=8", "decoder.num_bases=2"]
    table = training_table(recipe=recipe, overrides=overrides, **typed)
    assert table["encoder"] == {"name": "lstm", "hidden_size": 16}
    assert table["decoder"] == {"name": "sdlm", "num_bases": 2}
    assert table["data"] == {"path": "other", "prepare": "sememekit preprocess peoples-daily --out data/pd"}
    assert table["graph"] == {"path": "pd.graph"}
    assert table["clusters"] == {"path": "words.json"}
    assert table["run"] == {"seed": 8, "device": "cpu"}


def test_without_recipe_and_flags_the_table_is_empty() -> None:
    assert training_table(recipe=None, overrides=None) == {}


def test_the_plan_is_printed_whole(recipe: str) -> None:
    result = runner.invoke(app, ["train", "--recipe", recipe, "--print-plan", "--set", "encoder.num_layers=1"])
    assert (result.exit_code, result.stderr) == (0, "")
    plan = json.loads(result.stdout)
    assert plan["encoder"]["num_layers"] == 1
    assert plan["decoder"] == {**plan["decoder"], "name": "softmax", "tied": False}
    assert plan["task"]["name"] == "language_model"


def test_a_printed_plan_trains_the_same(recipe: str, tmp_path: Path) -> None:
    """The plan given back as a recipe resolves to itself."""
    from sememekit.jobs.recipes import toml_text
    from sememekit.runs.plan import read_plan

    plan = read_plan(training_table(recipe=recipe), "mine").table()
    again = tmp_path / "again.toml"
    again.write_text("# Again.\n" + toml_text(plan), encoding="utf-8")
    assert read_plan(training_table(recipe=str(again)), "again").table() == plan


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["--recipe", "ours/pd-sofmax"], ["ours/pd-sofmax", "did you mean 'ours/pd-softmax'"]),
        (["--decoder", "sofmax"], ["decoder 'sofmax'", "did you mean 'softmax'"]),
        (["--set", "encoder.hiden_size=3"], ["[encoder]", "'hiden_size'", "did you mean 'hidden_size'"]),
        (["--set", "encodr.hidden_size=3"], ["'encodr'", "did you mean 'encoder'"]),
        (["--set", "schedule.epochs=many"], ["[schedule]", "'epochs'", "'many'"]),
        (["--decoder", "no.such.module:Thing"], ["no.such.module"]),
    ],
)
def test_a_wrong_setting_gives_one_clear_line(arguments: list[str], fragments: list[str]) -> None:
    result = runner.invoke(app, ["train", *arguments, "--print-plan"])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert all(fragment in result.stderr for fragment in fragments), result.stderr


def test_a_variant_chosen_with_set_keeps_what_the_flags_say() -> None:
    """The file of --vectors goes into the slot whose variant --set chooses; one must not erase the other."""
    overrides = ["task.name=nli", "encoder.dropout=0.5", "encoder.name=bilstm"]
    table = training_table(encoder="gru", task__vectors=Path("glove.txt"), overrides=overrides)
    assert table["task"] == {"name": "nli", "vectors": "glove.txt"}
    assert table["encoder"] == {"name": "bilstm", "dropout": 0.5}
    vectors = {("embedding", "path", "similarity.path"): Path("glove.txt")}
    overrides = ["candidates.delta=0.4", "candidates.name=embedding"]
    table = attack._table(partial(typed_table, None, overrides, {}), {}, vectors, None)
    assert table["candidates"] == {"name": "embedding", "path": "glove.txt", "delta": 0.4}
    assert "constraints" not in table
    assert attack._table(partial(typed_table, None, [], {}), {}, vectors, None) == {
        "constraints": {"similarity": {"path": "glove.txt"}}
    }
