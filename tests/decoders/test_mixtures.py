"""Mixtures of softmaxes and of contexts against their equations, written out densely."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from sememekit.decoders.base import Resources
from sememekit.decoders.bias_start import log_frequencies
from sememekit.decoders.mos import MoC, MoS
from sememekit.decoders.mos_sdlm import MoSSDLM
from sememekit.decoders.softmax import Softmax
from sememekit.layers import linear_cross_entropy
from tests.small import small_graph, small_vocabulary

WIDTH, SIZE = 6, 4


def make(kind: type[MoS] | type[MoC], **settings: object) -> MoS | MoC:
    torch.manual_seed(4)
    vocabulary = small_vocabulary()
    resources = Resources(WIDTH, vocabulary, None, torch.nn.Embedding(len(vocabulary), SIZE))
    decoder = kind(kind.Settings(num_components=3, **settings), resources).double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return decoder


def parts(decoder: MoS | MoC, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """pi (N, K) and h (N, K, E), spelled out."""
    weights = torch.softmax(hidden @ decoder.mixture.prior.weight.T, dim=1)
    contexts = torch.tanh(hidden @ decoder.mixture.projection.weight.T + decoder.mixture.projection.bias)
    return weights, contexts.reshape(len(hidden), 3, SIZE)


def twin(decoder: MoS | MoC, hidden: Tensor) -> Tensor:
    """Probabilities (N, V) by Eq. (5), or by Sec. 2.4 for the mixture of contexts."""
    weights, contexts = parts(decoder, hidden)
    if isinstance(decoder, MoC):
        mean = (weights[:, :, None] * contexts).sum(dim=1)
        return torch.softmax(mean @ decoder.words.weight.T + decoder.bias, dim=1)
    each = torch.softmax(contexts @ decoder.words.weight.T + decoder.bias, dim=2)
    return (weights[:, :, None] * each).sum(dim=1)


@pytest.mark.parametrize("kind", [MoS, MoC])
def test_values_and_gradients_equal_the_dense_twin(kind: type[MoS] | type[MoC]) -> None:
    decoder = make(kind)
    hidden = torch.randn(9, WIDTH, dtype=torch.float64, requires_grad=True)
    target = torch.arange(9) % len(small_vocabulary())
    upstream = torch.rand(9, dtype=torch.float64)
    dense = -twin(decoder, hidden).log().gather(1, target[:, None])[:, 0]
    ours = decoder.nll(hidden, target)
    torch.testing.assert_close(ours, dense, rtol=0, atol=1e-10)
    torch.testing.assert_close(decoder.log_probs(hidden), twin(decoder, hidden).log(), rtol=0, atol=1e-10)
    inputs = [hidden, *decoder.parameters()]
    for one, other in zip(
        torch.autograd.grad((ours * upstream).sum(), inputs), torch.autograd.grad((dense * upstream).sum(), inputs), strict=True
    ):
        assert other.abs().max() > 1e-6
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_a_mixture_of_softmaxes_breaks_the_rank_bound_that_a_mixture_of_contexts_keeps() -> None:
    hidden = torch.randn(400, WIDTH, dtype=torch.float64) * 3
    ranks = {kind: int(torch.linalg.matrix_rank(make(kind).log_probs(hidden), rtol=1e-7)) for kind in (MoS, MoC)}
    assert ranks[MoC] <= SIZE + 2
    assert ranks[MoS] > ranks[MoC]


def test_the_shift_of_the_public_code_is_in_the_loss_of_training_alone() -> None:
    """Evaluation measures a distribution, whose perplexity may stand beside others."""
    hidden, target = torch.randn(5, WIDTH, dtype=torch.float64), torch.zeros(5, dtype=torch.long)
    exact, shifted = make(MoS), make(MoS, log_shift=1e-3)
    torch.testing.assert_close(shifted.train().nll(hidden, target), -(exact.log_probs(hidden)[:, 0].exp() + 1e-3).log())
    torch.testing.assert_close(shifted.eval().nll(hidden, target), -exact.log_probs(hidden)[:, 0])
    torch.testing.assert_close(shifted.log_probs(hidden), exact.log_probs(hidden))


def test_the_mask_on_the_contexts_is_shared_over_time_but_not_over_sequences() -> None:
    decoder = make(MoS, context_dropout=0.5).train()
    hidden = torch.randn(1, 1, WIDTH, dtype=torch.float64).expand(4, 5, WIDTH)
    nats = decoder.nll(hidden, torch.zeros(4, 5, dtype=torch.long))
    torch.testing.assert_close(nats, nats[:1].expand(4, 5))
    assert len(set(nats[0].tolist())) > 1


@pytest.mark.parametrize("block", [1, 4, 100])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("kept_blocks", [0, 1, 100])
def test_blocked_cross_entropy_equals_torchs(block: int, with_bias: bool, kept_blocks: int) -> None:
    torch.manual_seed(0)
    rows = torch.randn(10, 3, dtype=torch.float64, requires_grad=True)
    words = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(7, dtype=torch.float64, requires_grad=True) if with_bias else None
    target = torch.arange(10) % 7
    weight = torch.rand(10, dtype=torch.float64)
    ours = linear_cross_entropy(rows, words, bias, target, block, kept_bytes=kept_blocks * block * 7 * 8)
    logits = torch.nn.functional.linear(rows, words, bias)
    dense = torch.nn.functional.cross_entropy(logits, target, reduction="none")
    torch.testing.assert_close(ours, dense)
    inputs = [rows, words] + ([bias] if bias is not None else [])
    expected = torch.autograd.grad((dense * weight).sum(), inputs)
    for _ in range(2):  # the second pass finds what was kept as the first found it
        for one, other in zip(torch.autograd.grad((ours * weight).sum(), inputs, retain_graph=True), expected, strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", [MoS, MoC])
def test_with_biases_from_counts_an_untrained_mixture_is_the_unigram_model(kind: type[MoS] | type[MoC]) -> None:
    """Contexts of 0 leave the biases alone: log((n + 1) / sum (n + 1)), whatever a vocabulary counted in other splits."""
    vocabulary = small_vocabulary()
    counts = np.arange(len(vocabulary)) ** 2
    resources = Resources(WIDTH, vocabulary, None, torch.nn.Embedding(len(vocabulary), SIZE))
    expected = np.log((counts + 1.0) / (counts + 1.0).sum())
    decoder = kind(kind.Settings(num_components=3), resources).double()
    torch.nn.init.zeros_(decoder.words.weight)
    decoder.begin_training(counts)
    found = decoder.log_probs(torch.randn(4, WIDTH, dtype=torch.float64)).detach().numpy()
    np.testing.assert_allclose(found, np.tile(expected, (4, 1)), atol=1e-12)
    assert abs(float(decoder.bias.detach().mean())) < 1e-12
    zero = kind(kind.Settings(num_components=3, bias_start="zero"), resources)
    zero.begin_training(counts)
    assert not zero.bias.any()
    kind(kind.Settings(word_bias=False), resources).begin_training(counts)


def test_the_softmax_starts_at_zero_unless_asked() -> None:
    vocabulary = small_vocabulary()
    resources = Resources(SIZE, vocabulary, None, torch.nn.Embedding(len(vocabulary), SIZE))
    counts = np.arange(len(vocabulary))
    usual, asked = Softmax(Softmax.Settings(), resources), Softmax(Softmax.Settings(bias_start="log_frequency"), resources)
    for decoder in (usual, asked):
        decoder.begin_training(counts)
    assert not usual.bias.any()
    torch.testing.assert_close(asked.bias.detach(), log_frequencies(counts).float())


def test_senses_share_the_frequency_of_their_word() -> None:
    vocabulary, graph = small_vocabulary(), small_graph()
    resources = Resources(SIZE, vocabulary, graph, torch.nn.Embedding(len(vocabulary), SIZE))
    decoder = MoSSDLM(MoSSDLM.Settings(num_components=2), resources).double()
    torch.nn.init.zeros_(decoder.senses.words.weight)
    counts = np.arange(len(vocabulary)) + 3
    decoder.begin_training(counts)
    found = decoder.log_probs(torch.randn(3, SIZE, dtype=torch.float64)).exp().detach().numpy()
    np.testing.assert_allclose(found, np.tile((counts + 1) / (counts + 1).sum(), (3, 1)), atol=1e-12)
    paper = MoSSDLM(MoSSDLM.Settings(num_components=2, preset="paper"), resources)
    paper.begin_training(counts)
    assert paper.senses.sense_bias is None
