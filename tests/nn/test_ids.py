"""Ids of words and sememes that a user gives: any dtype of whole numbers, and nothing outside of their range."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sememekit.nn import FullSoftmax, MogrifierLSTM, OutputLayer, SememeGRU, SememeLSTM
from sememekit.nn.checks import check_range
from tests.nn.cases import COUNTS, LAYERS, SENSES, WIDTH, WORDS, Case, contexts, targets

each_layer = pytest.mark.parametrize("case", LAYERS, ids=str)
each_encoder = pytest.mark.parametrize("kind", [SememeLSTM, SememeGRU, MogrifierLSTM])
WHOLE = [torch.uint8, torch.int8, torch.int16, torch.int32]
NONE_WHOLE = [torch.float32, torch.bool, torch.complex64]


def built(case: Case, **changed: Any) -> OutputLayer:
    layer = case.build().eval()
    assert isinstance(layer, OutputLayer)
    for name, value in changed.items():
        setattr(layer, name, value)
    return layer


@each_layer
@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_targets_of_any_whole_dtype(case: Case, dtype: torch.dtype) -> None:
    layer, hidden, target = built(case, ignore_index=2), contexts(5, 3), targets(5, 3)
    expected, found = layer(hidden, target), layer(hidden, target.to(dtype))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(layer.nll(hidden, target.to(dtype)), -expected.output)
    assert (expected.output[target == 2] == 0).all()


@each_layer
def test_targets_that_are_no_words_are_refused(case: Case) -> None:
    layer, hidden = built(case), contexts(5, 3)
    for wrong in (-1, WORDS, -101):
        target = targets(5, 3)
        target[1, 2] = wrong
        for call in (layer, layer.nll):
            with pytest.raises(ValueError, match=rf"targets must be 0 to 6, given {wrong} at \[1, 2\].*ignore_index=-100"):
                call(hidden, target)
    target[1, 2] = -1
    layer.ignore_index = -1
    assert layer(hidden, target).output[1, 2] == 0
    for dtype in NONE_WHOLE:
        with pytest.raises(TypeError, match=f"targets must be whole numbers, given {dtype}"):
            layer(hidden, targets(5, 3).to(dtype))
    with pytest.raises(TypeError, match="must be a tensor of whole numbers, given list"):
        layer(hidden, targets(5, 3).tolist())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_is_not_waited_for() -> None:
    numbers = torch.arange(4, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        check_range(numbers, 0, 3, "numbers")
    finally:
        torch.cuda.set_sync_debug_mode("default")


@each_encoder
@pytest.mark.parametrize("dtype", WHOLE, ids=str)
@pytest.mark.parametrize("settings", [{}, {"bidirectional": True, "shared_sememes": False}], ids=["one", "apart"])
def test_words_of_any_whole_dtype(kind: Any, dtype: torch.dtype, settings: dict[str, Any]) -> None:
    if settings and kind is MogrifierLSTM:
        pytest.skip("reads in one direction")
    encoder, x, words = kind(5, WIDTH, SENSES, **settings), contexts(4, 3, width=5), targets(4, 3)
    torch.testing.assert_close(encoder(x, words.to(dtype))[0], encoder(x, words)[0])


@each_encoder
def test_words_and_sememes_out_of_range_are_refused(kind: Any) -> None:
    """The module has further rows behind the V words, for sememes that no word has."""
    encoder, x = kind(5, WIDTH, SENSES, num_sememes=9), contexts(4, 3, width=5)
    assert len(encoder.encoder.sememes.set_of_word) > WORDS
    for wrong in (-1, WORDS):
        words = targets(4, 3)
        words[3, 1] = wrong
        with pytest.raises(ValueError, match=rf"words must be 0 to 6, given {wrong} at \[3, 1\]"):
            encoder(x, words)
    with pytest.raises(TypeError, match=r"words must be whole numbers, given torch.float32"):
        encoder(x, targets(4, 3).float())
    for wrong in (-2, 9):
        sememes = torch.full((4, 3, 2), -1)
        sememes[0, 1, 1] = wrong
        told = rf"numbers of sememes must be 0 to 8, given {wrong} at \[0, 1, 1\]; -1 is padding"
        with pytest.raises(ValueError, match=told):
            encoder(x, sememes=sememes)
    sememes[0, 1, 1] = 8
    torch.testing.assert_close(encoder(x, sememes=sememes.int())[0], encoder(x, sememes=sememes)[0])


def test_graphs_do_not_look_at_ids() -> None:
    layer = FullSoftmax(WIDTH, COUNTS)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(contexts(4), targets(4).int()).loss, layer(contexts(4), targets(4)).loss)
