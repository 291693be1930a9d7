"""The contract of output layers, tested on each. A new layer adds its cases here; see docs/adding-a-decoder.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from sememekit.config import load_variant, read_settings
from sememekit.decoders import DECODERS
from sememekit.decoders.base import Clustered, Decoder, Resources, Sensed
from sememekit.errors import ConfigError
from sememekit.layers import evaluating
from tests.small import small_graph, small_vocabulary

WIDTH = 6
WORDS = len(small_vocabulary())


CLUSTERS = np.array([3, 0, 0, 5, 3, 3, 0, 7, 7, 3])
"""Clusters of several words and of one, and numbers without words, as learned clusters may have them."""


def resources() -> Resources:
    """Everything that a decoder may ask for."""
    return Resources(WIDTH, small_vocabulary(), small_graph(), torch.nn.Embedding(WORDS, WIDTH), CLUSTERS)


@dataclass(frozen=True)
class Case:
    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    constant: tuple[str, ...] = ()
    """Parameters that these settings make meaningless, so that no gradient reaches them."""

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{key}={value}" for key, value in self.settings.items())])

    def make(self, **extra: Any) -> Decoder:
        """The decoder in float64 with every parameter moved away from where it starts."""
        torch.manual_seed(7)
        kind = load_variant("decoder", self.name, DECODERS)
        decoder = kind(read_settings(kind.Settings, {**self.settings, **extra}, "case"), resources()).double()
        with torch.no_grad():
            for parameter in decoder.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
        return decoder.eval()


CASES = [
    Case("softmax"),
    Case("softmax", {"tied": False}),
    Case("softmax", {"bias": False}),
    Case("sdlm"),
    Case("sdlm", {"num_bases": 1, "tied": False}, constant=("mixing",)),
    Case("sdlm", {"preset": "paper", "normalisation": "symmetric"}),
    Case("sdlm", {"preset": "release", "tokens_per_block": 2}),
    Case("sdlm", {"preset": "release-awd", "num_bases": 3, "vector_dropout": 0.4, "context_dropout": 0.4}),
    Case("mos", {"num_components": 3, "context_dropout": 0.4}),
    Case("mos", {"num_components": 2, "tied": False, "word_bias": False, "prior_bias": True}),
    Case("moc", {"num_components": 3, "context_dropout": 0.4}),
    Case("class_hsm"),
    Case("class_hsm", {"num_classes": 4, "tied": False, "bias": False}),
    Case("class_hsm", {"classes": "sememes"}),
    Case("class_hsm", {"classes": "file"}),
    Case("class_hsm", {"num_classes": 1}, constant=("classes.weight", "classes.bias")),
    Case("tree_hsm"),
    Case("tree_hsm", {"tree": "sememes", "bias": False}),
    Case("differentiated"),
    Case("differentiated", {"tied": True, "cutoffs": (3,), "widths": (5, 1), "bias": False}),
    Case("softmax", {"samples": 4}),
    Case("sdlm", {"samples": 4, "samples_until": "first-cut"}),
    Case("moc", {"num_components": 3, "samples": 4}),
    Case("differentiated", {"samples": 4}),
    Case("mos_sdlm", {"num_components": 2, "samples": 4}),
    Case("sampled", {"samples": 4}),
    Case("sampled", {"tied": False, "samples_power": 1.0, "bias": False}),
    Case("mos_sdlm", {"num_components": 2, "mixture_dropout": 0.4, "vector_dropout": 0.4, "context_dropout": 0.4}),
    Case("mos_sdlm", {"tied": False, "preset": "release-awd", "num_bases": 2}),
    Case("self_organized", {"start": "random"}),
    Case("self_organized", {"start": "random", "tied": False, "bias": True, "num_clusters": 3, "frequency_budget": 0.5}),
    Case("self_organized", {"projection": "none", "context_dropout": 0.4}),
    Case("self_organized", {"projection": "tanh"}),
    Case("self_organized", {"start": "file", "smoothing": "printed", "update_every": 1, "context_dropout": 0.4}),
    Case("adaptive", {"shrink": 2.0}),
    Case("adaptive", {"cutoffs": (4,), "shrink": 1.0, "head_bias": True}),
]
ANY_SIZE = {"moc", "mos", "mos_sdlm", "self_organized"}
"""Decoders that make contexts of the embedding's size, whatever that is."""

SHAPES = [(), (1,), (7,), (4, 3), (5, 1)]
each_case = pytest.mark.parametrize("case", CASES, ids=str)


def contexts(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(11)
    return torch.randn(*shape, WIDTH, generator=generator, dtype=torch.float64)


def targets(*shape: int) -> torch.Tensor:
    """Every word is a target in the larger shapes."""
    return (torch.arange(torch.Size(shape).numel()) % WORDS).reshape(shape)


def test_every_decoder_has_a_case() -> None:
    assert {case.name for case in CASES} == set(DECODERS)


@each_case
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_are_distributions(case: Case, shape: tuple[int, ...]) -> None:
    log_probs = case.make().log_probs(contexts(*shape))
    assert log_probs.shape == (*shape, WORDS)
    total = log_probs.exp().sum(dim=-1)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-9)
    assert (log_probs <= 1e-12).all()


@each_case
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_loss_is_the_gathered_log_probability(case: Case, shape: tuple[int, ...]) -> None:
    decoder, hidden, target = case.make(), contexts(*shape), targets(*shape)
    nats = decoder.nll(hidden, target)
    assert nats.shape == shape
    expected = -decoder.log_probs(hidden).gather(-1, target.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(nats, expected, rtol=0, atol=1e-9)


@each_case
def test_both_paths_have_the_same_gradients(case: Case) -> None:
    decoder, hidden, target = case.make(), contexts(4, 3).requires_grad_(True), targets(4, 3)
    inputs = [hidden, *decoder.parameters()]
    one = torch.autograd.grad(decoder.nll(hidden, target).square().sum(), inputs)
    gathered = -decoder.log_probs(hidden).gather(-1, target.unsqueeze(-1)).squeeze(-1)
    other = torch.autograd.grad(gathered.square().sum(), inputs)
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-9)


@each_case
def test_several_words_a_context_in_several_calls(case: Case) -> None:
    """Values and gradients equal the gathered log-probabilities, a word asked for twice included."""
    decoder, hidden = case.make(), contexts(7).requires_grad_(True)
    words = (torch.arange(7)[:, None] + torch.tensor([0, 3, 3])) % WORDS
    inputs, weight = [hidden, *decoder.parameters()], torch.arange(21.0).view(7, 3)
    chosen = decoder.chosen_log_probs()
    found = torch.cat([chosen(hidden[:2], words[:2]), chosen(hidden[2:], words[2:])])
    expected = decoder.log_probs(hidden).gather(-1, words)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    one = torch.autograd.grad((found.square() * weight).sum(), inputs)
    other = torch.autograd.grad((expected.square() * weight).sum(), inputs)
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-7)
    with torch.no_grad():
        torch.testing.assert_close(decoder.chosen_log_probs()(hidden, words), expected, rtol=0, atol=1e-9)


@each_case
@pytest.mark.parametrize("count", [1, 4, WORDS, WORDS + 5])
def test_the_likeliest_words_are_those_of_the_largest_log_probabilities(case: Case, count: int) -> None:
    decoder, hidden = case.make(), contexts(9)
    with torch.no_grad():
        values, words = decoder.topk_words(hidden, count)
        expected = decoder.log_probs(hidden)
    assert values.shape == words.shape == (9, min(count, WORDS))
    torch.testing.assert_close(values, expected.topk(min(count, WORDS)).values, rtol=0, atol=1e-9)
    torch.testing.assert_close(expected.gather(1, words), values, rtol=0, atol=1e-9)
    assert all(len(set(row)) == len(row) for row in words.tolist())


@each_case
def test_memory_of_the_likeliest_words_is_bounded(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contexts go through in parts, and nothing changes."""
    decoder, hidden = case.make(), contexts(9)
    with torch.no_grad():
        values, words = decoder.topk_words(hidden, 3)
        monkeypatch.setattr("sememekit.decoders.base.LARGEST_TABLE", 4 * WORDS)
        in_parts, same = decoder.topk_words(hidden, 3)
    torch.testing.assert_close(in_parts, values, rtol=0, atol=1e-12)
    assert torch.equal(words, same)


@each_case
def test_a_batch_equals_its_rows(case: Case) -> None:
    decoder, hidden, target = case.make(), contexts(4, 3), targets(4, 3)
    together, distributions = decoder.nll(hidden, target), decoder.log_probs(hidden)
    for time in range(4):
        for row in range(3):
            torch.testing.assert_close(decoder.nll(hidden[time, row], target[time, row]), together[time, row])
            torch.testing.assert_close(decoder.log_probs(hidden[time, row]), distributions[time, row])


@each_case
def test_no_dropout_in_evaluation_and_again_in_training(case: Case) -> None:
    decoder, hidden, target = case.make(), contexts(4, 3), targets(4, 3)
    before = decoder.nll(hidden, target)
    assert torch.equal(before, decoder.nll(hidden, target))
    drops = any("dropout" in key for key in case.settings) or decoder.estimates_in_training
    torch.manual_seed(1)
    decoder.train()
    one, two = decoder.nll(hidden, target), decoder.nll(hidden, target)
    assert torch.equal(one, two) == (not drops)
    assert torch.equal(before, decoder.eval().nll(hidden, target))


@each_case
def test_gradients_reach_every_parameter_in_training(case: Case) -> None:
    decoder = case.make().train()
    torch.manual_seed(3)
    hidden = contexts(20, 3).requires_grad_(True)
    (decoder.nll(hidden, targets(20, 3)) * torch.rand(20, 3)).sum().backward()
    for name, parameter in [("hidden", hidden), *decoder.named_parameters()]:
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert (parameter.grad != 0).any() == (name not in case.constant), name


@each_case
def test_no_context_gives_no_losses(case: Case) -> None:
    decoder = case.make()
    assert decoder.nll(contexts(0), targets(0)).shape == (0,)
    assert decoder.log_probs(contexts(0)).shape == (0, WORDS)


@each_case
def test_single_precision_is_near_double(case: Case) -> None:
    decoder, hidden, target = case.make(), contexts(4, 3), targets(4, 3)
    exact = decoder.nll(hidden, target)
    single = decoder.float().nll(hidden.float(), target)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), exact, rtol=1e-4, atol=1e-4)
    total = decoder.log_probs(hidden.float()).exp().sum(dim=-1)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-5)


@each_case
def test_bfloat16_products_give_losses_in_full_precision(case: Case) -> None:
    decoder, hidden, target = case.make().float(), contexts(4, 3).float(), targets(4, 3)

    def answers() -> list[torch.Tensor]:
        found = [decoder.nll(hidden, target), decoder.log_probs(hidden)]
        if isinstance(decoder, Sensed):
            senses = decoder.sense_probabilities(hidden.flatten(0, 1))
            found += [senses.log_senses_NS, senses.gates_NK]
        return found

    exact = answers()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        lowered = answers()
    assert lowered[0].dtype == torch.float32, "the losses"
    torch.testing.assert_close([value.float() for value in lowered], exact, rtol=0.2, atol=0.2)


@each_case
def test_biases_are_not_rounded_to_bfloat16(case: Case) -> None:
    """With tables of zeros the scores are sums of biases alone, which bfloat16 would round by up to 0.03."""
    decoder, hidden, target = case.make().float(), contexts(4, 3).float(), targets(4, 3)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 5 if parameter.ndim == 1 else torch.zeros(parameter.shape))
    decoder.train()

    def answers() -> list[torch.Tensor]:
        torch.manual_seed(2)  # sampled words, where a case has any, are those of the other call
        with evaluating(decoder):
            exact = [decoder.nll(hidden, target), decoder.log_probs(hidden), decoder.topk_words(hidden.flatten(0, 1), 2)[0]]
        return [*exact, decoder.nll(hidden, target)]

    exact = answers()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        lowered = answers()
    torch.testing.assert_close(lowered, exact, rtol=0, atol=1e-5)


@each_case
def test_parts_of_the_loss_add_up(case: Case) -> None:
    decoder, hidden, target = case.make(), contexts(4, 3), targets(4, 3)
    parts = decoder.nll_parts(hidden, target)
    assert all(part.shape == target.shape and (part >= -1e-12).all() for part in parts.values())
    if parts:
        torch.testing.assert_close(torch.stack([*parts.values()]).sum(dim=0), decoder.nll(hidden, target))


@each_case
def test_clusters_are_none_or_one_for_each_word(case: Case) -> None:
    decoder = case.make()
    assert isinstance(decoder, Clustered) == (case.name.split()[0] in {"class_hsm", "self_organized"})
    if isinstance(decoder, Clustered):
        clusters = decoder.clusters()
        assert clusters.shape == (WORDS,)
        assert ((clusters >= 0) & (clusters < decoder.num_clusters)).all()


@each_case
def test_evidence_is_none_or_adds_up(case: Case) -> None:
    decoder = case.make()
    assert isinstance(decoder, Sensed) == (case.name.split()[0] in {"sdlm", "mos_sdlm"})
    if isinstance(decoder, Sensed):
        evidence = decoder.sense_attribution(contexts(), torch.arange(WORDS))
        assert [sum(share for _, share in senses) for senses in evidence.word_senses] == pytest.approx([1.0] * WORDS)


@each_case
@torch.no_grad()
def test_probabilities_of_senses_are_none_or_add_up_to_those_of_words(case: Case) -> None:
    decoder, hidden, graph = case.make(), contexts(3), small_graph()
    if isinstance(decoder, Sensed):
        found, evidence = decoder.sense_probabilities(hidden), decoder.sense_attribution(hidden[1], torch.arange(WORDS))
        senses = found.log_senses_NS.exp()
        words = torch.zeros(3, WORDS).double().index_add(1, torch.from_numpy(graph.word_of_sense.copy()), senses)
        torch.testing.assert_close(words, decoder.log_probs(hidden).exp())
        for word, shares in enumerate(evidence.word_senses):
            for sense, share in shares:
                assert float(senses[1, sense] / words[1, word]) == pytest.approx(share)
        assert found.gates_NK[1].tolist() == pytest.approx(evidence.sememe_gates)


@each_case
def test_weights_come_back(case: Case) -> None:
    decoder, hidden, target = case.make(), contexts(4, 3), targets(4, 3)
    expected = decoder.nll(hidden, target)
    twin = case.make()
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    twin.load_state_dict(decoder.state_dict())
    assert torch.equal(twin.nll(hidden, target), expected)


@each_case
def test_what_a_decoder_needs_is_asked_for(case: Case) -> None:
    kind = load_variant("decoder", case.name, DECODERS)
    settings = read_settings(kind.Settings, case.settings, "case")
    for need in kind.needs(settings):
        with pytest.raises(ConfigError, match=need):
            kind(settings, resources()._replace(**{need: None}))


@pytest.mark.parametrize(
    "name", [name for name in DECODERS if "tied" in load_variant("decoder", name, DECODERS).Settings.model_fields]
)
def test_a_tied_layer_wants_an_embedding_of_its_width(name: str) -> None:
    kind = load_variant("decoder", name, DECODERS)
    narrow = Resources(WIDTH, small_vocabulary(), small_graph(), torch.nn.Embedding(WORDS, WIDTH - 1))
    if name in ANY_SIZE:
        assert kind(kind.Settings(tied=True), narrow).log_probs(contexts(2).float()).shape == (2, WORDS)
    else:
        with pytest.raises(ConfigError, match=rf"{name}.*{WIDTH - 1}.*{WIDTH}.*embedding_size={WIDTH}"):
            kind(kind.Settings(tied=True), narrow)
    without = Resources(WIDTH, small_vocabulary(), small_graph(), None)
    with pytest.raises(ConfigError, match=r"offers no embedding; set decoder\.tied=false"):
        kind(kind.Settings(tied=True), without)
    kind(kind.Settings(tied=False), without)
