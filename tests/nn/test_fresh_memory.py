"""Modules that are built without memory, or that lose it, and get their weights from a state dict."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from sememekit.nn import SelfOrganizedSoftmax, SememeSoftmax
from tests.nn.cases import ALL, COUNTS, LAYERS, SENSES, WIDTH, Case, contexts, targets

SHARED = next(case for case in LAYERS if case.name == "SememeSoftmax")


def garbage(tensor: Tensor, device: str = "cpu") -> Tensor:
    """Memory as an allocator may give it: numbers that are no ids of anything."""
    fresh = torch.empty_like(tensor, device=device)
    return fresh.random_(-(2**20), 2**20)


def values(case: Case, module: nn.Module) -> list[Tensor]:
    """Return the module's answers in evaluation, and in training from the same seed, with the gradients."""
    found = []
    for training in (False, True):
        module.train(training)
        module.zero_grad()
        torch.manual_seed(5)
        value = case.value(module(*case.call()))
        found.append(value.detach())
        if training and any(parameter.requires_grad for parameter in module.parameters()):
            value.backward()
            found += [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    return found


def same(first: list[Tensor], second: list[Tensor]) -> bool:
    return len(first) == len(second) and all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("case", ALL, ids=str)
def test_a_module_of_the_meta_device_takes_a_state_dict(case: Case) -> None:
    module = case.build()
    state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    expected = values(case, module)
    with torch.device("meta"):
        bare = case.make()
    bare.to_empty(device="cpu")
    bare.load_state_dict(state)
    assert same(values(case, bare), expected)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_a_module_whose_memory_is_exchanged_takes_a_state_dict(case: Case) -> None:
    module = case.build()
    state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    expected = values(case, module)
    other = case.build(seed=4)
    other._apply(garbage)
    other.load_state_dict(state)
    assert same(values(case, other), expected)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_a_loader_may_put_tensors_in_the_place_of_buffers(case: Case) -> None:
    """``transformers`` sets what the file holds first, then fresh memory for every buffer that no file holds."""
    module = case.build()
    state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    expected = values(case, module)
    with torch.device("meta"):
        bare = case.make()
    for name, tensor in state.items():
        place, _, last = name.rpartition(".")
        parent = bare.get_submodule(place)
        setattr(parent, last, nn.Parameter(tensor) if last in parent._parameters else tensor)
    for name, buffer in bare.named_buffers():
        if name not in state:
            place, _, last = name.rpartition(".")
            setattr(bare.get_submodule(place), last, garbage(buffer))
    gc.collect()
    assert same(values(case, bare), expected)


def test_clusters_that_moved_are_loaded_with_their_words() -> None:
    layer = SelfOrganizedSoftmax(WIDTH, COUNTS, gamma=3.0, frequency_budget=0.5, update_every=1)
    torch.nn.init.normal_(layer.layer.words.weight)
    for _ in range(3):
        layer(contexts(5, 3), targets(5, 3))
        layer.after_step()
    state = layer.state_dict()
    expected = layer.eval()(contexts(5, 3), targets(5, 3)).output
    with torch.device("meta"):
        bare = SelfOrganizedSoftmax(WIDTH, COUNTS, gamma=3.0, frequency_budget=0.5, update_every=1)
    bare.to_empty(device="cpu").load_state_dict(state)
    torch.testing.assert_close(bare.eval()(contexts(5, 3), targets(5, 3)).output, expected, atol=0, rtol=0)
    assert bare.layer.groups.bounds == layer.layer.groups.bounds


@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_weights_and_buffers_are_averaged(case: Case) -> None:
    module = case.build()
    average = AveragedModel(module, use_buffers=True)
    average.update_parameters(module)
    before = case.value(module.eval()(*case.call()))
    average.update_parameters(module)
    torch.testing.assert_close(case.value(average.module.eval()(*case.call())), before)


@pytest.mark.parametrize(("case", "tie"), [*((case, False) for case in LAYERS), (SHARED, True)], ids=str)
def test_a_model_of_transformers_with_the_layer_is_saved_and_read(case: Case, tie: bool, tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers")

    class Toy(transformers.PreTrainedModel):  # type: ignore[misc]
        config_class = transformers.PretrainedConfig

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.out = case.make()
            self.post_init()

        def _init_weights(self, module: nn.Module) -> None:
            pass

    class Tied(Toy):
        _tied_weights_keys = {"out.layer.words.weight": "words.weight"}  # noqa: RUF012

        def __init__(self, config: Any) -> None:
            transformers.PreTrainedModel.__init__(self, config)
            self.words = nn.Embedding(len(SENSES), WIDTH)
            self.out = SememeSoftmax(WIDTH, SENSES, embedding=self.words)
            self.post_init()

    kind = Tied if tie else Toy
    model = kind(transformers.PretrainedConfig())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    expected = values(case, model.out)
    model.save_pretrained(tmp_path)
    again = kind.from_pretrained(tmp_path)
    assert same(values(case, again.out), expected)
