"""The plain softmax against its equation."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sememekit.decoders import softmax
from sememekit.decoders.base import Resources
from sememekit.decoders.softmax import Softmax
from sememekit.layers import linear_cross_entropy
from tests.small import small_vocabulary

WIDTH = 5


def make(**settings: bool) -> Softmax:
    torch.manual_seed(2)
    embedding = torch.nn.Embedding(len(small_vocabulary()), WIDTH)
    return Softmax(Softmax.Settings(**settings), Resources(WIDTH, small_vocabulary(), None, embedding)).double()


def test_it_is_the_softmax_of_inner_products_and_a_bias() -> None:
    decoder = make()
    with torch.no_grad():
        decoder.bias.copy_(torch.arange(len(decoder.bias)).double())
    hidden = torch.randn(4, WIDTH, dtype=torch.float64)
    scores = (hidden @ decoder.words.weight.T + decoder.bias).exp()
    torch.testing.assert_close(decoder.log_probs(hidden), (scores / scores.sum(dim=1, keepdim=True)).log())


def test_a_tied_layer_shares_the_input_embedding_and_an_untied_one_does_not() -> None:
    embedding = torch.nn.Embedding(len(small_vocabulary()), WIDTH)
    resources = Resources(WIDTH, small_vocabulary(), None, embedding)
    assert Softmax(Softmax.Settings(), resources).words is embedding
    untied = Softmax(Softmax.Settings(tied=False), resources)
    assert untied.words.weight.data_ptr() != embedding.weight.data_ptr()
    assert untied.words.weight.abs().max() <= 0.1


def test_huge_contexts_give_finite_losses() -> None:
    decoder = make().float()
    hidden = (torch.randn(30, WIDTH) * 1e4).requires_grad_(True)
    nats = decoder.nll(hidden, torch.zeros(30, dtype=torch.long))
    nats.sum().backward()
    assert torch.isfinite(nats).all()
    assert torch.isfinite(hidden.grad).all()


def test_the_bias_can_be_left_out() -> None:
    assert make(bias=False).bias is None


@pytest.mark.parametrize("bias", [True, False])
def test_more_scores_than_memory_should_hold_are_computed_in_blocks(monkeypatch: pytest.MonkeyPatch, bias: bool) -> None:
    decoder, blocks = make(bias=bias), []
    hidden, target = torch.randn(3, 4, WIDTH, dtype=torch.float64, requires_grad=True), torch.arange(12).view(3, 4) % 7
    inputs, weight = [hidden, *decoder.parameters()], torch.rand(3, 4, dtype=torch.float64)
    plain = decoder.nll(hidden, target)
    expected = torch.autograd.grad((plain * weight).sum(), inputs)

    def in_blocks(*given: Any) -> torch.Tensor:
        blocks.append(given[-1])
        return linear_cross_entropy(*given)

    monkeypatch.setattr(softmax, "linear_cross_entropy", in_blocks)
    monkeypatch.setattr(softmax, "_LARGEST_SCORES", 12 * len(decoder.words.weight) - 1)
    monkeypatch.setattr(softmax, "_BLOCK", 2 * len(decoder.words.weight) + 1)
    nats = decoder.nll(hidden, target)
    torch.testing.assert_close(nats, plain, rtol=0, atol=1e-12)
    for ours, theirs in zip(torch.autograd.grad((nats * weight).sum(), inputs), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    assert blocks == [2]
