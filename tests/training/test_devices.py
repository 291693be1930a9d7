"""The devices of runs: refused ones, one GPU for each rank, and, on a machine with CUDA, the losses of the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from sememekit.errors import ConfigError
from sememekit.jobs.train import train
from sememekit.ranks import Ranks
from sememekit.runs.build import device_of
from sememekit.training import StepReport
from tests.golden import Places, cases


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert device_of("auto") == torch.device("cpu")
    for name in ("cuda", "mps"):
        with pytest.raises(ConfigError, match=rf"--device {name}: this torch sees no .*; use --device cpu"):
            device_of(name)


def test_each_rank_has_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    assert device_of("auto", Ranks(3, 4, local=1)) == torch.device("cuda", 1)
    assert chosen == [1]
    with pytest.raises(ConfigError, match=r"local rank 2 has no GPU: this machine has 2; start as many .*=2 "):
        device_of("cuda", Ranks(2, 4, local=2))


def test_gradients_are_not_added_on_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert device_of("mps") == torch.device("mps")
    with pytest.raises(ConfigError, match=r"--device mps: 2 processes cannot add gradients there"):
        device_of("mps", Ranks(0, 2))


@pytest.mark.gpu
@pytest.mark.parametrize("case", [case for case in cases() if "sampled" not in case])
def test_losses_on_cuda_are_those_on_the_cpu(tmp_path: Path, case: str) -> None:
    table = Places(tmp_path).table(case)
    losses = []
    for device in ("cpu", "cuda"):
        reports: list[Any] = []
        settings = {**table["run"], "device": device, "report_every": 1}
        train({**table, "run": settings}, tmp_path / device, on_report=reports.append)
        losses.append([report.nats for report in reports if isinstance(report, StepReport)][:10])
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
