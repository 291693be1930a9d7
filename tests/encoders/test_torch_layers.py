"""LSTMs of torch whose products run in another precision than their states, against torch's kernel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sememekit.encoders.base import State
from sememekit.encoders.stack import run_layer
from sememekit.layers import WeightDropped

TIME, BATCH, INPUT, SIZE = 5, 3, 4, 6


def place() -> tuple[nn.LSTM, Tensor, State]:
    torch.manual_seed(3)
    state = (torch.randn(BATCH, SIZE), torch.randn(BATCH, SIZE))
    return nn.LSTM(INPUT, SIZE), torch.randn(TIME, BATCH, INPUT, requires_grad=True), state


def found(dtype: torch.dtype, lengths: Tensor | None, drop: bool) -> list[Tensor]:
    """Outputs, states, and the gradients of their squares with respect to weights, input and first states."""
    lstm, x, own = place()
    own = tuple(part.requires_grad_(True) for part in own)
    torch.manual_seed(4)
    layer: Any = WeightDropped(lstm, 0.5) if drop else lstm
    hidden, state = run_layer(layer, x, own, lengths, dtype)
    loss = sum((part.square().sum() for part in (hidden, *state)), start=torch.zeros(()))
    return [hidden, *state, *torch.autograd.grad(loss, [*lstm.parameters(), x, *own])]


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("lengths", [None, torch.tensor([5, 1, 3])])
def test_products_in_double_precision_are_those_of_the_kernel(lengths: Tensor | None, drop: bool) -> None:
    """The order of the gates, padding and states: what rounding alone may part."""
    for one, other in zip(found(torch.float64, lengths, drop), found(torch.float32, lengths, drop), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("drop", [False, True])
def test_products_in_bfloat16_round_products_alone(drop: bool) -> None:
    for one, other in zip(found(torch.bfloat16, None, drop), found(torch.float32, None, drop), strict=True):
        assert one.dtype == torch.float32
        assert 0 < (one - other).norm() < 0.02 * other.norm()


def test_states_are_not_rounded() -> None:
    """A forget gate near 1 keeps a cell state that bfloat16 cannot write."""
    lstm, x, _ = place()
    with torch.no_grad():
        for part in lstm.parameters():
            part.zero_()
        lstm.bias_ih_l0[SIZE : 2 * SIZE] = 30.0
    cell = torch.full((BATCH, SIZE), 1.0 + 2.0**-20)
    _, (_, after) = run_layer(lstm, x, (torch.zeros(BATCH, SIZE), cell), None, torch.bfloat16)
    torch.testing.assert_close(after, cell, rtol=0, atol=0)
    assert (cell.bfloat16() != cell).all()


def test_other_layers_stay_at_their_precision() -> None:
    _, x, (hidden, _) = place()
    gru = nn.GRU(INPUT, SIZE)
    lowered, exact = (run_layer(gru, x, (hidden,), None, dtype)[0] for dtype in (torch.bfloat16, torch.float32))
    torch.testing.assert_close(lowered, exact, rtol=0, atol=0)
