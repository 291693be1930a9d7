"""The messages of preprocess and train on options and data that do not fit, with the next command to type."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app

runner = CliRunner()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    (folder / "text.txt").write_text("".join(f"老师 w{number} v{number} u{number}\n" for number in range(60)), encoding="utf-8")
    runner.invoke(app, ["preprocess", "plain", str(folder / "text.txt"), "--out", str(folder / "data"), "--min-count", "1"])
    return folder


def test_mostly_unknown_words_are_told(place: Path, tmp_path: Path) -> None:
    text, out = str(place / "text.txt"), str(tmp_path / "out")
    few = runner.invoke(app, ["preprocess", "plain", text, "--out", out, "--min-count", "5"])
    assert " of the tokens are unknown; for more words lower --min-count or raise --max-vocabulary" in few.stderr
    most = runner.invoke(app, ["preprocess", "plain", text, "--out", out, "--force", "--min-count", "1"])
    assert most.exit_code == 0
    assert "are unknown" not in most.stderr


def test_a_vocabulary_that_is_not_there_is_told_with_what_makes_one(place: Path, tmp_path: Path) -> None:
    given = ["--vocabulary", str(tmp_path / "no"), "--out", str(tmp_path / "out")]
    told = runner.invoke(app, ["preprocess", "plain", str(place / "text.txt"), *given]).stderr
    assert "no such folder; give a folder that 'sememekit preprocess --out' or 'sememekit train --out' wrote" in told


def test_an_option_of_other_tasks_is_named_as_it_was_typed(place: Path, tmp_path: Path) -> None:
    typed = ["train", "--data", str(place / "data"), "--out", str(tmp_path / "run"), "--vectors", "glove.txt"]
    told = runner.invoke(app, typed)
    assert told.exit_code == 1
    assert "--vectors is for --task classification or nli, and this is task 'language_model'; leave it out" in told.stderr
    assert "--vectors is for" not in runner.invoke(app, [*typed, "--task", "nli"]).stderr


def test_data_of_another_kind_are_told_before_sizes(place: Path, tmp_path: Path) -> None:
    typed = ["train", "--task", "headline", "--data", str(place / "data"), "--out", str(tmp_path / "run")]
    told = runner.invoke(app, [*typed, "--set", "task.embedding_size=32", "--set", "encoder.hidden_size=8"]).stderr
    assert "so its data are no pairs; write pairs with: sememekit preprocess gigaword" in told
