"""Optimisers by name."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sememekit.config import USUAL_VARIANTS
from sememekit.errors import ConfigError
from sememekit.training.optimizers import make_optimizer
from sememekit.training.settings import USUAL_RATES, OptimizerSettings


@pytest.mark.parametrize(("start", "step"), [(0.0, 0.1), (0.16, 0.06)])
def test_adagrad_begins_with_its_accumulator(start: float, step: float) -> None:
    weight = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = make_optimizer(OptimizerSettings(name="adagrad", learning_rate=0.1, initial_accumulator=start), [weight])
    weight.grad = torch.tensor([0.3], dtype=torch.float64)
    optimizer.step()
    assert weight.item() == pytest.approx(-step, rel=1e-6)  # rate * g / sqrt(start + g^2)


def test_an_accumulator_without_adagrad_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"belongs to adagrad, given name = 'sgd'"):
        make_optimizer(OptimizerSettings(initial_accumulator=0.1), [nn.Parameter(torch.zeros(1))])


def test_an_optimiser_without_a_rate_takes_its_own_usual_one() -> None:
    assert OptimizerSettings().name == USUAL_VARIANTS["optimizer"]
    assert {name: OptimizerSettings(name=name).learning_rate for name in ("sgd", "adam", "adagrad")} == USUAL_RATES
    assert OptimizerSettings(name="adam", learning_rate=20.0).learning_rate == 20.0
    assert OptimizerSettings().learning_rate == USUAL_RATES["sgd"]
