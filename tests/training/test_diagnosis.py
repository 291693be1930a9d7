"""The first module, weight or gradient that is not finite is named."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sememekit.tasks.base import BatchLoss
from sememekit.training.divergence import first_bad_module, first_bad_weight

FIRST = "the first non-finite number comes from "


class Halves(nn.Module):
    """A module that returns its input in a list in a tuple, the second time divided by ``by``."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: Tensor) -> Any:
        return "first", [x, x / self.by]


class Chain(nn.Module):
    """A layer, and halves of it; the loss is what the power of the sum is."""

    def __init__(self, by: float = 1.0, power: float = 1.0, scale: float = 1.0) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2, bias=False)
        nn.init.ones_(self.layer.weight)
        self.halves, self.power, self.scale = Halves(by), power, scale

    def loss(self, batch: Tensor, carry: Any) -> BatchLoss:
        _, (one, other) = self.halves(self.layer(batch))
        return BatchLoss(((one + other).sum() * self.scale) ** self.power, 1, None, ())


@pytest.mark.parametrize(
    ("model", "batch", "what"),
    [
        (Chain(), [1.0, float("nan")], FIRST + "module 'layer' (Linear)"),
        (Chain(by=0.0), [1.0, 2.0], FIRST + "module 'halves' (Halves)"),
        (
            Chain(scale=1e30, power=2.0),
            [1.0, 2.0],
            FIRST + "the output layer's loss (its 'nll')",
        ),
        (Chain(power=0.5), [0.0, 0.0], FIRST + "the gradient of 'layer.weight'"),
        (Chain(), [1.0, 2.0], "it did not appear again on the same batch"),
    ],
)
def test_the_first_is_named(model: Any, batch: list[float], what: str) -> None:
    assert first_bad_module(model, torch.tensor([batch]), ()) == what
    assert model.layer.weight.grad is None, "no gradient is left"
    assert not any(module._forward_hooks for module in model.modules()), "nobody watches any more"


def test_a_bad_parameter_comes_before_what_it_gives() -> None:
    model: Any = Chain(by=0.0)
    with torch.no_grad():
        model.layer.weight[1, 0] = float("inf")
    assert first_bad_module(model, torch.ones(1, 2), ()) == "parameter 'layer.weight' holds non-finite numbers"


def test_the_first_bad_weight_is_named_among_buffers_integers_and_empty_tensors() -> None:
    model = nn.Module()
    model.register_buffer("empty", torch.zeros(0))
    model.register_buffer("ids", torch.arange(3))
    model.one, model.two = nn.Parameter(torch.tensor([3e38, -3e38])), nn.Parameter(torch.zeros(2))
    model.register_buffer("far", torch.tensor([1e300], dtype=torch.float64))
    assert first_bad_weight(model) is None
    with torch.no_grad():
        model.two[1] = float("nan")
    assert first_bad_weight(model) == "'two'"
    with torch.no_grad():
        model.one[0] = -float("inf")
    assert first_bad_weight(model) == "'one'"
