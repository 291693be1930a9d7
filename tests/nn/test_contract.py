"""The contract of every module of ``sememekit.nn``, whatever the order of the ids."""

from __future__ import annotations

import copy
import io
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import sememekit.nn
from sememekit.errors import CheckpointError, ConfigError
from sememekit.nn import (
    AdaptiveSoftmax,
    ClassSoftmax,
    FullSoftmax,
    MixtureOfSememeSoftmaxes,
    MixtureOfSoftmaxes,
    OutputLayer,
    SampledSoftmax,
    SelfOrganizedSoftmax,
    SememeLSTM,
    SememeSoftmax,
    Senses,
    TreeSoftmax,
)
from tests.nn.cases import ALL, COUNTS, ENCODERS, LAYERS, SENSES, WIDTH, WORDS, Case, contexts, targets

each = pytest.mark.parametrize("case", ALL, ids=str)
each_layer = pytest.mark.parametrize("case", LAYERS, ids=str)


def test_every_public_module_has_a_case() -> None:
    made = {type(case.build()).__name__ for case in ALL}
    assert made == set(sememekit.nn.__all__) - {"Output", "OutputLayer", "Senses"}


@each_layer
def test_answers_agree_with_each_other(case: Case) -> None:
    layer, hidden, target = case.build().eval(), contexts(5, 3), targets(5, 3)
    assert isinstance(layer, OutputLayer)
    log_probs = layer.log_prob(hidden)
    torch.testing.assert_close(log_probs.exp().sum(dim=-1), torch.ones(5, 3), rtol=0, atol=1e-5)
    output, loss = layer(hidden, target)
    torch.testing.assert_close(output, log_probs.gather(-1, target[..., None])[..., 0], rtol=0, atol=1e-5)
    torch.testing.assert_close(loss, -output.mean())
    torch.testing.assert_close(layer.nll(hidden, target), -output)
    assert torch.equal(layer.predict(hidden), log_probs.argmax(dim=-1))
    values, words = layer.topk(hidden, 3)
    torch.testing.assert_close(values, log_probs.gather(-1, words), rtol=0, atol=1e-5)
    assert layer.predict(hidden[0, 0]).shape == ()


@each_layer
def test_ignored_targets_count_for_nothing(case: Case) -> None:
    layer, hidden, target = case.build().eval(), contexts(5, 3).requires_grad_(True), targets(5, 3)
    target[1] = -100
    output, loss = layer(hidden, target)
    keep = target != -100
    whole = layer(hidden[keep], target[keep])
    torch.testing.assert_close(loss, whole.loss)
    torch.testing.assert_close(output[keep], whole.output)
    assert (output[1] == 0).all()
    (grad,) = torch.autograd.grad(loss, hidden)
    assert (grad[1] == 0).all()
    assert (grad[0] != 0).any()
    assert layer(hidden, torch.full((5, 3), -100)).loss == 0


@pytest.mark.parametrize("name", ["AdaptiveSoftmax", "DifferentiatedSoftmax"])
def test_an_order_of_ids_decides_nothing(name: str) -> None:
    """The same words under other ids, with the weights of the first: the same distribution, word for word."""
    case = next(case for case in LAYERS if case.name == name)
    layer = case.build().eval()
    order = torch.tensor([4, 0, 6, 2, 5, 1, 3])
    kind = getattr(sememekit.nn, name)
    settings = {"cutoffs": (2, 4), "shrink": 2.0} if name == "AdaptiveSoftmax" else {"cutoffs": (2,), "widths": (4, 2)}
    other = kind(WIDTH, np.array(COUNTS)[order.numpy()], **settings).eval()
    assert other.rank_of_word.tolist() == layer.rank_of_word[order].tolist()
    other.layer.load_state_dict(layer.layer.state_dict())
    hidden = contexts(4)
    torch.testing.assert_close(other.log_prob(hidden), layer.log_prob(hidden)[:, order])
    torch.testing.assert_close(other.nll(hidden, torch.tensor([0, 1, 2, 3])), layer.nll(hidden, order[:4]))
    assert torch.equal(order[other.predict(hidden)], layer.predict(hidden))
    assert layer.rank_of_word[3] == 0


@each
def test_a_state_dict_makes_the_same_module(case: Case) -> None:
    module, other = case.build(seed=3), case.build(seed=4)
    for each_module in (module, other):
        each_module.eval()
    arguments = case.call()
    if list(module.parameters()):
        assert case.value(other(*arguments)) != case.value(module(*arguments))
    other.load_state_dict({name: tensor.clone() for name, tensor in module.state_dict().items()})
    torch.testing.assert_close(case.value(other(*arguments)), case.value(module(*arguments)), rtol=0, atol=0)


@each
def test_a_module_is_stored_whole(case: Case) -> None:
    module = case.build().eval()
    stored = io.BytesIO()
    torch.save(module, stored)
    stored.seek(0)
    arguments = case.call()
    for other in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module), torch.load(stored, weights_only=False)):
        torch.testing.assert_close(case.value(other(*arguments)), case.value(module(*arguments)), rtol=0, atol=0)
        other.load_state_dict(module.state_dict())  # calls the hooks


OTHER_SENSES = [[[0, 1], [3]], [[1]], [], [[2], [3, 0]], [[2, 3]], [[5]], [[1, 2, 3]]]
"""Sememes 2 and 3 of the first words changed places: all shapes are as in ``SENSES``."""
OF_OTHERS: list[tuple[OutputLayer, OutputLayer, OutputLayer]] = [
    (kind(WIDTH, *given), kind(WIDTH, *given), kind(WIDTH, *other))
    for kind, given, other in (
        (SememeSoftmax, [SENSES], [OTHER_SENSES]),
        (SememeSoftmax, [SENSES], [[[[f"{sememe}" for sememe in sense] for sense in word] for word in SENSES]]),
        (MixtureOfSememeSoftmaxes, [SENSES], [OTHER_SENSES]),
        (ClassSoftmax, [COUNTS], [COUNTS[::-1]]),
        (ClassSoftmax, [COUNTS, SENSES], [COUNTS, SENSES[::-1]]),
        (TreeSoftmax, [COUNTS], [COUNTS[::-1]]),
        (TreeSoftmax, [COUNTS], [COUNTS, SENSES]),
    )
]


@pytest.mark.parametrize(("layer", "alike", "other"), OF_OTHERS, ids=lambda layer: type(layer).__name__)
def test_a_state_dict_knows_whose_it_is(layer: OutputLayer, alike: OutputLayer, other: OutputLayer) -> None:
    state = layer.state_dict()
    assert {name for name, tensor in state.items() if tensor.shape != alike.state_dict()[name].shape} == set()
    alike.load_state_dict({name: tensor.double() for name, tensor in state.items()})  # as after taking means
    kept = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    for module, prefix in ((other, ""), (nn.ModuleDict({"output": other}), "output.")):
        with pytest.raises(CheckpointError, match=rf"{type(layer).__name__}: the state dict belongs to a layer with other"):
            module.load_state_dict({f"{prefix}{name}": tensor for name, tensor in state.items()})
    torch.testing.assert_close(dict(other.state_dict()), kept, rtol=0, atol=0)


def test_names_of_words_are_in_no_fingerprint() -> None:
    named = SememeSoftmax(WIDTH, Senses(SENSES, words=list("abcdefg")))
    named.load_state_dict(SememeSoftmax(WIDTH, SENSES).state_dict())


def test_a_state_dict_knows_the_order_of_other_counts() -> None:
    layer = AdaptiveSoftmax(WIDTH, COUNTS, cutoffs=(2, 4), shrink=2.0)
    other = AdaptiveSoftmax(WIDTH, WORDS, cutoffs=(2, 4), shrink=2.0)
    other.load_state_dict(layer.state_dict())
    torch.testing.assert_close(other.log_prob(contexts(2)), layer.log_prob(contexts(2)))


@each
def test_autocast(case: Case) -> None:
    module, arguments = case.build().eval(), case.call()
    exact = case.value(module(*arguments))
    with torch.autocast("cpu", torch.bfloat16):
        lowered = case.value(module(*arguments))
        lowered.backward()
    assert lowered.dtype == torch.float32
    assert abs(float(lowered.detach()) - float(exact.detach())) < 0.05 * max(1.0, abs(float(exact.detach())))
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in module.parameters())


@each_layer
@pytest.mark.parametrize("training", [True, False])
def test_probabilities_under_autocast_are_single(case: Case, training: bool) -> None:
    """Training is with sampled words where a layer draws any."""
    layer, hidden = case.build().train(training), contexts(5, 3)
    assert isinstance(layer, OutputLayer)
    with torch.autocast("cpu", torch.bfloat16):
        nats, log_probs, top = layer.nll(hidden, targets(5, 3)), layer.log_prob(hidden), layer.topk(hidden, 3)[0]
    assert nats.dtype == log_probs.dtype == top.dtype == torch.float32
    torch.testing.assert_close(log_probs.exp().sum(dim=-1), torch.ones(5, 3), rtol=0, atol=1e-5)


@each
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-5), (torch.bfloat16, 0.05)], ids=["double", "bfloat16"])
def test_weights_of_another_dtype(case: Case, dtype: torch.dtype, tolerance: float) -> None:
    module, arguments = case.build().eval(), case.call()
    expected = case.value(module(*arguments)).detach()
    changed = (part.to(dtype) if part.is_floating_point() else part for part in arguments)
    value = case.value(module.to(dtype)(*changed))
    value.backward()
    assert value.dtype == dtype
    torch.testing.assert_close(value.detach().to(expected.dtype), expected, rtol=tolerance, atol=tolerance)
    if not list(module.parameters()):
        return
    optimizer = torch.optim.SGD(module.train().parameters(), lr=0.1)
    for _ in range(2):  # in the second one clusters move
        optimizer.zero_grad()
        arguments = tuple(part.to(dtype) if part.is_floating_point() else part for part in case.call())
        case.value(module(*arguments)).backward()
        optimizer.step()
        if isinstance(module, OutputLayer):
            module.after_step()
    assert all(parameter.dtype == dtype and parameter.isfinite().all() for parameter in module.parameters())


@each
def test_generators_threads_and_numbers_of_others_are_left_alone(case: Case) -> None:
    torch.manual_seed(12)
    random.seed(12)
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.get_num_threads(), torch.get_default_dtype()
    module = case.make()
    module(*case.call())
    assert torch.initial_seed() == 12
    assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_num_threads(), torch.get_default_dtype()) == states


def test_importing_changes_no_environment() -> None:
    code = (
        "import os, torch; before = dict(os.environ), torch.initial_seed(), torch.get_num_threads(); import sememekit.nn; "
        "assert (dict(os.environ), torch.initial_seed(), torch.get_num_threads()) == before"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})


def test_a_shared_embedding_is_one_parameter() -> None:
    embedding = nn.Embedding(WORDS, WIDTH)
    layer = SememeSoftmax(WIDTH, SENSES, embedding=embedding)
    assert any(parameter is embedding.weight for parameter in layer.parameters())
    assert MixtureOfSoftmaxes(WIDTH, COUNTS, embedding=nn.Embedding(WORDS, 9)).log_prob(contexts(2)).shape == (2, WORDS)


@pytest.mark.parametrize(
    "make",
    [FullSoftmax, ClassSoftmax, partial(SelfOrganizedSoftmax, bias=True, gamma=3.0, frequency_budget=0.5)],
    ids=["words", "classes", "clusters"],
)
def test_counts_decide_where_biases_start(make: Callable[..., OutputLayer]) -> None:
    layer = make(WIDTH, COUNTS, bias_start="log_frequency")
    log_probs = layer.log_prob(torch.zeros(WIDTH)).exp()
    expected = torch.tensor(COUNTS) + 1.0
    torch.testing.assert_close(log_probs, expected / expected.sum())


def test_sampling_is_exact_in_evaluation_and_unbiased_for_the_normaliser() -> None:
    layer = SampledSoftmax(WIDTH, COUNTS, samples=4, samples_until="first-cut")
    hidden, target = contexts(3), targets(3)
    exact = layer.eval().nll(hidden, target)
    torch.manual_seed(0)
    found = torch.stack([layer.train().nll(hidden, target) for _ in range(4000)])
    assert found.std(dim=0).max() > 0
    own = layer.layer.scores(hidden).gather(1, target[:, None])[:, 0]
    torch.testing.assert_close((found + own).exp().mean(dim=0), (exact + own).exp(), rtol=0.03, atol=0)
    layer.stop_sampling()
    torch.testing.assert_close(layer.nll(hidden, target), exact)


def test_batch_first_shares_masks_over_time() -> None:
    layer = MixtureOfSoftmaxes(WIDTH, COUNTS, num_components=2, context_dropout=0.5, batch_first=True)
    hidden = contexts(1).expand(2, 9, WIDTH)  # (B, T, H): equal contexts at all times
    nats = layer.nll(hidden, torch.ones(2, 9, dtype=torch.int64))
    torch.testing.assert_close(nats, nats[:, :1].expand(2, 9))
    log_probs = layer.log_prob(hidden)
    assert log_probs.shape == (2, 9, WORDS)
    torch.testing.assert_close(log_probs, log_probs[:, :1].expand(2, 9, WORDS))


def test_masks_are_shared_over_time_beside_an_ignored_target() -> None:
    layer = SelfOrganizedSoftmax(WIDTH, COUNTS, gamma=3.0, frequency_budget=0.5, context_dropout=0.5, update_every=1000)
    hidden = contexts(1, 3).expand(6, 3, WIDTH)  # (T, B, H): equal contexts at all times
    target = torch.ones(6, 3, dtype=torch.int64)
    target[0, 0] = -100
    torch.manual_seed(1)
    output = layer(hidden, target).output
    assert output[0, 0] == 0
    assert torch.allclose(output[1:, 0], output[1, 0])
    assert torch.allclose(output[:, 1:], output[:1, 1:])


@each_layer
@pytest.mark.parametrize("rows", [4, WIDTH])
def test_batch_first_leaves_flat_contexts_as_they_are(case: Case, rows: int) -> None:
    layer, hidden, target = case.build().eval(), contexts(rows), targets(rows)
    assert isinstance(layer, OutputLayer)
    target[1] = -100
    answers = []
    for layer.batch_first in (False, True):
        nats, log_probs, best = layer.nll(hidden, target), layer.log_prob(hidden), layer.predict(hidden)
        answers.append([*layer(hidden, target), nats, log_probs, best, *layer.topk(hidden, 3)])
    assert all(torch.equal(one, other) for one, other in zip(*answers, strict=True))
    torch.testing.assert_close(layer.nll(hidden.view(rows, 1, WIDTH), target.view(rows, 1))[:, 0], answers[0][2])


def test_senses_and_gates_of_a_context() -> None:
    layer = SememeSoftmax(WIDTH, SENSES, num_bases=2)
    hidden = contexts(2, 3)
    senses, gates = layer.sense_log_prob(hidden).exp(), layer.sememe_gates(hidden)
    assert layer.sememes == (0, 1, 2, 3, 5, "<unk>")
    assert gates.shape == (2, 3, 6)
    torch.testing.assert_close(senses[..., :2].sum(dim=-1), layer.log_prob(hidden).exp()[..., 0])


@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_the_mean_loss_of_many_half_precision_targets_is_finite(case: Case) -> None:
    layer = case.build().half().eval()
    hidden, target = contexts(100, 400).half(), targets(100, 400)
    answer = layer(hidden, target)
    assert -answer.output.double().sum() > 65504, "what half precision cannot hold"
    assert answer.loss.dtype == torch.float16
    torch.testing.assert_close(answer.loss.double(), -answer.output.double().mean(), atol=0, rtol=2e-3)


def test_a_shared_embedding_that_changed_its_rows_is_refused() -> None:
    for kind, given in ((FullSoftmax, COUNTS), (SememeSoftmax, SENSES), (MixtureOfSoftmaxes, COUNTS)):
        embedding = nn.Embedding(WORDS, WIDTH)
        layer = kind(WIDTH, given, embedding=embedding)
        embedding.weight = nn.Parameter(torch.randn(WORDS + 3, WIDTH))
        for call in (layer.log_prob, layer.predict, lambda hidden, layer=layer: layer(hidden, targets(2))):
            with pytest.raises(ValueError, match="the shared embedding has 10 rows now, and the layer was built for 7 words"):
                call(contexts(2))


def test_wrong_arguments_are_told() -> None:
    for width in (0, -3, 4.0, True):
        with pytest.raises(ConfigError, match="in_features must be a whole number of 1 or more, given"):
            FullSoftmax(width, 7)
    with pytest.raises(ValueError, match="topk gives one word or more, given -1"):
        FullSoftmax(4, 7).topk(torch.randn(2, 4), -1)
    with pytest.raises(ValueError, match=r"contexts must be \(\.\.\., 4\), given \(\)"):
        FullSoftmax(4, 7).log_prob(torch.tensor(1.0))
    for key, nearest in (("bidirectionl", "bidirectional"), ("batchfirst", "batch_first"), ("num_sememe", "num_sememes")):
        with pytest.raises(ConfigError, match=rf"'{key}' \(did you mean '{nearest}'\?\); allowed: (?!.*output_size)"):
            SememeLSTM(4, 8, **{key: 1})
    with pytest.raises(ConfigError, match=r"'embeding' \(did you mean 'embedding'\?\); allowed: (?!.*(tied|senses|clusters))"):
        MixtureOfSoftmaxes(4, 8, embeding=None)
    with pytest.raises(ConfigError, match=r"SememeSoftmax: unknown key 'num_base' \(did you mean 'num_bases'\?\)"):
        SememeSoftmax(WIDTH, SENSES, num_base=2)
    with pytest.raises(ConfigError, match="'tied' follows from embedding="):
        FullSoftmax(WIDTH, COUNTS, tied=True)
    with pytest.raises(ConfigError, match=r"must be \(7, 6\), given \(7, 9\)"):
        FullSoftmax(WIDTH, COUNTS, embedding=nn.Embedding(WORDS, 9))
    with pytest.raises(ConfigError, match="the module and not its weight, given Parameter"):
        FullSoftmax(WIDTH, COUNTS, embedding=nn.Embedding(WORDS, WIDTH).weight)
    with pytest.raises(ConfigError, match=r"must be \(7, any width\), given \(8, 6\)"):
        MixtureOfSoftmaxes(WIDTH, COUNTS, embedding=nn.Embedding(8, WIDTH))
    for parts, told in (({"senses": SENSES}, "FullSoftmax reads no senses"), ({"clusters": [0, 1] * 3 + [0]}, "no clusters")):
        with pytest.raises(ConfigError, match=f"{told}; leave .*= out"):
            FullSoftmax(WIDTH, WORDS, **parts)
    with pytest.raises(ConfigError, match="TreeSoftmax reads no clusters"):
        TreeSoftmax(WIDTH, COUNTS, clusters=[0, 1] * 3 + [0])
    with pytest.raises(ConfigError, match="vectors of its own"):
        AdaptiveSoftmax(WIDTH, COUNTS, embedding=nn.Embedding(WORDS, WIDTH))
    for counts, told in ((0, "counts=0, where V must be 1 or more"), ([3, -1], r"\(V,\) numbers of 0 or more, given -1")):
        with pytest.raises(ConfigError, match=told):
            FullSoftmax(WIDTH, counts)
    with pytest.raises(ConfigError, match="counts=6, where there are 7 words"):
        SememeSoftmax(WIDTH, SENSES, 6)
    with pytest.raises(ConfigError, match="6 counts where there are 7 words"):
        SememeSoftmax(WIDTH, SENSES, COUNTS[:-1])
    assert ClassSoftmax(WIDTH, COUNTS, clusters=[0, 1, 1, 2, 0, 2, 2]).layer.clusters().tolist() == [0, 1, 1, 2, 0, 2, 2]
    with pytest.raises(ConfigError, match=r"clusters must be \(7,\) whole numbers of 0 or more, given \(2,\)"):
        ClassSoftmax(WIDTH, COUNTS, clusters=[0, 1])
    with pytest.raises(ConfigError, match="counts must be"):
        FullSoftmax(WIDTH, [1, -1])
    with pytest.raises(ConfigError, match=r"given only their number, 7; give \(V,\) counts, .* or update_every=0 for"):
        SelfOrganizedSoftmax(WIDTH, WORDS)
    assert SelfOrganizedSoftmax(WIDTH, WORDS, update_every=0).num_words == WORDS
    with pytest.raises(ValueError, match=r"contexts must be \(..., 6\), given \(2, 5\)"):
        FullSoftmax(WIDTH, COUNTS).log_prob(torch.zeros(2, 5))
    with pytest.raises(ValueError, match=r"targets must be \(2,\)"):
        FullSoftmax(WIDTH, COUNTS)(torch.zeros(2, WIDTH), torch.zeros(3, dtype=torch.int64))


def test_the_encoders_of_the_list() -> None:
    assert {type(case.build()).__name__ for case in ENCODERS} == {"SememeLSTM", "SememeGRU", "MogrifierLSTM", "AWDLSTM"}
