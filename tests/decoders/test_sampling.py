"""Training with sampled words: the estimate has the mean that it claims, and its fast paths equal a slow twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sememekit.config import load_variant, read_settings
from sememekit.decoders import DECODERS
from sememekit.decoders.base import Resources, rate_was_cut
from sememekit.decoders.mos import MoS
from sememekit.decoders.sampling import Draw, NormalisedScores, estimated_nll
from sememekit.errors import ConfigError
from tests.small import small_graph, small_vocabulary

WIDTH, WORDS = 6, len(small_vocabulary())
LAYERS: list[tuple[str, dict[str, Any]]] = [
    ("softmax", {}),
    ("softmax", {"tied": False, "bias": False}),
    ("sdlm", {}),
    ("sdlm", {"preset": "paper", "normalisation": "symmetric", "tokens_per_block": 2}),
    ("sdlm", {"preset": "release-awd", "num_bases": 3}),
    ("moc", {"num_components": 3}),
    ("differentiated", {}),
    ("differentiated", {"tied": True, "cutoffs": (3,), "widths": (5, 1), "bias": False}),
    ("sampled", {}),
]
each_layer = pytest.mark.parametrize(("name", "settings"), LAYERS, ids=str)


def make(name: str, settings: dict[str, Any], **extra: Any) -> NormalisedScores:
    torch.manual_seed(6)
    kind = load_variant("decoder", name, DECODERS)
    embedding = torch.nn.Embedding(WORDS, WIDTH)
    resources = Resources(WIDTH, small_vocabulary(), small_graph(), embedding, np.zeros(WORDS, dtype=np.int64))
    layer = kind(read_settings(kind.Settings, {"samples": 4, **settings, **extra}, "case"), resources).double()
    assert isinstance(layer, NormalisedScores)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    return layer.train()


def contexts(*shape: int) -> Tensor:
    return torch.randn(*shape, WIDTH, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def proposal(power: float) -> Tensor:
    raised = torch.from_numpy(small_vocabulary().counts.copy()).double() ** power
    return raised / raised.sum()


def twin(layer: NormalisedScores, hidden: Tensor, target: Tensor, drawn: Tensor, q: Tensor) -> Tensor:
    """The estimated loss token by token and draw by draw, from a table of all scores."""
    losses = []
    for row, word in zip(layer.scores(hidden), target.tolist(), strict=True):
        rest = sum((row[v].exp() / q[v] for v in drawn.tolist() if v != word), start=torch.zeros((), dtype=torch.float64))
        losses.append((row[word].exp() + rest / len(drawn)).log() - row[word])
    return torch.stack(losses)


def test_every_layer_that_can_draw_words_has_a_case() -> None:
    kinds = {name: load_variant("decoder", name, DECODERS) for name in DECODERS}
    samplers = {name for name, kind in kinds.items() if "samples" in kind.Settings.model_fields}
    assert {name for name, _ in LAYERS} == {name for name in samplers if issubclass(kinds[name], NormalisedScores)}
    assert samplers - {name for name, _ in LAYERS} == {"mos", "mos_sdlm"}, "below, with several normalisers"


@each_layer
def test_scores_of_some_words_are_those_of_all(name: str, settings: dict[str, Any]) -> None:
    layer, hidden = make(name, settings).eval(), contexts(4, 3)
    words = torch.tensor([0, 2, 3, 7, 9])
    torch.testing.assert_close(layer.scores(hidden, words), layer.scores(hidden)[..., words], rtol=0, atol=1e-12)
    torch.testing.assert_close(layer.scores(hidden).log_softmax(-1), layer.log_probs(hidden), rtol=0, atol=1e-12)


@each_layer
@pytest.mark.parametrize("power", [0.0, 0.75, 1.0])
def test_the_estimate_and_its_gradients_equal_the_twin(name: str, settings: dict[str, Any], power: float) -> None:
    layer, hidden = make(name, settings, samples_power=power), contexts(9).requires_grad_(True)
    target, drawn = torch.arange(9), torch.tensor([0, 0, 3, 9, 1])
    ours = layer.sampled_nll(hidden, layer.sampler.arrange(target, drawn))
    expected = twin(layer, hidden, target, drawn, proposal(power))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)
    inputs, upstream = [hidden, *layer.parameters()], torch.rand(9, dtype=torch.float64)
    one, other = (torch.autograd.grad((nats * upstream).sum(), inputs) for nats in (ours, expected))
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-11)


@each_layer
def test_the_estimated_normaliser_has_the_right_mean(name: str, settings: dict[str, Any]) -> None:
    """The mean of exp(nll) over all single draws, weighted by their probability, equals exp of the exact loss."""
    layer = make(name, settings, samples=1)
    hidden, target = contexts(5), torch.tensor([0, 2, 4, 6, 9])
    draws = [layer.sampler.arrange(target, torch.tensor([word])) for word in range(WORDS)]
    mean = (proposal(0.75)[:, None] * torch.stack([layer.sampled_nll(hidden, draw).exp() for draw in draws])).sum(dim=0)
    torch.testing.assert_close(mean, layer.eval().nll(hidden, target).exp(), rtol=1e-10, atol=0)


@each_layer
def test_many_draws_come_near_the_exact_loss_and_evaluation_is_exact(name: str, settings: dict[str, Any]) -> None:
    layer = make(name, settings, samples=200_000)
    hidden, target = contexts(5, 2), torch.arange(10).view(5, 2)
    torch.manual_seed(0)
    estimate = layer.nll(hidden, target)
    assert estimate.shape == target.shape
    exact = -layer.eval().log_probs(hidden).gather(-1, target[..., None])[..., 0]
    torch.testing.assert_close(estimate, exact, rtol=0, atol=0.02)
    torch.testing.assert_close(layer.nll(hidden, target), exact, rtol=0, atol=1e-10)


@each_layer
def test_draws_come_from_torchs_generator_and_are_shared_by_the_batch(name: str, settings: dict[str, Any]) -> None:
    layer = make(name, settings, samples=3)
    hidden, target = contexts(1).expand(6, WIDTH), torch.zeros(6, dtype=torch.long)
    torch.manual_seed(4)
    one = layer.nll(hidden, target)
    torch.testing.assert_close(one, one[:1].expand(6))
    torch.manual_seed(4)
    assert torch.equal(layer.nll(hidden, target), one)
    others = [layer.nll(hidden, target) for _ in range(4)]
    assert not all(torch.equal(other, one) for other in others)
    assert layer.estimates_in_training


@each_layer
def test_training_is_exact_after_the_first_cut_where_that_is_asked_for(name: str, settings: dict[str, Any]) -> None:
    """A checkpoint remembers the cut; a layer that draws to the end does not change."""
    layer, hidden, target = make(name, settings, samples_until="first-cut"), contexts(7), torch.arange(7)
    other, exact = make(name, settings), make(name, settings).eval().nll(hidden, target)
    for each in (layer, other):
        assert each.estimates_in_training
        rate_was_cut(each)
    assert not layer.estimates_in_training
    assert other.estimates_in_training
    torch.testing.assert_close(layer.nll(hidden, target), exact, rtol=0, atol=1e-10)
    again = make(name, settings, samples_until="first-cut")
    again.load_state_dict(layer.state_dict())
    assert not again.estimates_in_training
    assert not any("sampler" in key for key in other.state_dict())


def test_repeated_draws_and_hits_of_the_target_are_corrected() -> None:
    """Words 3 (twice) and 1 drawn; target 3 is counted once and exactly, target 0 was not drawn and is nobody else's rival."""
    layer = make("softmax", {})
    draw: Draw = layer.sampler.arrange(torch.tensor([3, 0]), torch.tensor([3, 1, 3]))
    assert draw.words.tolist() == [0, 1, 3]
    assert draw.target.tolist() == [2, 0]
    q = proposal(0.75)
    expected = torch.tensor([-torch.inf, (1 / (3 * q[1])).log(), (2 / (3 * q[3])).log()], dtype=torch.float64)
    torch.testing.assert_close(draw.correction, expected)
    scores = torch.tensor([[0.3, 0.2, -0.5], [0.3, 0.2, -0.5]], dtype=torch.float64)
    e = scores.exp()
    normaliser = torch.stack([e[0, 2] + e[0, 1] / (3 * q[1]), e[1, 0] + e[1, 1] / (3 * q[1]) + 2 * e[1, 2] / (3 * q[3])])
    torch.testing.assert_close(estimated_nll(scores, draw), normaliser.log() - torch.tensor([-0.5, 0.3]).double())


def test_all_draws_may_hit_the_target() -> None:
    layer, hidden = make("sdlm", {}), contexts(2).requires_grad_(True)
    nats = layer.sampled_nll(hidden, layer.sampler.arrange(torch.tensor([3, 1]), torch.tensor([3, 3])))
    assert abs(nats[0].item()) < 1e-12
    nats.sum().backward()
    assert torch.isfinite(hidden.grad).all()


def test_the_components_of_a_mixture_share_the_draws() -> None:
    """With equal components a mixture of sememe-driven layers estimates what one of them does from the same draws."""
    kind = load_variant("decoder", "mos_sdlm", DECODERS)
    embedding = torch.nn.Embedding(WORDS, WIDTH)
    layer = kind(kind.Settings(num_components=2, samples=3), Resources(WIDTH, small_vocabulary(), small_graph(), embedding))
    layer = layer.double().train()
    hidden, target = contexts(5), torch.arange(5)
    with torch.no_grad():
        layer.mixture.projection.weight[WIDTH:] = layer.mixture.projection.weight[:WIDTH]
        layer.mixture.projection.bias[WIDTH:] = layer.mixture.projection.bias[:WIDTH]
    torch.manual_seed(2)
    both = layer.nll(hidden, target)
    torch.manual_seed(2)
    repeated = target.repeat_interleave(2)
    context = layer.mixture(hidden)[1].flatten(0, 1)
    torch.testing.assert_close(both, layer.senses.nll(context, repeated)[::2], rtol=0, atol=1e-10)
    assert layer.estimates_in_training


def test_the_mixture_of_sememe_driven_layers_estimates_each_normaliser_from_the_same_draws() -> None:
    """Components that differ: value and gradients against the sum over components, token by token and draw by draw."""
    torch.manual_seed(5)
    kind = load_variant("decoder", "mos_sdlm", DECODERS)
    resources = Resources(WIDTH, small_vocabulary(), small_graph(), torch.nn.Embedding(WORDS, WIDTH))
    layer = kind(kind.Settings(num_components=3, num_bases=2, samples=6), resources).double().train()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    hidden, target, q, expected = contexts(9).requires_grad_(True), torch.arange(9), proposal(0.75), []
    torch.manual_seed(3)
    drawn = torch.multinomial(layer.senses.sampler.log_proposal.exp(), 6, replacement=True)
    torch.manual_seed(3)
    ours = layer.nll(hidden, target)
    log_weights, vectors = layer.mixture(hidden)
    for row, weight, word in zip(layer.senses.scores(vectors), log_weights.exp(), target.tolist(), strict=True):
        rest = sum((row[:, v].exp() / q[v] for v in drawn.tolist() if v != word), start=torch.zeros(3).double())
        expected.append(-(weight * row[:, word].exp() / (row[:, word].exp() + rest / len(drawn))).sum().log())
    torch.testing.assert_close(ours, torch.stack(expected), rtol=0, atol=1e-12)
    inputs, upstream = [hidden, *layer.parameters()], torch.rand(9, dtype=torch.float64)
    one, other = (torch.autograd.grad((nats * upstream).sum(), inputs) for nats in (ours, torch.stack(expected)))
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-11)


def softmax_mixture(**settings: Any) -> MoS:
    torch.manual_seed(8)
    resources = Resources(WIDTH, small_vocabulary(), None, torch.nn.Embedding(WORDS, WIDTH))
    layer = MoS(MoS.Settings(num_components=3, **settings), resources).double().train()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    return layer


def test_the_mixture_of_softmaxes_estimates_each_normaliser_from_the_same_draws() -> None:
    """Value and gradients against the sum over components, token by token and draw by draw; exact in evaluation."""
    layer, hidden, drawn = softmax_mixture(samples=5), contexts(9).requires_grad_(True), torch.tensor([0, 0, 3, 9, 1])
    target, q, expected = torch.arange(9), proposal(0.75), []
    log_weights, vectors = layer.mixture(hidden)
    for row, weight, word in zip(vectors @ layer.words.weight.T + layer.bias, log_weights.exp(), target.tolist(), strict=True):
        rest = sum((row[:, v].exp() / q[v] for v in drawn.tolist() if v != word), start=torch.zeros(3).double())
        expected.append(-(weight * row[:, word].exp() / (row[:, word].exp() + rest / len(drawn))).sum().log())
    ours = layer.sampled_nll(hidden, layer.sampler.arrange(target, drawn)).view(-1)
    torch.testing.assert_close(ours, torch.stack(expected), rtol=0, atol=1e-12)
    inputs, upstream = [hidden, *layer.parameters()], torch.rand(9, dtype=torch.float64)
    one, other = (torch.autograd.grad((nats * upstream).sum(), inputs) for nats in (ours, torch.stack(expected)))
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-11)
    with torch.no_grad():
        exact = -layer.log_probs(hidden).gather(1, target[:, None])[:, 0]
    assert not torch.allclose(layer.nll(hidden, target), exact)
    torch.testing.assert_close(layer.eval().nll(hidden, target), exact, rtol=0, atol=1e-10)


def test_a_sampled_mixture_of_softmaxes_says_so_and_can_end_its_draws() -> None:
    layer, exact = softmax_mixture(samples=4, samples_until="first-cut"), softmax_mixture()
    assert layer.estimates_in_training
    assert not exact.estimates_in_training
    layer.after_rate_cut()
    assert not layer.estimates_in_training
    torch.testing.assert_close(layer.nll(contexts(7), torch.arange(7)), exact.nll(contexts(7), torch.arange(7)))

    with pytest.raises(ConfigError, match="greater than or equal to 1"):
        read_settings(load_variant("decoder", "sampled", DECODERS).Settings, {"samples": 0}, "case")
