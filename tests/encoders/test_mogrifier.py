"""Rounds, gradients, start and dropout of the Mogrifier LSTM. The promises of every encoder are in test_contract.py."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sememekit.encoders.base import EncoderResources
from sememekit.encoders.mogrifier import Mogrifier, MogrifierLayer
from sememekit.errors import ConfigError
from sememekit.layers import shared_dropout
from tests.small import small_graph, small_vocabulary

TIME, BATCH, INPUT, SIZE = 6, 3, 5, 4


def layer(num_rounds: int, rank: int | None = None, **rates: float) -> MogrifierLayer:
    torch.manual_seed(5)
    made = MogrifierLayer(INPUT, SIZE, num_rounds, rank, rates.get("recurrent_dropout", 0.0), rates.get("weight_drop", 0.0))
    for parameter in made.parameters():
        nn.init.normal_(parameter, 0.0, 0.7)
    return made.double()


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(6)
    sizes = ((TIME, BATCH, INPUT), (BATCH, SIZE), (BATCH, SIZE))
    x, hidden, cell = (torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes)
    return x, hidden, cell


def twin(made: MogrifierLayer, x: Tensor, hidden: Tensor, cell: Tensor, mask: Tensor | float = 1.0) -> tuple[Tensor, Tensor]:
    """Eq. (1), (2), Melis et al. 2020, a step at a time and every round written out."""
    outputs, cells = [], []
    for word in x:
        x_i, h_i = word, hidden * mask
        for number, up in enumerate(made.ups, start=1):
            matrix = up.weight @ made.downs[number - 1].weight if len(made.downs) else up.weight
            if number in (1, 3, 5):
                x_i = 2 / (1 + torch.exp(-(h_i @ matrix.T + up.bias))) * x_i
            else:
                h_i = 2 / (1 + torch.exp(-(x_i @ matrix.T + up.bias))) * h_i
        candidate, forget, enter, leave = (made.input(x_i) + made.recurrent(h_i)).chunk(4, dim=-1)
        cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
        hidden = leave.sigmoid() * cell.tanh()
        outputs.append(hidden)
        cells.append(cell)
    return torch.stack(outputs), torch.stack(cells)


@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("num_rounds", range(7))
def test_the_scan_and_its_gradients_are_those_of_the_equations(num_rounds: int, rank: int | None) -> None:
    made, given = layer(num_rounds, rank), inputs()
    needed = [*given, *made.parameters()]
    gradients = []
    for hidden, cell in (made(given[0], None, given[1:]), twin(made, *given)):
        gradients.append((hidden, cell, *torch.autograd.grad((hidden.sin() + hidden * cell.cos()).sum(), needed)))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


def test_gradients_of_the_cell_states_alone_and_with_a_mask() -> None:
    """One of the two outputs unused, and a mask that is drawn once and stays for all steps."""
    made, given = layer(5, recurrent_dropout=0.5), inputs()
    torch.manual_seed(8)
    _, cell = made(given[0], None, given[1:])
    torch.manual_seed(8)
    mask = shared_dropout(torch.ones(BATCH, SIZE, dtype=torch.float64), 0.5, True, ())
    assert 0 < int((mask == 0).sum()) < mask.numel()
    _, expected = twin(made, *given, mask)
    needed = [*given, *made.parameters()]
    for one, other in zip(*(torch.autograd.grad(each.sin().sum(), needed) for each in (cell, expected)), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


def test_without_rounds_it_is_an_lstm() -> None:
    made, (x, hidden, cell) = layer(0), inputs()
    lstm = nn.LSTM(INPUT, SIZE).double()
    order = [2, 1, 0, 3]  # torch has i, f, u, o
    for theirs, ours in (("weight_ih_l0", made.input.weight), ("weight_hh_l0", made.recurrent.weight)):
        getattr(lstm, theirs).data = torch.cat([ours.data.chunk(4)[number] for number in order])
    lstm.bias_ih_l0.data = torch.cat([made.input.bias.data.chunk(4)[number] for number in order])
    lstm.bias_hh_l0.data.zero_()
    expected, _ = lstm(x, (hidden[None], cell[None]))
    torch.testing.assert_close(made(x, None, (hidden, cell))[0], expected, rtol=0, atol=1e-12)


def test_maps_of_zero_gate_nothing() -> None:
    """2 sigmoid(0) = 1: the factor 2 is there in every round."""
    made, without, (x, hidden, cell) = layer(5), layer(0), inputs()
    for up in made.ups:
        nn.init.zeros_(up.weight)
        nn.init.zeros_(up.bias)
    without.load_state_dict({name: value for name, value in made.state_dict().items() if not name.startswith("up")})
    torch.testing.assert_close(made(x, None, (hidden, cell)), without(x, None, (hidden, cell)), rtol=0, atol=1e-12)


def encoder(**settings: Any) -> Mogrifier:
    torch.manual_seed(5)
    chosen = Mogrifier.Settings(**{"hidden_size": 7, **settings})
    return Mogrifier(chosen, EncoderResources(INPUT, small_vocabulary(), small_graph())).double()


def test_the_last_layer_may_have_another_size_and_each_has_its_rounds() -> None:
    made = encoder(num_layers=3, output_size=4, rounds=3)
    assert made.output_size == 4
    sizes = [[tuple(up.weight.shape) for up in each.ups] for each in made.stack]
    assert sizes == [[(5, 7), (7, 5), (5, 7)], [(7, 7)] * 3, [(7, 4), (4, 7), (7, 4)]]


def test_low_ranks_start_with_the_variance_of_a_full_map() -> None:
    made = encoder(hidden_size=400, num_layers=1, rank=20, rounds=2)
    (only,) = made.stack
    for up, down in zip(only.ups, only.downs, strict=True):
        product = up.weight @ down.weight
        assert product.var().item() == pytest.approx(1 / down.in_features, rel=0.25)
        assert not up.bias.any()
    assert only.input.weight.abs().max() <= 400**-0.5


def test_masks_of_a_text_stay_in_a_lattice_and_are_gone_in_evaluation() -> None:
    made = encoder(recurrent_dropout=0.5).train()
    masks = made.draw_masks(BATCH)
    assert [tuple(mask.shape) for mask in masks] == [(BATCH, 7)] * 2
    assert {float(value) for mask in masks for value in mask.unique()} == {0.0, 2.0}
    state = tuple(torch.rand_like(part) + 0.1 for part in made.start(BATCH))
    _, first, _, _, second, _ = made.state_part(state, masks)
    for seen, part, mask in ((first, state[0], masks[0]), (second, state[2], masks[1])):
        assert torch.equal(seen, part * mask)
    assert made.eval().draw_masks(BATCH) == ()


def test_weight_drop_thins_the_recurrent_matrix_alone_and_only_in_training() -> None:
    made = layer(2, weight_drop=0.5)
    torch.manual_seed(3)
    thinned = made.train()._recurrent()
    kept = thinned != 0
    assert 0 < int(kept.sum()) < kept.numel()
    torch.testing.assert_close(thinned[kept], made.recurrent.weight[kept] * 2)
    assert torch.equal(made.eval()._recurrent(), made.recurrent.weight)


@pytest.mark.parametrize("injection", ["gate", "cell"])
def test_other_injections_are_refused(injection: str) -> None:
    with pytest.raises((ConfigError, ValueError), match="concat"):
        encoder(injection=injection)
