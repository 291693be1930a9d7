"""The plain softmax against its equation."""

from __future__ import annotations

import torch

from sememekit.decoders.base import Resources
from sememekit.decoders.softmax import Softmax
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
