"""Biases that start at log frequency make every output layer the unigram model before it has read a context."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sememekit.decoders import DECODERS
from sememekit.decoders.base import Decoder, Resources
from sememekit.decoders.bias_start import BiasStartSettings
from sememekit.runs.plan import read_plan, variant
from tests.small import small_graph, small_vocabulary

SIZE = 12
LAYERS: dict[str, dict[str, Any]] = {
    "class_hsm": {},
    "differentiated": {},
    "sampled": {},
    "sdlm": {},
    "self_organized": {"bias": True},
    "softmax": {},
    "tree_hsm": {},
}
"""Layers with biases whose scores of an empty context are these biases alone."""


def untrained(name: str, **settings: Any) -> Decoder:
    kind = variant("decoder", name)
    torch.manual_seed(5)
    vocabulary = small_vocabulary()
    resources = Resources(SIZE, vocabulary, small_graph(), nn.Embedding(len(vocabulary), SIZE))
    made: Decoder = kind(kind.Settings(**LAYERS[name], **settings), resources)
    made.begin_training(counts())
    return made.double().eval()


def counts() -> np.ndarray:
    """Return counts of the training text, which differ from the counts of the vocabulary; one word has none."""
    return np.arange(len(small_vocabulary())) ** 2


@pytest.mark.parametrize("name", LAYERS)
def test_an_empty_context_gives_the_frequencies_of_words(name: str) -> None:
    expected = (counts() + 1.0) / (counts() + 1.0).sum()
    found = untrained(name, bias_start="log_frequency").log_probs(torch.zeros(2, SIZE, dtype=torch.float64)).exp()
    np.testing.assert_allclose(found.detach().numpy(), np.tile(expected, (2, 1)), atol=1e-7)


@pytest.mark.parametrize("name", LAYERS)
def test_zero_and_no_plan_leave_the_biases_at_zero(name: str) -> None:
    for settings in ({"bias_start": "zero"}, {}):
        biases = {key: value for key, value in untrained(name, **settings).named_parameters() if key.endswith("bias")}
        assert biases
        assert not any(value.any() for value in biases.values())


def test_layers_without_biases_begin_all_the_same() -> None:
    for name in ("class_hsm", "differentiated", "softmax", "tree_hsm"):
        assert not any(
            key.endswith("bias") for key, _ in untrained(name, bias=False, bias_start="log_frequency").named_parameters()
        )
    untrained("sdlm", preset="paper", bias_start="log_frequency")


def start_in(plan: dict[str, Any]) -> Any:
    return read_plan(plan, "case").table()["decoder"]["bias_start"]


def test_every_layer_with_biases_is_tried() -> None:
    kinds = {name: variant("decoder", name).Settings for name in DECODERS}
    assert {name for name, kind in kinds.items() if issubclass(kind, BiasStartSettings)} == {*LAYERS, "mos_sdlm"}


def test_a_plan_holds_where_the_biases_start() -> None:
    """The optimiser decides the start, unless a recipe states it."""
    for name in LAYERS:
        decoder = {"decoder": {"name": name}}
        assert start_in(decoder) == "zero"
        assert start_in({**decoder, "optimizer": {"name": "sgd"}}) == "zero"
        for optimizer in ("adagrad", "adam"):
            adam = {**decoder, "optimizer": {"name": optimizer}}
            assert start_in(adam) == ("zero" if name == "tree_hsm" else "log_frequency")
        assert start_in({"decoder": {"name": name, "bias_start": "zero"}, "optimizer": {"name": "adam"}}) == "zero"
        stored = read_plan(adam, "case").table()
        assert read_plan(stored, "case").table() == stored
