"""Events for TensorBoard: which numbers of a report, under which names, at which step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sememekit.training import tensorboard
from sememekit.training.reports import ChangeReport, EpochReport, Report, StepReport, StopReport
from sememekit.training.tensorboard import TensorBoardLog


class Writer:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float, int]] = []
        self.closed = False

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.told.append((name, value, step))

    def close(self) -> None:
        self.closed = True


EPOCH = EpochReport(1, 9, 2.5, {"perplexity": 12.0, "nats": 2.4}, 0.1, True, False, "", 1.0, 5.0)


@pytest.mark.parametrize(
    ("report", "told"),
    [
        (
            StepReport(1, 2, 3, 7, 1.5, 0.1, 90.0),
            [("train/nats", 1.5, 7), ("train/rate", 0.1, 7), ("train/tokens_per_second", 90.0, 7)],
        ),
        (EPOCH, [("valid/perplexity", 12.0, 9), ("valid/nats", 2.4, 9), ("epoch/train_nats", 2.5, 9)]),
        (ChangeReport(1, 4, {"moved": 2.0}), [("change/moved", 2.0, 4)]),
        (StopReport(1, 4, "step-00000004"), []),
    ],
)
def test_the_numbers_of_a_report_are_events(tmp_path: Path, report: Report, told: list[Any]) -> None:
    log, writer = TensorBoardLog(tmp_path), Writer()
    log._writer = writer
    log.add(report)
    assert writer.told == told
    log.__exit__(None, None, None)
    assert writer.closed


def test_without_the_package_there_are_no_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard, "find_spec", lambda name: None)
    with TensorBoardLog(tmp_path) as log:
        log.add(EPOCH)
    assert list(tmp_path.iterdir()) == []
