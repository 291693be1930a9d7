"""Every module goes through ``torch.compile`` as one graph and ``torch.export``, with the values and gradients of eager.

``aot_eager`` traces forward and backward pass as every backend needs them and runs the graphs without a C++ compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter

from sememekit.nn import AdaptiveSoftmax, SelfOrganizedSoftmax, SememeSoftmax
from tests.nn.cases import ALL, COUNTS, ENCODERS, LAYERS, SENSES, WIDTH, WORDS, Case, contexts, targets

pytestmark = pytest.mark.filterwarnings("ignore")
"""Compilers of torch warn of their own affairs."""

EACH_LENGTH = ("SememeLSTM", "SememeGRU", "MogrifierLSTM", "AWDLSTM", "MixtureOfSoftmaxes")
"""Modules that are compiled for each length: recurrences are unrolled."""


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    """torch's own LSTM, below AWDLSTM, needs ``allow_rnn``, and no backend that traces gradients takes the LSTM of oneDNN."""
    torch._dynamo.reset()
    with torch._dynamo.config.patch(allow_rnn=True), torch.backends.mkldnn.flags(enabled=False):
        yield


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.grad.clone() for name, parameter in module.named_parameters() if parameter.grad is not None}


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=str)
def test_compiled_as_one_graph(case: Case) -> None:
    module = case.build()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    found: list[tuple[Tensor, dict[str, Tensor]]] = []
    for one in (compiled, module):
        module.zero_grad()
        torch.manual_seed(5)  # sampled words
        value = case.value(one(*case.call()))
        if value.requires_grad:
            value.backward()
        found.append((value.detach(), gradients(module)))
    torch.testing.assert_close(found[0][0], found[1][0])
    assert found[0][1].keys() == found[1][1].keys()
    for name, grad in found[1][1].items():
        torch.testing.assert_close(found[0][1][name], grad, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=str)
def test_exported(case: Case) -> None:
    module, arguments = case.build().eval(), case.call()
    program = torch.export.export(module, arguments)
    value = case.value(program.module()(*arguments))
    torch.testing.assert_close(value, case.value(module(*arguments)))


@pytest.mark.slow
@pytest.mark.parametrize("case", [*LAYERS, *ENCODERS], ids=str)
def test_batches_of_other_lengths_are_compiled_once_more_and_no_further(case: Case) -> None:
    """The second length makes the length a variable of the graph, and every further one finds that graph."""
    counter = CompileCounter()
    compiled = torch.compile(case.build(), backend=counter, fullgraph=True)
    batches = [tuple(torch.cat([part] * 3)[:length] for part in case.call()) for length in (5, 6, 7, 9)]
    compiled(*batches[0])
    if str(case) == "SampledSoftmax":  # two numbers that are not known beforehand: the length, and how many words are distinct
        with pytest.raises(torch._dynamo.exc.UserError, match="data-dependent"):
            compiled(*batches[1])
        return
    for batch in batches[1:]:
        compiled(*batch)
    assert counter.frame_count <= 2 or str(case).split("-")[0] in EACH_LENGTH
    assert counter.frame_count == 4 or str(case).split("-")[0] not in EACH_LENGTH


class LogProb(nn.Module):
    """A module that a user would export to serve a model."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, hidden: Tensor) -> Tensor:
        return self.layer.log_prob(hidden)


@pytest.mark.slow
@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_probabilities_exported_for_any_number_of_contexts(case: Case) -> None:
    module = LogProb(case.build().eval()).eval()
    program = torch.export.export(module, (contexts(4),), dynamic_shapes={"hidden": {0: torch.export.Dim("N", min=2, max=64)}})
    torch.testing.assert_close(program.module()(contexts(9)), module(contexts(9)))


class Predict(LogProb):
    def forward(self, hidden: Tensor) -> Tensor:
        words: Tensor = self.layer.predict(hidden)
        return words


@pytest.mark.slow
@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_probabilities_and_words_exported_for_batches_of_any_shape(case: Case) -> None:
    shape = {"hidden": {0: torch.export.Dim("T", min=2, max=64), 1: torch.export.Dim("B", min=2, max=64)}}
    for kind in (LogProb, Predict):
        module = kind(case.build().eval()).eval()
        program = torch.export.export(module, (contexts(5, 3),), dynamic_shapes=shape)
        torch.testing.assert_close(program.module()(contexts(7, 4)), module(contexts(7, 4)))


def test_one_graph_without_sorting_by_targets() -> None:
    """A layer whose likelihood looks at the targets first, in the plainest backend; the rest is in the slow tests."""
    layer = AdaptiveSoftmax(WIDTH, COUNTS, cutoffs=(2, 4), shrink=2.0)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(contexts(5, 3), targets(5, 3)).loss, layer(contexts(5, 3), targets(5, 3)).loss)


@pytest.mark.slow
def test_a_compiled_graph_draws_no_senses() -> None:
    layer = SememeSoftmax(WIDTH, SENSES, COUNTS, num_bases=2, samples=4)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    value = compiled(contexts(5, 3), targets(5, 3)).loss
    torch.testing.assert_close(value, layer.eval()(contexts(5, 3), targets(5, 3)).loss)


@pytest.mark.slow
def test_compiled_statistics_of_clusters() -> None:
    """The statistics equal eager's, but for word 0 in a batch with ignored targets."""
    torch.manual_seed(0)
    layer = SelfOrganizedSoftmax(WIDTH, COUNTS, gamma=3.0, frequency_budget=0.5)
    other = SelfOrganizedSoftmax(WIDTH, COUNTS, gamma=3.0, frequency_budget=0.5)
    other.load_state_dict(layer.state_dict())
    compiled = torch.compile(other, backend="aot_eager", fullgraph=True)
    target = targets(5, 3)
    for ignored in (False, True):
        if ignored:
            target[1] = -100
        before = other.layer.scores[0].clone()
        layer(contexts(5, 3), target).loss.backward()
        compiled(contexts(5, 3), target).loss.backward()
        torch.testing.assert_close(other.layer.scores[1:WORDS], layer.layer.scores[1:WORDS])
        assert torch.equal(other.layer.scores[0], before) == ignored
