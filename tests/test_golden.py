"""Losses of the first ten steps, written down: a change of the mathematics, the start or the order of the data shows here.

Where a change is meant, replace the numbers and say so in the message of the commit. The tolerance outlives another BLAS.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.commands.train import train
from sememekit.training import Report, StepReport
from tests.small_run import Place

GOLDEN = {
    "softmax": [2.30482, 2.26136, 2.12164, 2.25166, 2.08771, 2.20244, 2.04817, 2.09102, 2.05878, 2.15066],
    "sdlm": [2.42054, 2.33992, 2.17917, 2.26442, 2.04016, 2.20599, 2.02818, 2.08467, 2.04446, 2.15232],
}


@pytest.mark.parametrize("decoder", GOLDEN)
def test_ten_steps(tmp_path: Path, decoder: str) -> None:
    reports: list[Report] = []
    place = Place(tmp_path)
    train(place.table(decoder, run__report_every=1, schedule__epochs=1), tmp_path / "run", on_report=reports.append)
    losses = [report.nats for report in reports if isinstance(report, StepReport)][:10]
    assert losses == pytest.approx(GOLDEN[decoder], abs=1e-4), [round(loss, 5) for loss in losses]
