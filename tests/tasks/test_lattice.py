"""Lattice language models, held to a twin that goes edge by edge, to a list of all segmentations, and to finite differences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from sememekit.errors import ConfigError, DataError
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.tasks.lattice.model import Lattice
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary
from tests.small_run import SMALL_DECODERS
from tests.tasks.lattice_twin import Twin

VOCABULARY = Vocabulary.from_counts({"a": 9, "b": 8, "c": 7, "<eos>": 5, "<unk>": 2})
NGRAMS = ["a b", "b c", "a b c", "c <eos>"]
SENTENCES = ["a b c a b", "c", "", "b c <unk> a"]

SHAPES: dict[str, dict[str, Any]] = {
    "chain": {"longest_chunk": 1, "sub_model": False, "composition_size": 0},
    "L=1": {"longest_chunk": 1},
    "L=2": {"longest_chunk": 2},
    "L=3": {"longest_chunk": 3},
    "L=3, no n-grams": {"longest_chunk": 3, "num_chunks": 0},
    "E=2": {"longest_chunk": 1, "copies": 2, "sub_model": False, "composition_size": 0},
    "L=3, E=2": {"longest_chunk": 3, "copies": 2},
    "L=3, E=2, listed chunks only": {"longest_chunk": 3, "copies": 2, "sub_model": False},
    "as released": {
        "longest_chunk": 3,
        "inner_layers": 2,
        "inner_coupled": True,
        "token_vectors": "own",
        "sub_marks": "released",
        "start_mark": "b",
    },
}
RULES = ["direct", "marginal", "monte_carlo", "gumbel", "tree", "gumbel_tree", "segmental"]


def chunks() -> ChunkVocabulary:
    ngrams = [tuple(VOCABULARY.encode(words.split()).tolist()) for words in NGRAMS]
    return ChunkVocabulary(VOCABULARY, ngrams, [5, 4, 3, 2], max_length=3)


def ids(sentence: str) -> npt.NDArray[np.int64]:
    return np.append(VOCABULARY.encode(sentence.split()), VOCABULARY.end_id)


def model(
    rule: str, shape: str, coupled: bool = False, decoder: str = "softmax", encoder: str = "lattice_lstm", **more: Any
) -> Lattice:
    """A model in float64 whose probabilities are far from uniform."""
    task = {"name": "lattice", "state": rule, "embedding_size": 6, "sub_size": 5, "temperature": 0.7} | SHAPES[shape] | more
    own = {"coupled": coupled} if encoder == "lattice_lstm" else {}
    table = {
        "task": task,
        "encoder": {"name": encoder, "hidden_size": 7, **own},
        "decoder": {"name": decoder, **SMALL_DECODERS.get(decoder, {})},
    }
    made = build_task(read_plan(table, "case"), VOCABULARY, None, chunks=chunks()).double()
    torch.manual_seed(11)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    assert isinstance(made, Lattice)
    return made


def gradients(value: Tensor, task: Lattice) -> list[Tensor]:
    found = torch.autograd.grad(value, list(task.parameters()), allow_unused=True, retain_graph=True)
    return [torch.zeros_like(p) if grad is None else grad for p, grad in zip(task.parameters(), found, strict=True)]


FEW = ["L=2", "E=2", "L=3, E=2", "as released"]
"""Shapes that have everything in them; the others are for those who have the time."""
each_shape = pytest.mark.parametrize(
    "shape", [shape if shape in FEW else pytest.param(shape, marks=pytest.mark.slow) for shape in SHAPES]
)


@each_shape
@pytest.mark.parametrize("rule", RULES)
def test_values_and_gradients_are_those_of_the_twin(rule: str, shape: str) -> None:
    task, sentence = model(rule, shape, coupled=shape == "L=2"), ids("a b c a b")
    twin = Twin(task)
    torch.manual_seed(5)
    nats = task.loss(task.batch_of([sentence]), ()).nats
    torch.manual_seed(5)
    expected = -twin.log_probability(sentence.tolist())
    torch.testing.assert_close(nats, expected, rtol=0, atol=1e-10)
    for name, one, other in zip(dict(task.named_parameters()), gradients(nats, task), gradients(expected, task), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("rule", ["marginal", "tree", "gumbel", "gumbel_tree"])
def test_gradients_through_the_posterior(rule: str) -> None:
    """Gradients agree with the twin and finite differences; switched off, with finite differences at fixed M."""
    sentence, shape = ids("a b c a b"), "L=3, E=2"
    for switched in (True, False):
        task = model(rule, shape, posterior_gradient=switched)
        twin = Twin(task)

        def value(frozen: list[Tensor] | None = None, twin: Twin = twin) -> Tensor:
            torch.manual_seed(5)
            return twin.log_probability(sentence.tolist(), frozen)

        torch.manual_seed(5)
        nats = task.loss(task.batch_of([sentence]), ()).nats
        value()
        frozen = None if switched else twin.weights
        generator = torch.Generator().manual_seed(2)
        directions = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in task.parameters()]
        slope = sum(float((grad * way).sum()) for grad, way in zip(gradients(nats, task), directions, strict=True))
        ends = []
        for step in (1e-6, -2e-6):
            with torch.no_grad():
                for parameter, way in zip(task.parameters(), directions, strict=True):
                    parameter += step * way
                ends.append(-float(value(frozen)))
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


@each_shape
def test_segmental_is_the_sum_over_all_segmentations(shape: str) -> None:
    """Each segmentation and choice of copies written out, with the probabilities of the twin."""
    task = model("segmental", shape).eval()
    for sentence in SENTENCES:
        tokens = ids(sentence).tolist()
        twin = Twin(task)
        twin.log_probability(tokens)
        total = [torch.stack(path).sum() for path in paths(twin, 0, len(tokens))]
        found = task.lattices([ids(sentence)]).log_probabilities()[0]
        torch.testing.assert_close(found, torch.stack(total).logsumexp(0).detach(), rtol=0, atol=1e-10)


def paths(twin: Twin, begin: int, length: int) -> list[list[Tensor]]:
    if begin == length:
        return [[]]
    leaving = [edge for edge in twin.edges if edge[0] == begin]
    return [[twin.edges[edge], *rest] for edge in leaving for rest in paths(twin, edge[1], length)]


@pytest.mark.parametrize("shape", ["L=2", "E=2", "L=3, E=2"])
@pytest.mark.parametrize("rule", ["marginal", "segmental"])
def test_what_can_come_next_sums_to_one(rule: str, shape: str) -> None:
    """The sum is over all chunks, listed or not, and their copies; a listed chunk that cannot stand there plays no part."""
    task = model(rule, shape).eval()
    longest = task.settings.longest_chunk
    total = 0.0
    for length in range(1, longest + 1):
        for words in itertools.product(range(len(VOCABULARY)), repeat=length):
            if task.end in words[:-1]:
                continue
            closed = words[-1] == task.end
            sentence = np.array(words if closed else (*words, task.end))
            total += float(task.lattices([sentence]).scores[0, length - 1, length - 1].exp().sum())
    assert total == pytest.approx(1.0, abs=1e-10)


@each_shape
@pytest.mark.parametrize("rule", RULES)
def test_a_padded_sentence_scores_as_alone(rule: str, shape: str) -> None:
    task = model(rule, shape)
    together = task.lattices([ids(sentence) for sentence in SENTENCES])
    best = together.best()
    for row, sentence in enumerate(SENTENCES):
        alone = task.lattices([ids(sentence)])
        torch.testing.assert_close(alone.log_probabilities()[0], together.log_probabilities()[row], rtol=0, atol=1e-11)
        assert alone.best()[0] == best[row]
        length = int(alone.lengths[0])
        assert [(one.begin, two.end) for one, two in itertools.pairwise(best[row])] == [
            (one.begin, two.end) for one, two in itertools.pairwise(alone.best()[0])
        ]
        assert sum(segment.end - segment.begin for segment in best[row]) == length


@pytest.mark.parametrize("shape", ["L=3, E=2"])
@pytest.mark.parametrize("rule", RULES)
def test_gradients_of_a_batch_are_the_sum_of_its_rows(rule: str, shape: str) -> None:
    task = model(rule, shape).eval()
    batch = task.loss(task.batch_of([ids(sentence) for sentence in SENTENCES]), ())
    assert batch.count == sum(len(ids(sentence)) for sentence in SENTENCES)
    rows = [task.loss(task.batch_of([ids(sentence)]), ()).nats for sentence in SENTENCES]
    for one, other in zip(gradients(batch.nats, task), gradients(torch.stack(rows).sum(), task), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("rule", RULES)
def test_gradients_reach_every_parameter(rule: str) -> None:
    task = model(rule, "L=3, E=2")
    task.loss(task.batch_of([ids(sentence) for sentence in SENTENCES]), ()).nats.backward()
    for name, parameter in task.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad != 0).any(), name


@pytest.mark.parametrize("encoder", ["lstm", "gru", "awd_lstm", "mogrifier", "transformer"])
@pytest.mark.parametrize("rule", ["direct", "marginal", "gumbel", "segmental"])
def test_every_encoder_walks_a_lattice(rule: str, encoder: str) -> None:
    own = {"awd_lstm": {"dropout": 0.0, "weight_drop": 0.0}, "transformer": {"hidden_size": 8, "context": 4}}.get(encoder, {})
    table = {
        "task": {"name": "lattice", "state": rule, "embedding_size": 6, "longest_chunk": 3, "copies": 2, "sub_size": 5},
        "encoder": {"name": encoder, "hidden_size": 7, **own},
    }
    task = build_task(read_plan(table, "case"), VOCABULARY, None, chunks=chunks()).double()
    assert isinstance(task, Lattice)
    together = task.lattices([ids(sentence) for sentence in SENTENCES]).log_probabilities()
    for row, sentence in enumerate(SENTENCES):
        alone = task.lattices([ids(sentence)]).log_probabilities()[0]
        torch.testing.assert_close(alone, together[row], rtol=0, atol=1e-10)
    task.loss(task.batch_of([ids(sentence) for sentence in SENTENCES]), ()).nats.backward()
    assert all(parameter.grad is not None for parameter in task.parameters())


@pytest.mark.parametrize("decoder", ["mos", "adaptive", "class_hsm", "tree_hsm", "sampled", "differentiated", "self_organized"])
def test_every_decoder_of_words_alone_chooses_chunks(decoder: str) -> None:
    task = model("marginal", "L=3, E=2", decoder=decoder).eval()
    sentence = ids("a b c a b")
    expected = Twin(task).log_probability(sentence.tolist()).detach()
    torch.testing.assert_close(task.lattices([sentence]).log_probabilities()[0], expected, rtol=0, atol=1e-10)
    task.loss(task.batch_of([sentence]), ()).nats.backward()


def test_a_chain_is_a_plain_language_model() -> None:
    """L = 1, E = 1, no sub-model: the sum of what the decoder gives to each token, whatever the rule."""
    values = []
    for rule in RULES:
        task = model(rule, "chain").eval()
        assert task.marginal == "exact marginal"
        sentence = ids("a b c a b")
        tokens = torch.from_numpy(np.append(task.end, sentence))
        rows = task.word_rows[:, 0]
        hidden = task.encoder(task.embedding(rows[tokens[:-1]])[:, None], tokens[:-1, None], task.encoder.start(1)).hidden[:, 0]
        nats = task.decoder.nll(torch.tanh(task.output(hidden)), rows[tokens[1:]]).sum()
        torch.testing.assert_close(-task.lattices([sentence]).log_probabilities()[0], nats.detach(), rtol=0, atol=1e-11)
        values.append(float(nats.detach()))
    assert max(values) - min(values) < 1e-11


def test_dropout_is_the_same_along_a_sentence_and_gone_in_evaluation() -> None:
    table = {
        "task": {"name": "lattice", "embedding_size": 6, "longest_chunk": 2, "input_dropout": 0.5, "output_dropout": 0.5},
        "encoder": {"name": "lattice_lstm", "hidden_size": 7, "dropout": 0.5, "recurrent_dropout": 0.5},
    }
    task = build_task(read_plan(table, "case"), VOCABULARY, None, chunks=chunks())
    assert isinstance(task, Lattice)
    batch = task.batch_of([ids(sentence) for sentence in SENTENCES])
    torch.manual_seed(1)
    one, two = task.loss(batch, ()).nats, task.loss(batch, ()).nats
    assert not torch.equal(one, two)
    task.eval()
    assert torch.equal(task.loss(batch, ()).nats, task.loss(batch, ()).nats)
    masks = task.encoder.train().draw_masks(3)
    assert [mask.shape for mask in masks] == [(3, 7)] * 3


def test_the_temperature_falls_and_travels_with_the_weights() -> None:
    task = model("gumbel", "L=2", temperature=5.0, temperature_every=3, temperature_floor=4.9)
    assert task.temperature == 5.0
    for step in range(1, 4):
        task.after_step(step)
    assert task.temperature == pytest.approx(4.95)
    other = model("gumbel", "L=2", temperature=5.0, temperature_every=3, temperature_floor=4.9)
    other.load_state_dict(task.state_dict())
    assert other.temperature == pytest.approx(4.95)
    for step in range(4, 30):
        task.after_step(step)
    assert task.temperature == 4.9


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="chunk-length 4"):
        model("marginal", "L=3", longest_chunk=4)
    for rule in ("tree", "gumbel_tree"):
        with pytest.raises(ConfigError, match="lattice_lstm"):
            model(rule, "L=2", encoder="gru")
    with pytest.raises(ConfigError, match="softmax"):
        model("marginal", "L=2", decoder="sdlm")
    with pytest.raises(ConfigError, match="left to right"):
        model("marginal", "L=2", encoder="bilstm")
    other = Vocabulary.from_counts({"x": 3, "<eos>": 1})
    plan = read_plan({"task": {"name": "lattice"}}, "case")
    with pytest.raises(DataError, match="belong to the vocabulary"):
        build_task(plan, other, None, chunks=chunks())
    endless = Vocabulary.from_counts({"x": 3})
    with pytest.raises(ConfigError, match="end mark"):
        build_task(read_plan({"task": {"name": "lattice", "longest_chunk": 1}}, "case"), endless, None)
