"""Second derivatives are right, or an error says that there are none: gradient penalties and Hessians must not go wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from sememekit.layers import differentiable_once
from sememekit.nn import OutputLayer
from tests.nn.cases import ALL, LAYERS, Case, contexts

REFUSED = "can be differentiated once"
HAVE_NONE = {
    "ClassSoftmax",
    "ClassSoftmax-sememes",
    "LatticeLoss",
    "MixtureOfSememeSoftmaxes",
    "MixtureOfSoftmaxes",
    "MogrifierLSTM",
    "SelfOrganizedSoftmax",
    "SememeGRU",
    "SememeGRU-both-directions",
    "SememeGRU-gate",
    "SememeLSTM",
    "SememeLSTM-gate",
    "SememeSoftmax",
}
"""Cases whose backward pass is written by hand; torch differentiates all others as often as one likes."""


def squared_gradient(value: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """A gradient penalty."""
    (gradient,) = torch.autograd.grad(value(x), x, create_graph=True)
    return gradient.square().sum()


def check_second_derivative(value: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """The derivative of the penalty along a direction, against central differences of the gradient."""
    (second,) = torch.autograd.grad(squared_gradient(value, x), x)
    direction, step = torch.linspace(-1.0, 1.0, x.numel(), dtype=x.dtype).view(x.shape), 1e-5

    def penalty(shift: float) -> Tensor:
        moved = (x + shift * direction).detach().requires_grad_(True)
        return torch.autograd.grad(value(moved), moved)[0].square().sum()

    expected = (penalty(step) - penalty(-step)) / (2 * step)
    assert expected.abs() > 1e-6
    torch.testing.assert_close((second * direction).sum(), expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_they_are_right_or_refused(case: Case) -> None:
    module = case.build().double()
    first, *others = case.call()
    start = first.detach().double().masked_fill(first.isinf(), -50.0).requires_grad_(True)

    def value(x: Tensor) -> Tensor:
        torch.manual_seed(5)  # sampled words
        return case.value(module(x, *others))

    (plain,) = torch.autograd.grad(value(start), start)
    assert plain.abs().sum() > 0
    if str(case) in HAVE_NONE:
        with pytest.raises(RuntimeError, match=REFUSED):
            check_second_derivative(value, start)
    else:
        check_second_derivative(value, start)


@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_the_way_that_the_error_names(case: Case) -> None:
    layer, (_, target) = case.build().double().eval(), case.call()
    assert isinstance(layer, OutputLayer)

    def value(hidden: Tensor) -> Tensor:
        return -layer.log_prob(hidden).gather(-1, target.unsqueeze(-1)).squeeze(-1).mean()

    hidden = contexts(5, 3).double().requires_grad_(True)
    if "Sememe" in str(case):  # no way is named: torch has no second derivative of its sums over sememes, and says so
        with pytest.raises(NotImplementedError, match="embedding_bag"):
            check_second_derivative(value, hidden)
    else:
        check_second_derivative(value, hidden)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("case", [case for case in ALL if str(case) in HAVE_NONE], ids=str)
def test_recomputed_activations_are_no_second_derivative(case: Case, reentrant: bool) -> None:
    module = case.build().eval()
    first, *others = case.call()

    def value(x: Tensor) -> Tensor:
        return case.value(module(x, *others))

    gradients = []
    for recomputed in (False, True):
        x = first.detach().requires_grad_(True)
        (checkpoint(value, x, use_reentrant=reentrant) if recomputed else value(x)).backward()
        gradients.append(x.grad)
    torch.testing.assert_close(gradients[1], gradients[0])


def test_the_error_says_what_and_what_instead() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            return 2.0 * x

        @staticmethod
        @differentiable_once("Twice", "take 2 x")
        def backward(ctx: object, grad: Tensor) -> Tensor:
            return 2.0 * grad

    x = torch.ones(3, requires_grad=True)
    (gradient,) = torch.autograd.grad(Twice.apply(x).sum(), x)
    assert gradient.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match=r"^Twice can be differentiated once: .*create_graph=True.*; take 2 x$"):
        torch.autograd.grad(Twice.apply(x).sum(), x, create_graph=True)
