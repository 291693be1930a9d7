"""Weight drop: what is dropped, when, and what is left alone. The promises of every encoder are in test_contract.py."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememekit.config import load_recipe
from sememekit.encoders.awd_lstm import AWDLSTM
from sememekit.encoders.base import EncoderResources
from sememekit.layers.dropout import WeightDropped, one_segment
from sememekit.tasks.language_model import LanguageModel
from tests.small import small_vocabulary

TIME, BATCH, INPUT = 6, 3, 5


def awd(**settings: float) -> AWDLSTM:
    torch.manual_seed(5)
    chosen = AWDLSTM.Settings(**{"hidden_size": 7, "num_layers": 3, "dropout": 0.3, "weight_drop": 0.5, **settings})
    return AWDLSTM(chosen, EncoderResources(INPUT, small_vocabulary())).double()


def inputs() -> tuple[Tensor, Tensor]:
    torch.manual_seed(6)
    return torch.randn(TIME, BATCH, INPUT, dtype=torch.float64), torch.zeros(TIME, BATCH, dtype=torch.int64)


def scan(encoder: AWDLSTM, x: Tensor) -> Tensor:
    """The definition, step by step, drawing masks in the order of the encoder: one for U, then one between layers."""
    for number, lstm in enumerate(encoder.stack):
        if number:
            x = x * functional.dropout(x.new_ones(1, *x.shape[1:]), encoder.dropout)
        mask = functional.dropout(torch.ones_like(lstm.weight_hh_l0), encoder.weight_drop)
        hidden = x.new_zeros(x.shape[1], lstm.hidden_size)
        cell, outputs = hidden, []
        for row in x:
            gates = row @ lstm.weight_ih_l0.T + lstm.bias_ih_l0 + hidden @ (lstm.weight_hh_l0 * mask).T + lstm.bias_hh_l0
            enter, forget, candidate, leave = gates.chunk(4, dim=-1)
            cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
            hidden = leave.sigmoid() * cell.tanh()
            outputs.append(hidden)
        x = torch.stack(outputs)
    return x


def test_training_equals_a_scan_with_one_mask_for_all_steps() -> None:
    encoder, (x, tokens) = awd().train(), inputs()
    torch.manual_seed(8)
    ours = encoder(x, tokens, encoder.start(BATCH)).hidden
    gradients = torch.autograd.grad(ours.square().sum(), list(encoder.parameters()))
    torch.manual_seed(8)
    expected = scan(encoder, x)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)
    for one, other in zip(gradients, torch.autograd.grad(expected.square().sum(), list(encoder.parameters())), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


def test_elements_are_dropped_and_the_rest_is_scaled() -> None:
    lstm = nn.LSTM(4, 60)
    torch.manual_seed(3)
    thinned = WeightDropped(lstm, 0.25)._weights[1]
    kept = thinned != 0
    assert 0.70 < kept.double().mean() < 0.80
    torch.testing.assert_close(thinned[kept], (lstm.weight_hh_l0 / 0.75)[kept])


def test_a_mask_is_drawn_for_each_call_and_the_raw_weights_stay() -> None:
    encoder, (x, tokens) = awd(dropout=0.0).train(), inputs()
    before = copy.deepcopy(encoder.state_dict())
    one, two = (encoder(x, tokens, encoder.start(BATCH)).hidden for _ in range(2))
    assert not torch.equal(one, two)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    assert list(encoder.state_dict()) == [f"stack.{layer}.{name}" for layer in range(3) for name in names]
    assert all(torch.equal(before[name], tensor) for name, tensor in encoder.state_dict().items())


def test_training_goes_on_after_evaluation() -> None:
    """The released module registers the raw matrix a second time there, and fails."""
    encoder, (x, tokens) = awd(), inputs()
    whole = encoder.eval()(x, tokens, encoder.start(BATCH)).hidden
    for _ in range(2):
        encoder.train()(x, tokens, encoder.start(BATCH)).hidden.sum().backward()
        assert all(isinstance(lstm.weight_hh_l0, nn.Parameter) for lstm in encoder.stack)
        assert all((lstm.weight_hh_l0.grad != 0).any() for lstm in encoder.stack)
        assert torch.equal(whole, encoder.eval()(x, tokens, encoder.start(BATCH)).hidden)


def test_the_last_layer_has_the_size_of_the_word_vectors_unless_told() -> None:
    assert (awd().output_size, awd(output_size=4).output_size) == (INPUT, 4)
    assert [lstm.hidden_size for lstm in awd().stack] == [7, 7, INPUT]


def test_rates_are_zero_until_they_are_given_here_and_in_the_task() -> None:
    """A default of half the published rates would be neither the plain LSTM nor the published one."""
    settings, task = AWDLSTM.Settings(), LanguageModel.Settings()
    rates = (settings.dropout, settings.weight_drop, task.input_dropout, task.output_dropout, task.word_dropout)
    assert rates == (0.0,) * 5
    for name in ("mixture/ptb-awd", "mixture/wt2-awd", "mixture/ptb-mos", "mixture/wt2-mos", "sdlm/awd-softmax"):
        assert load_recipe(name)["encoder"]["weight_drop"] == 0.5


def test_it_starts_as_torch_starts_an_lstm() -> None:
    for lstm in awd(hidden_size=64).stack:
        bound = lstm.hidden_size**-0.5
        assert all(0.8 * bound < parameter.abs().max() <= bound for parameter in lstm.parameters())


def test_one_chunk_is_one_piece_of_memory_in_order_and_passes_gradients() -> None:
    lstm = nn.LSTM(3, 4).double()
    raw = [lstm.weight_ih_l0, lstm.weight_hh_l0, lstm.bias_ih_l0, lstm.bias_hh_l0]
    parts = one_segment(raw)
    offset = 0
    for part, parameter in zip(parts, raw, strict=True):
        assert torch.equal(part, parameter)
        assert part.is_contiguous()
        assert (part.storage_offset(), part.untyped_storage().data_ptr()) == (offset, parts[0].untyped_storage().data_ptr())
        offset += part.numel()
    assert offset * 8 == parts[0].untyped_storage().nbytes(), "nothing else is in the piece"
    weights = [torch.randn_like(part) for part in parts]
    sum((part * weight).sum() for part, weight in zip(parts, weights, strict=True)).backward()
    assert all(torch.equal(parameter.grad, weight) for parameter, weight in zip(raw, weights, strict=True))


@pytest.mark.gpu
def test_cudnn_has_nothing_to_compact() -> None:
    encoder = awd().float().cuda()
    x, tokens = (tensor.cuda() for tensor in inputs())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for training in (True, False, True):
            encoder.train(training)(x.float(), tokens, encoder.start(BATCH)).hidden.sum().backward()
