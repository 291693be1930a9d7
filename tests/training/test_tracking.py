"""Reports of a run reach other programs: which numbers, under which names, at which step, in which run."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.commands.train import TrackerName
from sememekit.errors import CheckpointError, ConfigError, TrainingError
from sememekit.jobs.train import train
from sememekit.runs.slots import describe_settings
from sememekit.training import RunSettings, tracking
from sememekit.training.metrics import ChangeReport, EpochReport, Report, StepReport, StopReport
from sememekit.training.tracking import TRACKERS, check_trackers, values_of
from tests.small_run import Place

EPOCH = EpochReport(1, 9, 2.5, {"perplexity": 12.0, "nats": 2.4}, 0.1, True, False, "", 1.0, 5.0)


@pytest.mark.parametrize(
    ("report", "told"),
    [
        (StepReport(1, 2, 3, 7, 1.5, 0.1, 90.0), {"train/nats": 1.5, "train/rate": 0.1, "train/tokens_per_second": 90.0}),
        (replace(EPOCH, estimated=True), {"valid/perplexity": 12.0, "valid/nats": 2.4, "epoch/train_nats_estimated": 2.5}),
        (EPOCH, {"valid/perplexity": 12.0, "valid/nats": 2.4, "epoch/train_nats": 2.5}),
        (ChangeReport(1, 4, {"moved": 2.0}), {"change/moved": 2.0}),
        (StopReport(1, 4, "step-00000004"), {}),
    ],
)
def test_the_numbers_of_a_report(report: Report, told: dict[str, float]) -> None:
    assert values_of(report) == told


def test_the_names_are_the_same_everywhere() -> None:
    choices = next(setting for setting in describe_settings(RunSettings) if setting.key == "track")
    assert choices.type == f"list of {' | '.join(TRACKERS)}"
    assert [name.value for name in TrackerName] == list(TRACKERS)


class FakeWandB(ModuleType):
    """The part of wandb that is called."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.begun: list[dict[str, Any]] = []
        self.told: list[tuple[dict[str, float], int]] = []
        self.ended = 0

    def init(self, **given: Any) -> Any:
        self.begun.append(given)
        return SimpleNamespace(
            id=given.get("id", "first"), log=lambda values, step: self.told.append((values, step)), finish=self.end
        )

    def end(self) -> None:
        self.ended += 1


class FakeMLflow(ModuleType):
    """The part of mlflow that is called."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.calls: list[tuple[Any, ...]] = []
        self.experiments: dict[str, str] = {}

    def MlflowClient(self) -> Any:
        def create_experiment(name: str) -> str:
            self.experiments[name] = f"of {name}"
            return self.experiments[name]

        def get_experiment_by_name(name: str) -> Any:
            return SimpleNamespace(experiment_id=self.experiments[name]) if name in self.experiments else None

        return SimpleNamespace(
            get_experiment_by_name=get_experiment_by_name,
            create_experiment=create_experiment,
            create_run=lambda experiment, run_name: SimpleNamespace(info=SimpleNamespace(run_id=f"{run_name} in {experiment}")),
            log_param=lambda number, key, value: self.calls.append(("param", number, key, value)),
            log_metric=lambda number, name, value, step: self.calls.append(("metric", number, name, value, step)),
            set_terminated=lambda number: self.calls.append(("end", number)),
        )


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tracker is installed but those that a test puts there."""
    monkeypatch.setattr(
        tracking, "find_spec", lambda name: True if name in ("wandb", "mlflow") and name in sys.modules else None
    )
    for name in ("WANDB_PROJECT", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)


def test_wandb_gets_a_run_with_its_plan_and_a_resumed_one_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: None
) -> None:
    fake = FakeWandB()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    with tracking.tracking(["wandb"], tmp_path, {"run": {"seed": 3}}) as tell:
        tell(EPOCH)
        tell(StopReport(1, 9, "step-00000009"))
    assert fake.begun == [{"project": "sememekit", "name": tmp_path.name, "dir": str(tmp_path), "config": {"run": {"seed": 3}}}]
    assert fake.told == [({"valid/perplexity": 12.0, "valid/nats": 2.4, "epoch/train_nats": 2.5}, 9)]
    assert json.loads((tmp_path / "tracking.json").read_text()) == {"wandb": "first"}
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    with tracking.tracking(["wandb"], tmp_path, {}):
        pass
    assert fake.begun[1] == {
        "project": "mine", "name": tmp_path.name, "dir": str(tmp_path), "config": {}, "id": "first", "resume": "allow"
    }  # fmt: skip
    assert fake.ended == 2


def test_mlflow_gets_settings_once_and_numbers_at_their_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: None
) -> None:
    fake = FakeMLflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    number = f"{tmp_path.name} in of sememekit"
    with tracking.tracking(["mlflow"], tmp_path, {"run": {"seed": 3, "device": "cpu"}}) as tell:
        tell(ChangeReport(1, 4, {"moved": 2.0}))
    assert fake.calls == [
        ("param", number, "run.seed", 3),
        ("param", number, "run.device", "cpu"),
        ("metric", number, "change/moved", 2.0, 4),
        ("end", number),
    ]
    with tracking.tracking(["mlflow"], tmp_path, {"run": {"seed": 3}}):
        pass
    assert fake.calls[4:] == [("end", number)]
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    other = tmp_path / "other"
    other.mkdir()
    with tracking.tracking(["mlflow"], other, {}):
        pass
    assert set(fake.experiments) == {"sememekit", "mine"}


def test_a_program_that_fails_is_named_with_the_way_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: None) -> None:
    fake = FakeWandB()
    monkeypatch.setitem(sys.modules, "wandb", fake)

    def refuse(**given: Any) -> Any:
        raise RuntimeError("not logged in")

    fake.init = refuse  # type: ignore[method-assign]
    with (
        pytest.raises(TrainingError, match=r"--track wandb: RuntimeError: not logged in.*--resume --set 'run\.track=\[\]'"),
        tracking.tracking(["wandb"], tmp_path, {}),
    ):
        pytest.fail("it has not begun")


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_an_error_that_names_the_line_to_type(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "find_spec", lambda module: None)
    with pytest.raises(ConfigError, match=rf'--track {name}: .*pip install "sememekit\[{TRACKERS[name][1]}\]"'):
        check_trackers([name])
    with pytest.raises(ConfigError, match="not installed"):
        train({"run": {"track": [name]}}, Path("never"))
    assert not Path("never").exists()


def test_without_packages_nothing_is_written(tmp_path: Path, alone: None) -> None:
    with tracking.tracking([], tmp_path, {}) as tell:
        tell(EPOCH)
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_trained_with_a_tracker_and_resumed_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: None
) -> None:
    fake = FakeWandB()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    table = Place(tmp_path / "place").table(schedule__epochs=1)
    table["run"] = {**table["run"], "track": ["wandb"], "report_every": 1}
    train(table, tmp_path / "run")
    assert "valid/perplexity" in {name for values, _ in fake.told for name in values}
    assert fake.begun[0]["config"]["encoder"]["name"] == "lstm"
    before = len(fake.told)
    train({"run": {"track": []}, "schedule": {"epochs": 2}}, tmp_path / "run", resume=True)
    assert len(fake.told) == before


def test_a_resumed_run_is_tracked_only_where_that_is_said_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: None
) -> None:
    fake = FakeWandB()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    table = Place(tmp_path / "place").table(schedule__epochs=1)
    train({**table, "run": {**table["run"], "track": ["wandb"]}}, tmp_path / "run")
    before, remarks = len(fake.told), list[str]()
    train({"schedule": {"epochs": 2}}, tmp_path / "run", resume=True, on_remark=remarks.append)
    assert (len(fake.told), len(fake.begun)) == (before, 1)
    assert "nothing is sent to wandb, which the plan names; to send it, stop and type: " in remarks[-1]
    assert remarks[-1].endswith("--resume --track wandb")
    train({"schedule": {"epochs": 3}, "run": {"track": ["wandb"]}}, tmp_path / "run", resume=True)
    assert len(fake.told) > before
    assert fake.begun[1]["id"] == "first"


@pytest.mark.parametrize("content", [b'{"wandb": "fir', b"[1]", b"\xff", b"[" * 100_000])
def test_a_damaged_file_of_numbers_is_named_when_a_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: None, content: bytes
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", FakeWandB())
    (tmp_path / "tracking.json").write_bytes(content)
    with (
        pytest.raises(
            CheckpointError, match=r"^.*tracking\.json (is not|holds no) .*; delete it, and the run has a new number there$"
        ),
        tracking.tracking(["wandb"], tmp_path, {}),
    ):
        pytest.fail("it has not begun")


def test_train_says_a_damaged_file_of_numbers_in_one_line(tmp_path: Path, alone: None) -> None:
    train(Place(tmp_path / "place").table(schedule__epochs=1), tmp_path / "run")
    (tmp_path / "run" / "tracking.json").write_text('{"wandb": "fir', encoding="utf-8")
    told = CliRunner().invoke(app, ["train", "--resume", "--out", str(tmp_path / "run"), "--set", "schedule.epochs=2"])
    assert told.exit_code == 1
    assert "tracking.json is not JSON" in told.stderr
    assert "bug" not in told.stderr
    assert "Traceback" not in told.stderr


def real(name: str) -> None:
    pytest.importorskip(name, reason=f"{name} is not installed: pip install 'sememekit[{TRACKERS[name][1]}]'")


@pytest.mark.filterwarnings("ignore")
def test_events_of_tensorboard_can_be_read(tmp_path: Path) -> None:
    real("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with tracking.tracking(["tensorboard"], tmp_path, {}) as tell:
        tell(EPOCH)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("valid/perplexity")] == [(9, 12.0)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_real_wandb_takes_a_run_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for _ in range(2):
        with tracking.tracking(["wandb"], tmp_path, {"run": {"seed": 3}}) as tell:
            tell(EPOCH)
    number = json.loads((tmp_path / "tracking.json").read_text())["wandb"]
    found = list((tmp_path / "wandb").glob(f"offline-run-*-{number}/*.wandb"))
    assert len(found) >= 1
    assert all(path.stat().st_size > 0 for path in found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_real_mlflow_keeps_numbers_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real("mlflow")
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # newer ones want a data base unless told
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    for _ in range(2):
        with tracking.tracking(["mlflow"], tmp_path, {"run": {"seed": 3}}) as tell:
            tell(EPOCH)
    number = json.loads((tmp_path / "tracking.json").read_text())["mlflow"]
    run = mlflow.MlflowClient().get_run(number)
    assert run.data.params == {"run.seed": "3"}
    assert run.data.metrics["valid/perplexity"] == 12.0
    assert [point.step for point in mlflow.MlflowClient().get_metric_history(number, "valid/nats")] == [9, 9]
