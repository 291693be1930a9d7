"""A mixture of sememe-driven layers against the mixture of dense twins."""

from __future__ import annotations

import pytest
import torch

from sememekit.decoders.base import Resources
from sememekit.decoders.mos_sdlm import MoSSDLM
from tests.decoders.sdlm_twin import dense_log_probs
from tests.small import small_graph, small_vocabulary

WIDTH, SIZE = 7, 4
"""Contexts of another size than word vectors."""


def make(**settings: object) -> MoSSDLM:
    torch.manual_seed(9)
    vocabulary = small_vocabulary()
    resources = Resources(WIDTH, vocabulary, small_graph(), torch.nn.Embedding(len(vocabulary), SIZE))
    decoder = MoSSDLM(MoSSDLM.Settings(num_bases=2, **settings), resources).double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return decoder


def test_values_and_gradients_equal_the_mixture_of_dense_twins() -> None:
    decoder = make()
    hidden = torch.randn(8, WIDTH, dtype=torch.float64, requires_grad=True)
    target = torch.arange(8)
    weights = torch.softmax(hidden @ decoder.mixture.prior.weight.T, dim=1)
    contexts = torch.tanh(decoder.mixture.projection(hidden)).reshape(8, 3, SIZE)
    each = torch.stack([dense_log_probs(decoder.senses, small_graph(), contexts[:, k], False) for k in range(3)], dim=1)
    expected = (weights[:, :, None] * each.exp()).sum(dim=1).log()
    torch.testing.assert_close(decoder.log_probs(hidden), expected, rtol=0, atol=1e-10)
    ours, dense = decoder.nll(hidden, target), -expected.gather(1, target[:, None])[:, 0]
    torch.testing.assert_close(ours, dense, rtol=0, atol=1e-10)
    upstream = torch.rand(8, dtype=torch.float64)
    inputs = [hidden, *decoder.parameters()]
    one, other = (torch.autograd.grad((nats * upstream).sum(), inputs) for nats in (ours, dense))
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-10)


@pytest.mark.parametrize("site", ["mixture_dropout", "context_dropout"])
def test_masks_are_shared_over_time_but_not_over_sequences(site: str) -> None:
    decoder = make(**{site: 0.5}).train()
    hidden = torch.randn(1, 1, WIDTH, dtype=torch.float64).expand(4, 5, WIDTH)
    nats = decoder.nll(hidden, torch.zeros(4, 5, dtype=torch.long))
    torch.testing.assert_close(nats, nats[:1].expand(4, 5))
    assert len(set(nats[0].tolist())) > 1


@torch.no_grad()
def test_evidence_is_that_of_the_components_weighted_by_what_they_give_the_word() -> None:
    decoder, hidden, words = make(), torch.randn(WIDTH, dtype=torch.float64), torch.arange(10)
    log_weights, contexts = decoder.mixture(hidden)
    found = decoder.sense_attribution(hidden, words)
    parts = [decoder.senses.sense_attribution(context, words) for context in contexts]
    given = torch.stack([log_weights[k].exp() * decoder.senses.log_probs(contexts[k]).exp() for k in range(3)])
    for word, senses in enumerate(found.word_senses):
        for sense, share in senses:
            mean = sum(float(given[k, word]) * dict(parts[k].word_senses[word])[sense] for k in range(3))
            assert share == pytest.approx(mean / float(given[:, word].sum()))
    first = sum(float(log_weights[k].exp()) * parts[k].sememe_gates[0] for k in range(3))
    assert found.sememe_gates[0] == pytest.approx(first)
