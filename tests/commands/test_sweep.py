"""sweep: what is tried, the budget, pruning, going on, and the recipe of the best; processes are threads here."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.commands.sweep import _all_failed
from sememekit.config import load_recipe
from sememekit.data.prepared import PreparedData
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.files import sole_writer
from sememekit.jobs.space import Space, combinations_of, overrides_of, read_spaces
from sememekit.jobs.study import Study, TrialReport
from sememekit.jobs.sweep import SweepReport, sweep
from sememekit.jobs.train import train
from sememekit.tasks.base import PrimaryMetric
from sememekit.training import RunFolder
from tests.commands.processes import play_processes
from tests.small_run import Place

pytest.importorskip("optuna", reason="the extra 'sweep' is not installed")
runner = CliRunner()
RATES = "optimizer.learning_rate=log:0.2..4.0"
WIDTH = "encoder.hidden_size,task.embedding_size"
"""One value for both, which a tied output layer wants."""


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> None:
    play_processes(monkeypatch)


def swept(place: Place, out: Path, *over: str, **more: Any) -> SweepReport:
    more = {"trials": 3, "jobs": 1, "seed": 1, **more}
    plan = {"task__chunk_length": 15, **more.pop("plan", {})}  # ten steps an epoch
    return sweep(place.table(**plan), out, over or (RATES,), **more)


@pytest.mark.parametrize(
    ("text", "space"),
    [
        ("a.b=1,2,3", Space("a.b", (1, 2, 3), False)),
        ("a.b=x, y", Space("a.b", ("x", "y"), False)),
        ("a.b=true,false", Space("a.b", (True, False), False)),
        ("a.b=0.1,0.3", Space("a.b", (0.1, 0.3), False)),
        ("a .b = 2..6", Space("a.b", (2, 6), True)),
        ("a.b=2..6", Space("a.b", (2, 6), True)),
        ("a.b=0.5..40", Space("a.b", (0.5, 40), True)),
        ("a.b.c=log:1e-4..0.1", Space("a.b.c", (1e-4, 0.1), True, True)),
        ("a.b=log:64..512", Space("a.b", (64, 512), True, True)),
        ("a.b=-1.5..2", Space("a.b", (-1.5, 2), True)),
    ],
)
def test_what_over_says(text: str, space: Space) -> None:
    text = text.replace("a.b", "encoder.b").replace("a .b", "encoder .b")
    assert read_spaces([text]) == [Space(space.key.replace("a.b", "encoder.b"), space.values, space.is_range, space.log)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("encoder.b", "expected KEY=a,b,c for values"),
        ("drop=1,2", r"expected KEY=a,b,c for values.*log:0\.5\.\.40$"),
        ("dropout=1,2", r"expected KEY=a,b,c for values.* \(did you mean 'encoder\.dropout=1,2'\?\)"),
        ("lr=log:1..2", r"did you mean 'optimizer\.learning_rate=log:1\.\.2'"),
        ("encoder.b=3", r"two different values at least, each once; to set one value use --set encoder\.b=VALUE"),
        ("encoder.b=3,3", "two different values at least"),
        ("encoder.b=5..2", "a range has two numbers, the smaller one first"),
        ("encoder.b=log:0..2", "above 0 where logarithms are drawn"),
        ("encoder.b=a..b", "a range has two numbers"),
        ("encoder.b=log:1,2", r"log: is for ranges; write encoder\.b=log:LOW\.\.HIGH, or encoder\.b=1,2"),
        ("encodr.b=1,2", "unknown slot 'encodr'"),
    ],
)
def test_what_over_refuses(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_spaces([text])
    with pytest.raises(ConfigError, match=r"--over encoder\.b is given twice"):
        read_spaces(["encoder.b=1,2", "task.c,encoder.b=3,4"])


def test_values_that_lie_in_a_space() -> None:
    assert [Space("k", (1, 4), True).has(value) for value in (1, 2.5, 4, 5, True, "2", None)] == [True] * 3 + [False] * 4
    assert [Space("k", (1, True, "x"), False).has(value) for value in (1, True, "x", "1", 2)] == [True] * 3 + [False] * 2
    assert read_spaces(["encoder.b , task.c=1,2"]) == [Space("encoder.b,task.c", (1, 2), False)]
    assert overrides_of({"a.b,g.h": 3}) == ["a.b=3", "g.h=3"]
    assert overrides_of({"a.b": True, "c.d": 0.1, "e.f": "x"}) == ["a.b=true", "c.d=0.1", "e.f=x"]


def test_trials_are_runs_and_the_best_is_a_recipe(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = set[str]()
    tokens = PreparedData.tokens

    def noted(self: PreparedData, split: str) -> Any:
        read.add(split)
        return tokens(self, split)

    monkeypatch.setattr(PreparedData, "tokens", noted)
    out = tmp_path / "sweep"
    report = swept(place, out, RATES, f"{WIDTH}=4,6,8", pruning=False)
    assert read == {"train", "valid"}, "test data are never read"
    assert (report.budget, report.metric, report.stopped, len(report.trials)) == ("3 trials", "perplexity", False, 3)
    values = [trial.valid for trial in report.trials]
    assert values == sorted(values)  # type: ignore[type-var]
    assert {trial.number for trial in report.trials} == {1, 2, 3}
    assert [trial.settings for trial in report.trials if trial.number == 1] == [{"optimizer.learning_rate": 4.0, WIDTH: 6}], (
        "the first is the plan as it is"
    )
    for trial in report.trials:
        folder = RunFolder.open(Path(trial.run))
        assert folder.plan["optimizer"]["learning_rate"] == trial.settings["optimizer.learning_rate"]
        assert folder.plan["encoder"]["hidden_size"] == folder.plan["task"]["embedding_size"] == trial.settings[WIDTH]
        assert folder.plan["run"]["threads"] == 1
        epochs = [record for record in folder.metrics() if record["kind"] == "EpochReport"]
        assert trial.valid == min(record["valid"]["perplexity"] for record in epochs)
        assert (trial.state, trial.epochs, len(epochs)) == ("done", 2, 2)
        assert trial.cpu_seconds > 0
    assert report.cpu_minutes == pytest.approx(sum(trial.cpu_seconds for trial in report.trials) / 60)
    text = (out / "best.toml").read_text(encoding="utf-8")
    assert text.startswith(f"# Best of 3 trials of a sweep: trial {report.trials[0].number}, validation perplexity ")
    again = train({**load_recipe(str(out / "best.toml")), "run": {**place.table()["run"]}}, tmp_path / "again")
    assert again.best_valid == report.trials[0].valid
    assert json.loads((out / "report.json").read_text(encoding="utf-8")) == report.model_dump(mode="json")


def test_an_interrupted_sweep_goes_on_and_proposes_the_same(place: Place, tmp_path: Path) -> None:
    whole = swept(place, tmp_path / "whole", trials=6, pruning=False)
    seen = 0

    def stop() -> bool:
        nonlocal seen
        seen += 1
        return seen > 3

    first = swept(place, tmp_path / "parts", trials=6, pruning=False, should_stop=stop)
    assert first.stopped
    assert len(first.trials) < 6
    second = swept(place, tmp_path / "parts", trials=6, pruning=False)
    assert not second.stopped
    assert [trial.settings for trial in second.trials] == [trial.settings for trial in whole.trials]
    assert [trial.valid for trial in second.trials] == [trial.valid for trial in whole.trials]
    more = swept(place, tmp_path / "parts", trials=7, pruning=False)
    assert (more.budget, len(more.trials)) == ("7 trials", 7)
    assert len(swept(place, tmp_path / "parts", trials=5, pruning=False).trials) == 7, "nothing is taken away"
    stored = json.loads((tmp_path / "parts" / "sweep.json").read_text(encoding="utf-8"))
    with pytest.raises(ConfigError, match="--seed is 1 there, given 2; choose another --out, or type the command as before"):
        swept(place, tmp_path / "parts", seed=2, pruning=False)
    with pytest.raises(ConfigError, match=r"settings: --over is optimizer\.\S+ there, given encoder.hidden_size=4,6; choose"):
        swept(place, tmp_path / "parts", "encoder.hidden_size=4,6", pruning=False)
    other = {"encoder": {**place.table()["encoder"], "hidden_size": 8}, "decoder": {"name": "mos", "num_components": 2}}
    (tmp_path / "parts" / "sweep.json").write_text(json.dumps({**stored, "table": {**stored["table"], **other}}))
    told = r"other settings: decoder.name is 'mos' there, given 'softmax'; encoder.hidden_size is 8 there, given 6; choose"
    with pytest.raises(ConfigError, match=told):
        swept(place, tmp_path / "parts", pruning=False)
    for content, message in (
        ("[1]", "holds no JSON object; choose another --out"),
        ('{"table": {}}', "lacks over, seed"),
        (json.dumps({**stored, "table": 3}), "has no table of settings"),
    ):
        (tmp_path / "parts" / "sweep.json").write_text(content)
        with pytest.raises(DataError, match=message):
            swept(place, tmp_path / "parts")
    (tmp_path / "parts" / "sweep.json").unlink()
    with pytest.raises(DataError, match=r"sweep\.json is missing beside study\.db"):
        swept(place, tmp_path / "parts")


def test_no_settings_are_tried_twice_and_the_sweep_ends_with_the_last(place: Place, tmp_path: Path) -> None:
    over = ("encoder.dropout=0.0,0.1,0.2", "schedule.grace=1..2")
    plan = {"schedule__epochs": 1, "encoder__dropout": 0.1}
    six = swept(place, tmp_path / "six", *over, trials=9, plan=plan)
    settings = [tuple(trial.settings.values()) for trial in six.trials]
    assert sorted(settings) == [(dropout, patience) for dropout in (0.0, 0.1, 0.2) for patience in (1, 2)]
    assert (six.exhausted, six.budget) == (True, "9 trials")
    first = swept(place, tmp_path / "parts", *over, trials=4, plan=plan)
    whole = swept(place, tmp_path / "parts", *over, trials=9, plan=plan)
    assert (len(first.trials), first.exhausted, whole.exhausted) == (4, False, True)
    assert by_number(whole) == by_number(six), "in parts the same are proposed"


def by_number(report: SweepReport) -> dict[int, Any]:
    return {trial.number: trial.settings for trial in report.trials}


def test_a_range_with_fractions_has_no_end() -> None:
    ints, values, fractions = read_spaces(["encoder.b=1..2", "encoder.c=x,y", "encoder.d=0.1..0.2"])
    assert combinations_of([ints, values]) == [
        {"encoder.b": 1, "encoder.c": "x"},
        {"encoder.b": 1, "encoder.c": "y"},
        {"encoder.b": 2, "encoder.c": "x"},
        {"encoder.b": 2, "encoder.c": "y"},
    ]
    assert combinations_of([ints, fractions]) is None
    assert combinations_of([Space("a.b", (1, 1000), True), Space("a.c", (1, 1000), True)]) is None


def test_a_trial_that_is_worse_than_the_median_is_pruned(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("sememekit.jobs.trainings.Trainings.stop", lambda self, *names: asked.extend(names))
    plan = {"schedule__epochs": 3}
    swept(place, tmp_path / "all", "optimizer.learning_rate=0.001..4.0", trials=8, plan=plan)
    assert asked, "a rate of a thousandth learns nothing"
    stored = {
        trial.number
        for trial in swept(place, tmp_path / "all", "optimizer.learning_rate=0.001..4.0", trials=8, plan=plan).trials
    }
    assert stored == set(range(1, 9))
    assert {int(name.removeprefix("trial-")) for name in asked} <= set(range(5, 9)), "the first four are never pruned"
    asked.clear()
    swept(place, tmp_path / "none", "optimizer.learning_rate=0.001..4.0", trials=6, plan=plan, pruning=False)
    assert asked == []


def test_the_cpu_budget_begins_no_further_trial(place: Place, tmp_path: Path) -> None:
    report = swept(place, tmp_path / "sweep", trials=None, cpu_minutes=0.0001, pruning=False)
    assert (report.budget, len(report.trials)) == ("0.0001 CPU minutes", 1)
    assert report.cpu_minutes > 0.0001
    assert swept(place, tmp_path / "sweep", trials=None, cpu_minutes=0.0001, pruning=False).trials == report.trials


def test_a_training_that_diverges_is_a_trial_that_failed(place: Place, tmp_path: Path) -> None:
    report = swept(place, tmp_path / "sweep", "optimizer.learning_rate=4.0,1e30", trials=5)
    failed = [trial for trial in report.trials if trial.state == "failed"]
    assert failed, "four draws of two values, after the plan as it is"
    assert all(trial.valid is None and "start again with a lower rate" in trial.why for trial in failed)
    assert all(trial.cpu_seconds > 0 for trial in failed), "or a budget of CPU time is never spent"
    assert report.trials[0].state == "done"


def test_a_sweep_that_was_killed_counts_the_epochs_it_did_not_hear_of(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    out.mkdir()
    table = place.table(schedule__epochs=2)
    (space,) = read_spaces(["encoder.hidden_size=4,6"])
    budget = {"trials": None, "cpu_seconds": 5.0, "pruning": False}
    killed = Study(out, table, [space], seed=1, **budget)
    trial = killed._ask()
    train(table, out / "trial-0001")
    told = sum(
        record["cpu_seconds"] for record in RunFolder.open(out / "trial-0001").metrics() if record["kind"] == "EpochReport"
    )
    later = Study(out, table, [space], seed=1, **budget)
    later.metric = PrimaryMetric("perplexity", lower_is_better=True)
    later._catch_up(trial)
    assert later.spent() == pytest.approx(told)
    assert later.report_of(later.study.trials[0]).epochs == 2


def test_a_damaged_study_is_refused_by_name(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    out.mkdir()
    (space,) = read_spaces(["encoder.hidden_size=4,6"])
    budget = {"trials": 2, "cpu_seconds": None, "pruning": False}
    study = Study(out, place.table(), [space], seed=1, **budget)
    trial = study._ask()
    trial.set_user_attr("why", "a reason")
    whole = (out / "study.db").read_bytes()
    study.study._storage._backend.engine.dispose()
    damages: dict[str, bytes] = {
        "header": b"text" + whole[4:],
        "state": whole.replace(b"RUNNING", b"RUNNINH"),
        "attribute": whole.replace(b'"a reason"', b'"a reason\xff'),
        "half": whole[: len(whole) // 2],
    }
    for name, content in damages.items():
        assert content != whole, name
        (out / "study.db").write_bytes(content)
        with pytest.raises(DataError, match=r"study\.db: holds no trials that can be read .* or choose another --out"):
            Study(out, place.table(), [space], seed=1, **budget)
    (out / "study.db").unlink()
    (out / "study.db").mkdir()
    with pytest.raises(DataError, match=r"study\.db is no regular file"):
        Study(out, place.table(), [space], seed=1, **budget)


def test_a_figure_that_was_typed_into_the_study_is_refused(place: Place, tmp_path: Path) -> None:
    out, table, over = tmp_path / "sweep", place.table(schedule__epochs=1), ["encoder.hidden_size=4,6"]
    swept, metrics = sweep(table, out, over, trials=1, jobs=1), out / "trial-0001" / "metrics.jsonl"
    change = "UPDATE trial_intermediate_values SET intermediate_value = 1.5"
    assert sqlite3.connect(out / "study.db", isolation_level=None).execute(change).rowcount == 1
    with pytest.raises(DataError, match=rf"says perplexity 1\.5 of epoch 1 of trial 1, .*jsonl {swept.trials[0].valid:g}"):
        sweep(table, out, over, trials=2, jobs=1)
    os.mkfifo(metrics.rename(out / "moved").with_name("trial-0001") / "metrics.jsonl")
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl is no regular file"):
        sweep(table, out, over, trials=2, jobs=1)


def test_a_wrong_key_or_value_is_found_before_anything_is_trained(place: Place, tmp_path: Path) -> None:
    for over, message in (
        ("encoder.hiden_size=2,4", "unknown key 'hiden_size'"),
        ("encoder.hidden_size=4,-2", r"--over encoder\.hidden_size=-2"),
        ("task.input_dropout=0.1..1.5", r"--over task\.input_dropout=1\.5"),
    ):
        with pytest.raises(ConfigError, match=message):
            swept(place, tmp_path / "sweep", over)
    assert not (tmp_path / "sweep").exists()


def test_two_sweeps_do_not_write_one_folder(place: Place, tmp_path: Path) -> None:
    def busy(holder: str) -> Exception:
        return AssertionError(holder)

    (tmp_path / "sweep").mkdir()
    with sole_writer(tmp_path / "sweep" / ".lock", busy), pytest.raises(ConfigError, match="is being written by another sweep"):
        swept(place, tmp_path / "sweep")
    assert not (tmp_path / "sweep" / "study.db").exists()


def test_without_the_extra_it_says_what_to_install(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"pip install .sememekit\[sweep\]."):
        swept(place, tmp_path / "sweep")


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("--over", RATES), "a budget is needed, --trials or --cpu-minutes; neither is given"),
        (("--over", RATES, "--trials", "2", "--cpu-minutes", "1"), "both are given"),
        (("--trials", "2"), "missing option '--over'"),
    ],
)
def test_what_is_typed_wrongly(place: Place, tmp_path: Path, typed: tuple[str, ...], message: str) -> None:
    done = runner.invoke(app, ["sweep", "--data", str(place.data.folder), "--out", str(tmp_path / "out"), *typed])
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr


def test_what_is_typed_and_printed(place: Place, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text("[task]\nembedding_size = 4\nbatch_size = 4\n[encoder]\nhidden_size = 4\n[run]\nstall_epochs = 0\n")
    typed = [
        "sweep",
        "--recipe",
        str(recipe),
        "--data",
        str(place.data.folder),
        "--out",
        str(tmp_path / "out"),
        "--over",
        RATES,
    ]
    done = runner.invoke(app, [*typed, "--trials", "2", "--epochs", "1", "--jobs", "1", "--seed", "3"])
    assert done.exit_code == 0, done.stderr
    assert "budget 2 trials" in done.stdout
    assert "optimizer.learning_rate=" in done.stdout
    assert "best.toml" in done.stdout
    plan = RunFolder.open(tmp_path / "out" / "trial-0002").plan
    assert (plan["schedule"]["epochs"], plan["task"]["embedding_size"], plan["run"]["seed"]) == (1, 4, 1)
    assert plan["run"]["threads"] == 1


def test_a_sweep_whose_trials_all_fail_is_an_error_that_says_why(place: Place, tmp_path: Path) -> None:
    sizes = ["--set", "task.embedding_size=8", "--set", "encoder.hidden_size=8", "--set", "task.batch_size=4"]
    typed = ["sweep", "--data", str(place.data.folder), "--epochs", "1", "--jobs", "1", *sizes, "--over"]
    out = tmp_path / "out"
    done = runner.invoke(app, [*typed, "encoder.hidden_size=4,6,12", "--out", str(out), "--trials", "3"])
    assert done.exit_code == 1
    assert f"sememekit: error: {out}: all 3 trials failed: " in done.stderr
    assert "8" in done.stderr, "the reason"
    assert done.stderr.rstrip().endswith("; change --over or --set, and choose another --out")
    assert "validation validation" not in done.stdout
    assert "3 trials, all combinations of --over, " in done.stdout
    assert not (out / "best.toml").exists()
    again = runner.invoke(app, [*typed, "encoder.hidden_size=4,6,12", "--out", str(out), "--trials", "3", "--json"])
    assert (again.exit_code, json.loads(again.stdout)["best"]) == (1, None)
    one = runner.invoke(app, [*typed, "encoder.hidden_size=4,6", "--out", str(tmp_path / "one"), "--trials", "1"])
    assert (one.exit_code, "the only trial failed: " in one.stderr) == (1, True)
    assert "budget 1 trial\n" in one.stdout
    assert "\n1 trial, " in one.stdout


def test_a_sweep_of_which_one_trial_is_done_is_none_that_failed(place: Place, tmp_path: Path) -> None:
    sizes = ["--set", "task.embedding_size=8", "--set", "encoder.hidden_size=8", "--set", "task.batch_size=4"]
    sizes += ["--set", "optimizer.learning_rate=2", "--set", "run.stall_epochs=0"]
    typed = ["--data", str(place.data.folder), "--out", str(tmp_path / "out"), "--epochs", "1", "--jobs", "1", *sizes]
    done = runner.invoke(app, ["sweep", *typed, "--over", "encoder.hidden_size=4,6,8", "--trials", "4"])
    assert done.exit_code == 0, done.stderr
    assert "validation perplexity" in done.stdout
    assert "failed: " in done.stdout


def test_of_several_reasons_the_most_frequent_is_told() -> None:
    def failed(number: int, why: str) -> TrialReport:
        return TrialReport(number=number, run="r", settings={}, state="failed", valid=None, epochs=0, cpu_seconds=1, why=why)

    trials = (failed(1, "a"), failed(2, "b"), failed(3, "b"))
    ended = {"stopped": False, "exhausted": False}
    report = SweepReport(out="o", budget="3 trials", metric="", cpu_minutes=1, trials=trials, best=None, **ended)
    assert str(_all_failed(report)) == (
        "o: all 3 trials failed: b (so 2 of them; o/report.json has the others); change --over or --set, and choose another "
        "--out"
    )
