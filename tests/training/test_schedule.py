"""The schedule: when the rate is cut, which weights are the best, and when a run ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from sememekit.errors import ConfigError
from sememekit.jobs.train import train
from sememekit.training import RunFolder
from tests.small_run import Place
from tests.training.scripted import epochs, script_validation, trained


def test_the_rate_is_cut_when_validation_is_no_better(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 40.0, 41.0, 39.0, 39.0, 38.0])
    _, reports = trained(place, tmp_path / "run", schedule__epochs=6, schedule__factor=0.5)
    done = epochs(reports)
    assert [report.rate for report in done] == [4.0, 4.0, 4.0, 2.0, 2.0, 1.0]
    assert [report.best for report in done] == [True, True, False, True, False, True]
    assert [report.rate_cut for report in done] == [False, False, True, False, True, False]


def test_no_cut_within_the_grace(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 51.0, 52.0, 53.0, 54.0])
    _, reports = trained(place, tmp_path / "run", schedule__epochs=5, schedule__factor=0.5, schedule__grace=3)
    assert [report.rate for report in epochs(reports)] == [4.0, 4.0, 4.0, 4.0, 2.0]


def test_a_factor_of_one_never_cuts(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 51.0, 52.0])
    _, reports = trained(place, tmp_path / "run", schedule__epochs=3, schedule__factor=1.0, schedule__minimum_rate=9.0)
    assert [(report.rate, report.rate_cut) for report in epochs(reports)] == [(4.0, False)] * 3


def test_milestones_cut_whatever_validation_says(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Milestones cut within the grace, too, and once only where validation would have cut as well."""
    script_validation(monkeypatch, [50.0, 40.0, 30.0, 31.0, 32.0, 20.0])
    own = {"schedule__epochs": 6, "schedule__factor": 0.5, "schedule__grace": 4, "schedule__milestones": [2, 5]}
    _, reports = trained(place, tmp_path / "run", **own)
    done = epochs(reports)
    assert [report.rate for report in done] == [4.0, 4.0, 2.0, 2.0, 2.0, 1.0]
    assert [report.rate_cut for report in done] == [False, True, False, False, True, False]


def test_milestones_need_a_factor_that_cuts(place: Place, tmp_path: Path) -> None:
    own = {"schedule__factor": 1.0, "schedule__milestones": [2]}
    with pytest.raises(
        ConfigError, match=r"\[schedule\]: milestones cut the rate by factor, which is 1 .*; give a smaller factor"
    ):
        trained(place, tmp_path / "run", **own)
    with pytest.raises(ConfigError, match=r"key 'milestones': input should be a list, such as \[1,2\] or .*, given '2,3'"):
        trained(place, tmp_path / "run", schedule__milestones="2,3")
    with pytest.raises(ConfigError, match=r"key 'milestones\.0': .* greater than or equal to 1, given 0"):
        trained(place, tmp_path / "run", schedule__milestones=[0])


def test_the_rate_decays_after_every_epoch_beside_the_cuts(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_validation(monkeypatch, [50.0, 40.0, 41.0, 39.0])
    own = {"schedule__epochs": 4, "schedule__factor": 0.5, "schedule__decay": 0.9}
    _, reports = trained(place, tmp_path / "run", **own)
    assert [report.rate for report in epochs(reports)] == pytest.approx([4.0, 3.6, 3.24, 1.458])


def test_a_creeping_improvement_is_none_by_the_threshold(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 49.9, 40.0])
    own = {"schedule__epochs": 3, "schedule__factor": 0.5, "schedule__threshold": 0.01, "schedule__reload_best": True}
    report, reports = trained(place, tmp_path / "run", **own)
    done = epochs(reports)
    assert [(one.best, one.rate_cut) for one in done] == [(True, False), (True, True), (True, False)]
    assert report.best_valid == 40.0


def test_a_cut_after_a_creeping_best_keeps_its_weights(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """reload_best goes back to better weights only; the weights of a new best are not replaced by older ones."""
    common = {"schedule__epochs": 2, "schedule__factor": 0.5, "schedule__threshold": 0.01}
    weights = []
    for reload in (False, True):
        script_validation(monkeypatch, [50.0, 49.9])
        trained(place, tmp_path / f"run{reload}", **common, schedule__reload_best=reload)
        weights.append(RunFolder.open(tmp_path / f"run{reload}").load("best", with_trainer=False).weights)
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_the_best_weights_come_back_when_asked(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 60.0])
    trained(place, tmp_path / "run", schedule__epochs=2, schedule__reload_best=True)
    folder = RunFolder.open(tmp_path / "run")
    best, last = (folder.load(which, with_trainer=False).weights for which in ("best", "last"))
    assert all(torch.equal(best[name], last[name]) for name in best)
    script_validation(monkeypatch, [50.0, 60.0])
    trained(place, tmp_path / "plain", schedule__epochs=2)
    folder = RunFolder.open(tmp_path / "plain")
    best, last = (folder.load(which, with_trainer=False).weights for which in ("best", "last"))
    assert not any(torch.equal(best[name], last[name]) for name in best)


@pytest.mark.parametrize(
    ("changes", "num_epochs", "why"),
    [
        ({"schedule__stop_after": 2}, 4, "no better validation for 2 epochs"),
        ({"schedule__minimum_rate": 0.9, "schedule__factor": 0.5}, 5, "the rate fell below 0.9"),
        ({"schedule__epochs": 3}, 3, "3 epochs done"),
    ],
)
def test_a_run_ends_for_a_stated_reason(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], num_epochs: int, why: str
) -> None:
    script_validation(monkeypatch, [50.0, 40.0, 41.0, 42.0, 43.0, 44.0, 45.0])
    report, reports = trained(place, tmp_path / "run", **{"schedule__epochs": 7, **changes})
    assert (report.epochs, report.finished, report.best_epoch) == (num_epochs, why, 2)
    assert epochs(reports)[-1].finished == why


def test_waiting_longer_reopens_a_run(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_validation(monkeypatch, [50.0, 51.0, 40.0, 41.0])
    trained(place, tmp_path / "run", schedule__epochs=9, schedule__stop_after=1)
    report = train({"schedule": {"stop_after": 2, "epochs": 4}}, tmp_path / "run", resume=True)
    assert (report.epochs, report.best_valid, report.finished) == (4, 40.0, "4 epochs done")
