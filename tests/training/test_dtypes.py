"""``run.dtype``: the settings of torch, and training steps in bfloat16, near those in single precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from sememekit.ranks import ALONE
from sememekit.runs.build import prepare_torch, slow_products
from sememekit.training import RunSettings
from tests.distributed.cases import go_on, trainer_of
from tests.golden import Places, cases
from tests.training.test_waiting import ADDED, table_of

OF_THE_LOSS, OF_THE_GRADIENT = 0.01, 0.05
"""Limits on the distance from single precision: share of the loss, and of the norm of all gradients. Measured: 0.002, 0.015."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(tmp_path_factory.mktemp("dtypes"))


def one_step(table: dict[str, Any], dtype: str) -> tuple[float, dict[str, Tensor]]:
    """The loss of a first step, and the gradients that it took; all numbers are in single precision."""
    trainer = trainer_of({**table, "run": {**table["run"], "dtype": dtype}}, ALONE, torch.float32)
    (loss,) = go_on(trainer, 1)
    gradients = {name: part.grad.to_dense() for name, part in trainer.task.named_parameters() if part.grad is not None}
    assert {tensor.dtype for tensor in (*trainer.parameters, *gradients.values())} == {torch.float32}
    assert all(tensor.isfinite().all() for tensor in (*trainer.parameters, *gradients.values()))
    return loss, gradients


@pytest.mark.parametrize("case", [*cases(), *ADDED])
def test_a_step_in_bfloat16_is_near_one_in_single_precision(places: Places, case: str) -> None:
    table = table_of(places, case)
    (exact, gradients), (lowered, others) = (one_step(table, dtype) for dtype in ("float32", "bfloat16"))
    assert others.keys() == gradients.keys()
    whole, other = (torch.cat([found[name].flatten() for name in gradients]) for found in (gradients, others))
    off = float((other - whole).norm() / whole.norm())
    if case.startswith("lattice"):
        assert (lowered, off) == (exact, 0.0), f"{case} has a product in bfloat16 now"
    else:
        assert lowered == pytest.approx(exact, rel=OF_THE_LOSS)
        assert 0.0 < off < OF_THE_GRADIENT


@pytest.mark.parametrize(
    ("dtype", "capabilities", "slow"),
    [
        ("bfloat16", {"architecture": "x86_64", "amx_bf16": False}, True),
        ("bfloat16", {"architecture": "x86_64", "amx_bf16": True}, False),
        ("bfloat16", {"architecture": "aarch64", "bf16": True}, False),  # not measured
        ("float32", {"architecture": "x86_64", "amx_bf16": False}, False),
    ],
)
def test_a_processor_without_such_products_is_told(
    dtype: str, capabilities: dict[str, object], slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    told = slow_products(dtype, torch.device("cpu"))
    assert len(told) == slow
    assert all("--dtype" in text for text in told)
    assert slow_products(dtype, torch.device("meta")) == ()


@pytest.fixture
def _restored() -> Iterator[None]:
    """Restore torch's settings after each test."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32, torch.get_num_threads()
    yield
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]
    torch.set_num_threads(before[2])


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize(("dtype", "precision"), [("float32", "highest"), ("tf32", "high"), ("bfloat16", "highest")])
def test_products_on_a_gpu_are_what_the_run_says(dtype: Any, precision: str) -> None:
    """The dtype holds for matrices and torch's own recurrences, whatever another run in this process set."""
    for before in (False, True):
        torch.set_float32_matmul_precision("high" if before else "highest")
        torch.backends.cudnn.allow_tf32 = before
        prepare_torch(RunSettings(device="cpu", dtype=dtype))
        assert torch.get_float32_matmul_precision() == precision
        assert torch.backends.cuda.matmul.allow_tf32 is (dtype == "tf32")
        assert torch.backends.cudnn.allow_tf32 is (dtype == "tf32")
