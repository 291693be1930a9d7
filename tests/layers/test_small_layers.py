"""Attention, sums over sets, dropout, and the other small layers, each against its equation."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sememekit.layers.attentional_rnn import Attention
from sememekit.layers.dropout import WeightDropped, one_segment, shared_dropout
from sememekit.layers.incidence import Incidence, segment_logsumexp
from sememekit.layers.shared import at_least_single, evaluating, product_dtype, uniform_embedding


@pytest.mark.parametrize(
    ("score", "size", "inner"), [("general", None, 4), ("general", 7, 4), ("additive", None, 4), ("additive", 7, 7)]
)
@pytest.mark.parametrize("lengths", [None, torch.tensor([5, 2])])
def test_attention_is_a_softmax_over_what_is_real(
    score: str, size: int | None, inner: int, lengths: torch.Tensor | None
) -> None:
    torch.manual_seed(1)
    attention = Attention(4, 3, score, size).double()  # type: ignore[arg-type]
    assert attention.key.weight.shape == (inner, 3)
    hidden_SBM, query_BTH = torch.randn(5, 2, 3).double(), torch.randn(2, 6, 4).double()
    contexts, weights = attention(query_BTH, attention.prepare(hidden_SBM, lengths))
    assert (contexts.shape, weights.shape) == ((2, 6, 3), (2, 6, 5))
    for row, step in torch.cartesian_prod(torch.arange(2), torch.arange(6)).tolist():
        real = hidden_SBM[: 5 if lengths is None else int(lengths[row]), row]
        query, keys = query_BTH[row, step], attention.key(real)
        if score == "general":
            scores = keys @ query
        else:
            assert attention.query is not None
            assert attention.score is not None
            scores = (attention.query(query) + keys).tanh() @ attention.score
        expected = scores.softmax(0)
        torch.testing.assert_close(weights[row, step, : len(real)], expected)
        assert (weights[row, step, len(real) :] == 0).all()
        torch.testing.assert_close(contexts[row, step], expected @ real)


def test_attention_begins_small_and_has_a_bias_where_the_paper_has_one() -> None:
    torch.manual_seed(1)
    attention = Attention(400, 3, "additive")
    assert attention.score is not None
    assert attention.query is not None
    assert attention.score.abs().max() <= 400**-0.5
    assert attention.score.min() < -0.9 * 400**-0.5
    assert attention.score.max() > 0.9 * 400**-0.5
    assert (attention.key.bias is None, attention.query.bias is None) == (False, True)
    assert Attention(4, 3, "general").key.bias is None


def test_incidence_sums_both_ways() -> None:
    """Rows {0, 2}, {}, {2, 2, 1} of four columns, the last of which no row has."""
    members = torch.tensor([0, 2, 2, 2, 1])
    incidence = Incidence(torch.tensor([0, 2, 2, 5]), members, num_columns=4)
    assert (incidence.num_rows, len(incidence.back_offsets)) == (3, 4 + 1)
    matrix = torch.tensor([[1.0, 0, 1, 0], [0, 0, 0, 0], [0, 1, 2, 0]])
    x, y = torch.arange(8.0).reshape(4, 2), torch.arange(1.0, 7.0).reshape(3, 2)
    torch.testing.assert_close(incidence(x), matrix @ x)
    torch.testing.assert_close(incidence.back(y), matrix.T @ y)
    weight = torch.tensor([1.0, 10.0, 100.0, 1000.0, 10000.0])
    weighted = torch.tensor([[1.0, 0, 10, 0], [0, 0, 0, 0], [0, 10000, 1100, 0]])
    torch.testing.assert_close(incidence(x, weight), weighted @ x)
    torch.testing.assert_close(incidence.back(y, weight[incidence.back_edges]), weighted.T @ y)
    assert incidence.state_dict() == {}, "it is made anew from the graph"


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 3, 2)])
def test_sums_of_segments_in_log_space(shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    x = (300 * torch.randn(shape, dtype=torch.float64)).requires_grad_(True)
    segment = torch.tensor([2, 0, 2, 1, 0])
    found = segment_logsumexp(x, segment, 3)
    expected = torch.stack([x[segment == number].logsumexp(0) for number in range(3)])
    torch.testing.assert_close(found, expected)
    for one, other in zip(torch.autograd.grad(found.sum(), x), torch.autograd.grad(expected.sum(), x), strict=True):
        torch.testing.assert_close(one, other)


def test_dropout_shares_its_mask_along_the_axes_that_it_is_told() -> None:
    torch.manual_seed(1)
    x = torch.full((6, 50, 40), 3.0)
    dropped = shared_dropout(x, 0.25, training=True, shared=(0,))
    assert set(dropped.unique().tolist()) == {0.0, 4.0}
    assert (dropped == dropped[:1]).all()
    assert not (dropped[:, :1] == dropped).all()
    assert not (dropped[:, :, :1] == dropped).all()
    assert 0.2 < (dropped[0] == 0).float().mean() < 0.3
    assert shared_dropout(x, 0.25, training=False, shared=(0,)) is x
    assert shared_dropout(x, 0.0, training=True, shared=(0,)) is x
    both = shared_dropout(x, 0.5, training=True, shared=(0, 2))
    assert (both == both[:1, :, :1]).all()


def test_new_vectors_are_uniform_within_a_tenth() -> None:
    torch.manual_seed(1)
    weight = uniform_embedding(70, 50).weight
    assert weight.shape == (70, 50)
    assert -0.1 <= float(weight.detach().min()) < -0.099
    assert 0.099 < float(weight.detach().max()) <= 0.1


def test_precision() -> None:
    kinds = {
        torch.bfloat16: torch.float32,
        torch.float16: torch.float32,
        torch.float32: torch.float32,
        torch.float64: torch.float64,
    }
    assert {kind: at_least_single(torch.ones(1, dtype=kind)).dtype for kind in kinds} == kinds
    assert product_dtype(torch.ones(1, dtype=torch.float64)) == torch.float64
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert product_dtype(torch.ones(1)) == torch.bfloat16
        two = torch.ones(2, 2, dtype=torch.float64)
        assert product_dtype(two) == (two @ two).dtype == torch.float64


@pytest.mark.parametrize("sort", [True, False])
def test_an_lstm_with_a_thinned_matrix_is_that_lstm(sort: bool) -> None:
    torch.manual_seed(1)
    lstm, thin = nn.LSTM(3, 4), nn.LSTM(3, 4)
    x, lengths = torch.randn(5, 3, 3), torch.tensor([4, 5, 2])
    state = (torch.randn(1, 3, 4), torch.randn(1, 3, 4))
    torch.manual_seed(7)
    dropped = WeightDropped(lstm, 0.5)
    torch.manual_seed(7)
    thin.load_state_dict({**lstm.state_dict(), "weight_hh_l0": nn.functional.dropout(lstm.weight_hh_l0.detach(), 0.5)})
    assert 0 < int((thin.weight_hh_l0 == 0).sum()) < 64
    for one, other in zip(_flat(dropped(x, state)), _flat(thin(x, state)), strict=True):
        torch.testing.assert_close(one, other)
    if not sort:
        lengths = lengths.sort(descending=True).values
    packed = pack_padded_sequence(x, lengths, enforce_sorted=not sort)
    for one, other in zip(_flat(dropped(packed, state)), _flat(thin(packed, state)), strict=True):
        torch.testing.assert_close(one, other)
    output, _ = dropped(x, state)
    assert isinstance(output, torch.Tensor)
    output.sum().backward()
    gradient = lstm.weight_hh_l0.grad
    assert gradient is not None
    assert ((gradient == 0) == (thin.weight_hh_l0 == 0)).all(), "what is dropped learns nothing"


def _flat(found: object) -> list[torch.Tensor]:
    output, (hidden, cell) = found  # type: ignore[misc]
    return [output if isinstance(output, torch.Tensor) else pad_packed_sequence(output)[0], hidden, cell]


def test_one_piece_of_memory_holds_the_same_tensors() -> None:
    tensors = [torch.arange(6.0).reshape(2, 3).requires_grad_(True), torch.arange(2.0).requires_grad_(True)]
    parts = one_segment(tensors)
    assert [part.tolist() for part in parts] == [tensor.tolist() for tensor in tensors]
    assert parts[1].data_ptr() == parts[0].data_ptr() + 6 * 4
    (parts[0].sum() + 2 * parts[1].sum()).backward()
    assert tensors[1].grad is not None
    assert tensors[1].grad.tolist() == [2.0, 2.0]


def test_evaluation_leaves_the_mode_of_every_part_as_it_was() -> None:
    module = nn.Sequential(nn.Dropout(), nn.Dropout())
    module[1].eval()  # by itself, as a part that is kept from training is
    with evaluating(module):
        assert not any(part.training for part in module.modules())
    with pytest.raises(ZeroDivisionError), evaluating(module):
        _ = 1 / int(module.training)
    assert [part.training for part in module.modules()] == [True, True, False]
