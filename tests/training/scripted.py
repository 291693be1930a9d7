"""Runs of a small language model, with the figures of validation that a test asks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sememekit.commands.train import train
from sememekit.runs.train_report import TrainReport
from sememekit.tasks.language_model import LanguageModel
from sememekit.training import EpochReport, Report
from tests.small_run import Place

ADAM = {"optimizer__name": "adam", "optimizer__learning_rate": 0.02}


def trained(place: Place, out: Path, decoder: str = "softmax", **changes: object) -> tuple[TrainReport, list[Report]]:
    reports: list[Report] = []
    return train(place.table(decoder, **changes), out, on_report=reports.append), reports


def script_validation(monkeypatch: pytest.MonkeyPatch, values: list[float]) -> None:
    """Let validation give these perplexities, one an epoch, whatever the model is."""
    coming: Iterator[float] = iter(values)
    monkeypatch.setattr(LanguageModel, "evaluate", lambda self, data, split: {"perplexity": next(coming)})
    monkeypatch.setattr(LanguageModel, "uniform", lambda self: 1e9)


def epochs(reports: list[Report]) -> list[EpochReport]:
    return [report for report in reports if isinstance(report, EpochReport)]
