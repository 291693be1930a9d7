"""Batches without anything in them, and lengths that do not fit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from sememekit.nn import AWDLSTM, LatticeLoss, MogrifierLSTM, OutputLayer, SememeGRU, SememeLSTM
from tests.nn.cases import ENCODERS, LAYERS, SENSES, WIDTH, WORDS, Case, contexts, targets

each_layer = pytest.mark.parametrize("case", LAYERS, ids=str)
each_encoder = pytest.mark.parametrize("case", ENCODERS, ids=str)
SENSES_ASKED = {"sense_log_prob": 9, "sememe_gates": 6}


@each_layer
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)], ids=str)
def test_no_contexts(case: Case, shape: tuple[int, ...]) -> None:
    layer, hidden = case.build(), torch.zeros(*shape, WIDTH)
    assert isinstance(layer, OutputLayer)
    for training in (True, False):
        output, loss = layer.train(training)(hidden, torch.zeros(shape, dtype=torch.int64))
        assert output.shape == shape
        assert loss == 0
    assert layer.predict(hidden).shape == shape
    assert [part.shape for part in layer.topk(hidden, 2)] == [(*shape, 2)] * 2
    assert layer.log_prob(hidden).shape == (*shape, WORDS)
    for method, size in SENSES_ASKED.items():
        if hasattr(layer, method):
            assert getattr(layer, method)(hidden).shape == (*shape, size)


@each_encoder
def test_no_rows_and_no_steps(case: Case) -> None:
    encoder, reads = case.build(), len(case.call()) > 1

    def given(steps: int, batch: int) -> tuple[Any, ...]:
        return torch.zeros(steps, batch, 5), *((torch.zeros(steps, batch, dtype=torch.int64),) if reads else ())

    output, _ = encoder(*given(4, 0))
    assert output.shape[:2] == (4, 0)
    with pytest.raises(ValueError, match=r"inputs \(T, B, E\) need one step or more, given \(0, 3, 5\)"):
        encoder(*given(0, 3))
    x, *rest = given(4, 2)
    with pytest.raises(
        TypeError, match=r"packed sequences are not supported; give the padded batch \(T, B, E\), and lengths= \(B,\)"
    ):
        encoder(pack_padded_sequence(x, torch.tensor([4, 3])), *rest)


@pytest.mark.parametrize("kind", [SememeLSTM, SememeGRU, MogrifierLSTM, AWDLSTM])
@pytest.mark.parametrize("batch_first", [False, True])
def test_lengths_that_do_not_fit_are_refused(kind: Any, batch_first: bool) -> None:
    reads = kind is not AWDLSTM
    encoder = kind(5, WIDTH, *([SENSES] if reads else []), batch_first=batch_first).eval()
    x, words = contexts(4, 3, width=5), targets(4, 3)
    if batch_first:
        x, words = x.transpose(0, 1), words.transpose(0, 1)
    given = (x, words) if reads else (x,)
    with pytest.raises(ValueError, match=r"lengths must be \(3,\) for inputs .*, given \(4,\)"):
        encoder(*given, lengths=torch.tensor([1, 2, 3, 4]))
    for wrong in (0, 5):
        with pytest.raises(ValueError, match=rf"lengths must be 1 to 4, given {wrong} at \[1\]"):
            encoder(*given, lengths=torch.tensor([4, wrong, 1]))
    with pytest.raises(TypeError, match="lengths must be a tensor of whole numbers, given list"):
        encoder(*given, lengths=[4, 2, 1])
    with pytest.raises(ValueError, match=r"inputs must be .* with E = 5, given \(.*, 6\)"):
        encoder(torch.zeros(*x.shape[:2], 6), *given[1:])
    whole = encoder(*given, lengths=torch.tensor([4, 2, 1]))[0]
    torch.testing.assert_close(encoder(*given, lengths=torch.tensor([4, 2, 1], dtype=torch.uint8))[0], whole)


def test_a_lattice_loss_without_tokens_and_of_long_texts_in_half_precision() -> None:
    for shape in ((2, 3, 2, 1), (2, 0, 2, 1), (0, 3, 2, 1)):
        assert LatticeLoss()(torch.zeros(shape), torch.zeros(shape[0], dtype=torch.int64)) == 0
    for shape in ((2, 3, 0, 1), (2, 3, 2, 0)):
        with pytest.raises(ValueError, match="with L and E of 1 or more"):
            LatticeLoss()(torch.zeros(shape), torch.tensor([3, 3]))
    scores = torch.full((2, 8000, 1, 1), -9.0, dtype=torch.float16, requires_grad=True)
    loss = LatticeLoss()(scores, torch.tensor([8000, 8000]))
    assert loss.dtype == torch.float16
    assert loss == 9
    loss.backward()
    assert scores.grad is not None
    torch.testing.assert_close(
        scores.grad.double(), torch.full(scores.shape, -1 / 16000, dtype=torch.float64), atol=1e-7, rtol=0
    )
