"""Runs of a small language model, with the figures of validation that a test asks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from torch import Tensor

from sememekit.jobs.train import TrainReport, train
from sememekit.tasks.language_model import LanguageModel
from sememekit.training import EpochReport, Report
from tests.small_run import Place

ADAM = {"optimizer__name": "adam", "optimizer__learning_rate": 0.02}


def trained(place: Place, out: Path, decoder: str = "softmax", **changes: object) -> tuple[TrainReport, list[Report]]:
    reports: list[Report] = []
    return train(place.table(decoder, **changes), out, on_report=reports.append), reports


def script_validation(monkeypatch: pytest.MonkeyPatch, values: list[float]) -> list[dict[str, Tensor]]:
    """Let validation give these perplexities, one an epoch, whatever the model is; what is returned fills with the weights that
    were judged."""
    coming: Iterator[float] = iter(values)
    judged: list[dict[str, Tensor]] = []

    def evaluate(self: LanguageModel, data: object, split: str) -> dict[str, float]:
        judged.append({name: tensor.clone() for name, tensor in self.state_dict().items()})
        return {"perplexity": next(coming)}

    monkeypatch.setattr(LanguageModel, "evaluate", evaluate)
    monkeypatch.setattr("sememekit.training.divergence.uniform_perplexity", lambda task: 1e9)
    return judged


def epochs(reports: list[Report]) -> list[EpochReport]:
    return [report for report in reports if isinstance(report, EpochReport)]
