"""train as a person types it: a model of a few hundred numbers, wrong things, and a signal."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.decoders import DECODERS
from sememekit.encoders import ENCODERS
from sememekit.signals import STOPPING
from sememekit.tasks import TASKS
from sememekit.training import EpochReport, Trainer
from sememekit.training.schedule import Schedule
from tests.commands.refusals import refusal
from tests.commands.small_flags import settings

runner = CliRunner()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with prepared data."""
    folder = tmp_path_factory.mktemp("train")
    (folder / "text.txt").write_text("今天 中国 贸易\n中国 今天 好\n" * 40, encoding="utf-8")
    done = runner.invoke(app, ["preprocess", "plain", str(folder / "text.txt"), "--out", str(folder / "data")])
    assert done.exit_code == 0, done.stderr
    return folder


def test_a_run_is_trained_reported_and_resumed(place: Path) -> None:
    train = ["train", "--data", str(place / "data"), "--out", str(place / "run"), "--seed", "3", "--json"]
    result = runner.invoke(app, [*train, *settings()])
    assert result.exit_code == 0, result.stderr
    assert [line.partition(":")[0] for line in result.stderr.splitlines()] == ["epoch 1", "epoch 2"]
    report = json.loads(result.stdout)
    assert {"run", "epochs", "best_valid", "tokens_per_second"} <= set(report)
    assert report["epochs"] == 2
    again = ["train", "--out", str(place / "run"), "--resume", "--set", "schedule.epochs=3"]
    result = runner.invoke(app, [*again, "--quiet"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "best valid" in result.stdout
    result = runner.invoke(app, again)
    assert result.exit_code == 0
    assert "nothing was trained" in result.stderr
    assert f"train --out {place / 'run'} --resume --set schedule.epochs=N" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["--out", "{out}"], ["--data"]),
        (["--data", "{absent}", "--out", "{out}"], ["absent"]),
        (["--data", "{data}", "--out", "{data}"], ["data", "exists"]),
        (["--data", "{data}", "--out", "{out}", "--decoder", "sdlm"], ["--graph"]),
        (["--data", "{data}", "--out", "{out}", "--decoder", "sdlm", "--graph", "{absent}"], ["absent"]),
        (["--out", "{absent}", "--resume"], ["absent"]),
        (["--data", "{data}", "--out", "{out}", "--set", "encoder.hidden_size=5"], ["task.embedding_size=5"]),
    ],
)
def test_a_wrong_thing_gives_one_clear_line(place: Path, tmp_path: Path, arguments: list[str], fragments: list[str]) -> None:
    names = {"absent": tmp_path / "absent", "out": tmp_path / "out", "data": place / "data"}
    told = refusal("train", *settings(), *(argument.format(**names) for argument in arguments))
    assert all(fragment in told for fragment in fragments), told


def test_a_signal_ends_the_run_with_75_and_says_how_to_go_on(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    arguments = ["train", "--data", str(place / "data"), "--out", str(out), *settings(schedule__epochs=100000)]
    begun = Trainer._end_epoch

    def signalled(trainer: Trainer, schedule: Schedule) -> Iterator[EpochReport]:
        signal.raise_signal(signal.SIGTERM)
        yield from begun(trainer, schedule)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_end_epoch", signalled)
        result = runner.invoke(app, arguments)
    assert result.exit_code == 75, result.stderr
    assert f"--out {out} --resume" in result.stderr
    assert {signal.getsignal(number) for number in STOPPING} == {signal.SIG_IGN}, "until the process has ended"
    epochs = json.loads((out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])["epoch"]
    result = runner.invoke(app, ["train", "--out", str(out), "--resume", "--set", f"schedule.epochs={epochs + 1}", "--json"])
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["epochs"] == epochs + 1


def test_a_second_signal_while_the_page_of_a_stopped_run_is_written_changes_nothing(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint is there already, and only the report is left to write."""
    monkeypatch.setattr("sememekit.signals.SAME_SIGNAL", -1.0)
    monkeypatch.setattr("sememekit.jobs.train.PAGE_EVERY", 1e9)
    out = tmp_path / "run"

    def signalled(*given: Any, **more: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    def stop(self: Trainer, schedule: Schedule) -> Iterator[EpochReport]:
        yield from begun(self, schedule)
        signal.raise_signal(signal.SIGTERM)

    begun = Trainer._end_epoch
    monkeypatch.setattr(Trainer, "_end_epoch", stop)
    monkeypatch.setattr("sememekit.jobs.train.write_report", signalled)
    result = runner.invoke(app, ["train", "--data", str(place / "data"), "--out", str(out), *settings(schedule__epochs=9)])
    assert result.exit_code == 75, result.stderr
    assert f"--out {out} --resume" in result.stderr


@pytest.mark.parametrize("command", ["seeds", "sweep", "attack"])
def test_commands_with_processes_ignore_signals_once_one_has_stopped_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """A process that loaded torch takes some tenths of a second to end after the last line is printed."""
    before = {number: signal.getsignal(number) for number in STOPPING}

    def stopped(*given: Any, **more: Any) -> SimpleNamespace:
        asked = more.get("should_stop") or more["asked_to_stop"]
        signal.raise_signal(signal.SIGTERM)
        assert asked()
        return SimpleNamespace(stopped=True, model_dump_json=lambda exclude=None: "{}", warnings=(), resume_command="r")

    where, arguments = {
        "seeds": ("seeds.train_seeds", ["train", "--seeds", "1,2", "--data", "x"]),
        "sweep": ("sweep.sweep", ["sweep", "--over", "optimizer.learning_rate=1,2", "--trials", "2"]),
        "attack": ("attack.attack", ["attack", "run", "--data", "x.tsv"]),
    }[command]
    monkeypatch.setattr(f"sememekit.jobs.{where}", stopped)
    result = runner.invoke(app, [*arguments, "--out", str(tmp_path / "out"), "--json"])
    assert (result.exit_code, "stopped by a signal" in result.stderr) == (75, True), result.stderr
    assert {signal.getsignal(number) for number in before} == {signal.SIG_IGN}


def test_what_changes_nothing_is_remarked_on(place: Path, tmp_path: Path) -> None:
    wanted = "encoder.sememe_dropout=0.3 changes nothing: it is read with injection other than none only"
    train = ["train", "--data", str(place / "data"), *settings(schedule__epochs=1, encoder__sememe_dropout=0.3)]
    result = runner.invoke(app, [*train, "--out", str(tmp_path / "one")])
    assert (result.exit_code, wanted in result.stderr) == (0, True)
    assert wanted in " ".join(result.stdout.split()), "the report has it, too"
    result = runner.invoke(app, [*train, "--out", str(tmp_path / "two"), "--quiet", "--json"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert wanted in json.loads(result.stdout)["remarks"][0]


def test_the_help_names_every_task_encoder_and_output_layer() -> None:
    shown = set(runner.invoke(app, ["train", "--help"], env={"COLUMNS": "160"}).stdout.replace(",", " ").split())
    assert {*TASKS, *ENCODERS, *DECODERS} <= shown
