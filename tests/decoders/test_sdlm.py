"""The sememe-driven layer against its equations."""

from __future__ import annotations

import itertools

import pytest
import torch

from sememekit.decoders import sense_logits, sense_structure
from sememekit.decoders.base import Resources
from sememekit.decoders.sdlm import PRESETS, SDLM
from tests.decoders.sdlm_twin import dense_log_probs
from tests.decoders.small_sdlm import WIDTH, make
from tests.small import small_graph, small_vocabulary


def test_the_graph_has_every_kind_of_word() -> None:
    graph = small_graph()
    senses = graph.sense_offsets[1:] - graph.sense_offsets[:-1]
    assert senses.min() == 1
    assert senses.max() >= 3
    assert not graph.annotated.all()
    assert graph.num_sets < graph.num_senses


@pytest.mark.parametrize(("preset", "normalisation"), list(itertools.product(PRESETS, ["left", "symmetric"])))
@pytest.mark.parametrize(
    ("block", "senses_per_block", "ranks", "kept_from"), [(1, 8, 1, 1), (3, 1, 2, 1), (3, 5, 2, 99), (100, 4096, 4, 1)]
)
def test_values_and_gradients_equal_the_dense_twin(
    preset: str,
    normalisation: str,
    block: int,
    senses_per_block: int,
    ranks: int,
    kept_from: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sense_structure, "SENSES_PER_BLOCK", senses_per_block)
    monkeypatch.setattr(sense_structure, "RANKS", ranks)
    monkeypatch.setattr(sense_logits, "KEPT_FROM", kept_from)
    equals_the_twin(preset, normalisation, block)


def equals_the_twin(preset: str, normalisation: str, block: int) -> None:
    decoder = make(preset=preset, normalisation=normalisation, num_bases=3, tokens_per_block=block)
    graph = small_graph()
    size = graph.num_words
    hidden = torch.randn(size + 3, WIDTH, dtype=torch.float64, requires_grad=True)
    target = torch.cat([torch.arange(size), torch.tensor([0, 0, 1])])
    upstream = torch.rand(len(target), dtype=torch.float64)

    twin = -dense_log_probs(decoder, graph, hidden, normalisation == "symmetric").gather(1, target[:, None])[:, 0]
    inputs = [hidden, *decoder.parameters()]
    expected = torch.autograd.grad((twin * upstream).sum(), inputs)
    ours = decoder.nll(hidden, target)
    actual = torch.autograd.grad((ours * upstream).sum(), inputs)

    torch.testing.assert_close(ours, twin, rtol=0, atol=1e-9)
    for name, one, other in zip(["hidden", *dict(decoder.named_parameters())], actual, expected, strict=True):
        assert other.abs().max() > 1e-6, f"the twin does not depend on {name}: the test would be blind"
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}")


def test_gradients_under_autocast_are_near_those_of_the_twin() -> None:
    """Contexts come in bfloat16 there; of a product of halves only the factors are rounded, sums and gradients are not."""
    decoder, target = make(num_bases=3), torch.arange(40) % small_graph().num_words
    hidden = torch.randn(40, WIDTH).bfloat16()
    exact = hidden.double().requires_grad_(True)
    twin = -dense_log_probs(decoder, small_graph(), exact, symmetric=False).gather(1, target[:, None])[:, 0]
    expected = torch.autograd.grad(twin.sum(), [exact, *decoder.parameters()])
    decoder.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = decoder.nll(hidden.requires_grad_(True), target)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours.double(), twin, rtol=0, atol=0.05)
    for one, other in zip(torch.autograd.grad(ours.sum(), [hidden, *decoder.parameters()]), expected, strict=True):
        assert (one.double() - other).norm() < 0.02 * other.norm()


def test_second_derivatives_are_refused() -> None:
    decoder = make(num_bases=2)
    loss = decoder.nll(torch.randn(4, WIDTH, dtype=torch.float64), torch.arange(4)).mean()
    with pytest.raises(RuntimeError, match="can be differentiated once"):
        torch.autograd.grad(loss, list(decoder.parameters()), create_graph=True)


def test_log_probs_equal_the_twin_and_carry_gradients() -> None:
    decoder = make(num_bases=2)
    hidden = torch.randn(5, WIDTH, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, small_graph().num_words, dtype=torch.float64)
    twin = dense_log_probs(decoder, small_graph(), hidden, symmetric=False)
    ours = decoder.log_probs(hidden)
    torch.testing.assert_close(ours, twin, rtol=0, atol=1e-9)
    inputs = [hidden, *decoder.parameters()]
    for one, other in zip(
        torch.autograd.grad((ours * weight).sum(), inputs), torch.autograd.grad((twin * weight).sum(), inputs), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


def test_extreme_contexts_give_finite_losses_and_gradients() -> None:
    decoder = make(num_bases=3).float()
    hidden = (torch.randn(40, WIDTH) * 300.0).requires_grad_(True)
    target = torch.arange(40) % small_graph().num_words
    nats = decoder.nll(hidden, target)
    assert nats.max() > 100.0, "the case must reach where a linear-space softmax underflows"
    nats.sum().backward()
    assert torch.isfinite(nats).all()
    assert torch.isfinite(decoder.log_probs(hidden)).all()
    for parameter in [hidden, *decoder.parameters()]:
        assert torch.isfinite(parameter.grad).all()


@pytest.mark.parametrize(("enabled", "frozen"), [(True, False), (False, False), (True, True)])
def test_products_are_kept_for_a_backward_pass_alone(enabled: bool, frozen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    learns = enabled and not frozen
    buffers, plain = [], sense_logits._products

    def products(words_vE: torch.Tensor, context_RnE: torch.Tensor, buffer: torch.Tensor | None) -> torch.Tensor:
        buffers.append(buffer)
        return plain(words_vE, context_RnE, buffer)

    monkeypatch.setattr(sense_logits, "KEPT_FROM", 1)
    monkeypatch.setattr(sense_logits, "_products", products)
    with torch.set_grad_enabled(enabled):
        make().requires_grad_(not frozen).nll(torch.randn(3, WIDTH, dtype=torch.float64), torch.arange(3))
    assert buffers
    assert all((buffer is None) == learns for buffer in buffers)


def test_the_identity_start_is_near_a_tied_softmax() -> None:
    torch.manual_seed(0)
    vocabulary = small_vocabulary()
    embedding = torch.nn.Embedding(len(vocabulary), WIDTH)
    decoders = {
        start: SDLM(SDLM.Settings(start=start, num_bases=3), Resources(WIDTH, vocabulary, small_graph(), embedding))
        for start in ("identity", "published")
    }
    hidden = torch.randn(200, WIDTH) * 0.3
    scores = hidden @ embedding.weight.T
    senses = torch.from_numpy(small_graph().sense_offsets.copy())
    softmax = (scores + (senses[1:] - senses[:-1]).log()).log_softmax(dim=1)
    far = {name: float((decoder.log_probs(hidden) - softmax).detach().abs().mean()) for name, decoder in decoders.items()}
    assert far["identity"] < 0.2 * far["published"]


def test_a_mask_on_the_word_vectors_is_the_same_for_the_whole_batch() -> None:
    decoder = make(num_bases=2, vector_dropout=0.5).train()
    hidden = torch.randn(1, 1, WIDTH, dtype=torch.float64).expand(4, 3, WIDTH)
    nats = decoder.nll(hidden, torch.zeros(4, 3, dtype=torch.long))
    torch.testing.assert_close(nats, nats[:1, :1].expand(4, 3))
    different = decoder.nll(hidden, torch.zeros(4, 3, dtype=torch.long))
    assert not torch.allclose(nats, different)


def test_a_mask_on_the_contexts_is_shared_over_time_but_not_over_sequences() -> None:
    decoder = make(num_bases=2, context_dropout=0.5).train()
    hidden = torch.randn(1, 1, WIDTH, dtype=torch.float64).expand(4, 5, WIDTH)
    nats = decoder.nll(hidden, torch.zeros(4, 5, dtype=torch.long))
    torch.testing.assert_close(nats, nats[:1].expand(4, 5))
    assert len(set(nats[0].tolist())) > 1


def test_presets_name_the_variants_of_the_paper_and_its_release() -> None:
    assert make(preset="paper").sense_bias is None
    assert make(preset="release").sense_bias is not None
    awd = make(preset="release-awd")
    assert awd.gate.bias is None
    assert awd.settings.context_tanh
    assert awd.settings.num_bases == 10
    assert SDLM.Settings(preset="paper", sense_bias=True).sense_bias


def test_evidence_adds_up() -> None:
    decoder = make(num_bases=2)
    hidden = torch.randn(WIDTH, dtype=torch.float64)
    words = torch.arange(small_graph().num_words)
    evidence = decoder.sense_attribution(hidden, words)
    assert len(evidence.sememe_gates) == small_graph().num_sememes
    for word, senses in enumerate(evidence.word_senses):
        assert sum(share for _, share in senses) == pytest.approx(1.0)
        assert {sense for sense, _ in senses} == set(
            range(small_graph().sense_offsets[word], small_graph().sense_offsets[word + 1])
        )
