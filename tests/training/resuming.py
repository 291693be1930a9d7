"""Stopping a training at a step, and what must be equal when it has gone on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from sememekit.training import Report, RunFolder, Snapshot, Trainer


def stop_after(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Make the next run see a signal after ``step`` steps."""
    original = Trainer.run

    def run(self: Trainer, should_stop: Callable[[], bool] = lambda: False) -> Any:
        return original(self, lambda: self.progress.step >= step)

    monkeypatch.setattr(Trainer, "run", run)


def last(folder: Path) -> Snapshot:
    return RunFolder.open(folder).load("last", with_trainer=True)


def assert_same_bits(one: Any, other: Any, where: str = "state") -> None:
    if isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype, where
        assert torch.equal(one, other), where
    elif isinstance(one, dict):
        assert set(one) == set(other), where
        for key in one:
            if key not in ("seconds", "cpu_seconds"):
                assert_same_bits(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_same_bits(left, right, f"{where}.{number}")
    else:
        assert one == other, where


def numbers(reports: list[Report], kind: type) -> list[dict[str, Any]]:
    """Reports of a kind without what depends on the clock."""
    return [
        {key: value for key, value in vars(report).items() if key not in {"seconds", "cpu_seconds", "tokens_per_second"}}
        for report in reports
        if isinstance(report, kind)
    ]
