"""The sampled softmax: exact in evaluation, and in training an estimate with the mean that it claims."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sememekit.decoders.base import Resources
from sememekit.decoders.sampled import Sampled
from tests.small import small_vocabulary

WIDTH, WORDS = 4, 10


def make(**settings: object) -> Sampled:
    torch.manual_seed(6)
    resources = Resources(WIDTH, small_vocabulary(), None, torch.nn.Embedding(WORDS, WIDTH))
    decoder = Sampled(Sampled.Settings(**settings), resources).double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return decoder


def proposal(power: float) -> Tensor:
    raised = torch.from_numpy(small_vocabulary().counts.copy()).double() ** power
    return raised / raised.sum()


def twin(decoder: Sampled, hidden: Tensor, target: Tensor, drawn: Tensor, q: Tensor) -> Tensor:
    """The estimated loss, token by token and draw by draw."""
    losses = []
    for row, word in zip(hidden, target.tolist(), strict=True):
        scores = decoder.words.weight @ row + decoder.bias
        rest = sum((scores[v].exp() / q[v] for v in drawn.tolist() if v != word), start=torch.zeros((), dtype=torch.float64))
        losses.append((scores[word].exp() + rest / len(drawn)).log() - scores[word])
    return torch.stack(losses)


@pytest.mark.parametrize("power", [0.0, 0.75, 1.0])
def test_the_estimate_and_its_gradients_equal_the_twin(power: float) -> None:
    decoder = make(power=power)
    hidden = torch.randn(9, WIDTH, dtype=torch.float64, requires_grad=True)
    target, drawn = torch.arange(9), torch.tensor([0, 0, 3, 9, 1])
    ours = decoder.estimate(hidden, target, drawn)
    expected = twin(decoder, hidden, target, drawn, proposal(power))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-6)  # log q is kept in single precision
    inputs = [hidden, *decoder.parameters()]
    upstream = torch.rand(9, dtype=torch.float64)
    one, other = (torch.autograd.grad((nats * upstream).sum(), inputs) for nats in (ours, expected))
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-6)


def test_all_draws_may_hit_the_target() -> None:
    decoder = make()
    hidden = torch.randn(2, WIDTH, dtype=torch.float64, requires_grad=True)
    nats = decoder.estimate(hidden, torch.tensor([3, 1]), torch.tensor([3, 3]))
    assert nats[0] == 0.0
    nats.sum().backward()
    assert torch.isfinite(hidden.grad).all()


def test_the_estimated_normaliser_has_the_right_mean() -> None:
    """Averaged over every single draw with its probability, exp(nll) is that of the exact loss."""
    decoder = make(num_samples=1)
    hidden, target = torch.randn(5, WIDTH, dtype=torch.float64), torch.tensor([0, 2, 4, 6, 9])
    exact = decoder.eval().nll(hidden, target)
    each = torch.stack([decoder.estimate(hidden, target, torch.tensor([word])) for word in range(WORDS)])
    mean = (proposal(0.75)[:, None] * each.exp()).sum(dim=0)
    torch.testing.assert_close(mean, exact.exp(), rtol=1e-6, atol=0)


def test_many_draws_come_near_the_exact_loss_in_training_mode() -> None:
    decoder = make(num_samples=200_000).train()
    hidden, target = torch.randn(5, 2, WIDTH, dtype=torch.float64), torch.arange(10).view(5, 2)
    torch.manual_seed(0)
    estimate = decoder.nll(hidden, target)
    torch.testing.assert_close(estimate, decoder.eval().nll(hidden, target), rtol=0, atol=0.02)


def test_draws_come_from_torchs_generator_and_are_shared_by_the_batch() -> None:
    decoder = make(num_samples=3).train()
    hidden = torch.randn(1, WIDTH, dtype=torch.float64).expand(6, WIDTH)
    target = torch.zeros(6, dtype=torch.long)
    torch.manual_seed(4)
    one = decoder.nll(hidden, target)
    torch.testing.assert_close(one, one[:1].expand(6))
    torch.manual_seed(4)
    assert torch.equal(decoder.nll(hidden, target), one)
    assert not torch.equal(decoder.nll(hidden, target), one)
    assert Sampled.estimates_in_training
