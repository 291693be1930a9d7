"""The recurrences with gradients written by hand: values against a plain loop, gradients against differences."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from sememekit.encoders.gru import gru_scan
from sememekit.layers.lstm_scan import lstm_cell, lstm_scan

STEPS, BATCH, SIZE = 3, 2, 2


def draw(*shapes: tuple[int, ...], seed: int = 1) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_(True) for shape in shapes]


def lstm_inputs(added: bool, output: bool) -> tuple[list[Tensor], list[Tensor | None]]:
    """Return ready gates, U, h and c, which each scan has, and two sources, or None."""
    width = (5 if output else 4) * SIZE
    own = draw((STEPS, BATCH, width), (width, SIZE), (BATCH, SIZE), (BATCH, SIZE))
    sources = draw((STEPS, BATCH, SIZE), (STEPS, BATCH, SIZE), seed=2)
    return own, [source if there else None for source, there in zip(sources, (added, output), strict=True)]


LSTM_FORMS = list(itertools.product((False, True), repeat=3))
MASK = torch.tensor([[2.0, 0.0], [0.0, 2.0]], dtype=torch.float64)


@pytest.mark.parametrize(("added", "output", "masked"), LSTM_FORMS)
def test_an_lstm_scan_is_the_loop(added: bool, output: bool, masked: bool) -> None:
    (ready, recurrent, h, c), (more, second) = lstm_inputs(added, output)
    mask = MASK if masked else None
    hidden, cells = lstm_scan(ready, recurrent, h, c, more, second, mask)
    for t in range(STEPS):
        u, f, i, o, *o_s = (ready[t] + (h if mask is None else h * mask) @ recurrent.T).chunk(5 if output else 4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * u.tanh() + (0 if more is None else more[t])
        h = o.sigmoid() * c.tanh() + (0 if second is None else o_s[0].sigmoid() * second[t])
        torch.testing.assert_close(hidden[t], h, rtol=0, atol=1e-12)
        torch.testing.assert_close(cells[t], c, rtol=0, atol=1e-12)
    assert hidden.shape == cells.shape == (STEPS, BATCH, SIZE)


@pytest.mark.parametrize(("added", "output", "masked"), LSTM_FORMS)
@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_the_gradients_of_an_lstm_scan(added: bool, output: bool, masked: bool, used: tuple[int, ...]) -> None:
    """The loss may be of outputs alone, or of cell states alone."""
    own, (more, second) = lstm_inputs(added, output)
    mask = MASK if masked else None

    def scan(*inputs: Tensor) -> tuple[Tensor, ...]:
        ready, recurrent, h, c, *sources = inputs
        first = sources.pop(0) if added else None
        both = lstm_scan(ready, recurrent, h, c, first, sources.pop(0) if output else None, mask)
        return tuple(both[number] for number in used)

    assert torch.autograd.gradcheck(scan, (*own, *(part for part in (more, second) if part is not None)))


GRU_FORMS = [(None, False), (None, True), ("sum", False), ("sum", True), ("apart", False), ("apart", True)]


def gru_inputs(second: str | None, output: bool) -> tuple[list[Tensor], list[Tensor | None]]:
    width = (3 if output else 2) * SIZE
    passed = 2 * SIZE if second == "apart" else SIZE
    own = draw((STEPS, BATCH, width), (STEPS, BATCH, SIZE), (width, SIZE), (SIZE, passed), (BATCH, SIZE))
    memory, source = draw((STEPS, BATCH, SIZE), (STEPS, BATCH, SIZE), seed=2)
    return own, [memory if second else None, source if output else None]


@pytest.mark.parametrize(("second", "output"), GRU_FORMS)
def test_a_gru_scan_is_the_loop(second: str | None, output: bool) -> None:
    (ready, candidate, to_gates, to_candidate, h), (memory, source) = gru_inputs(second, output)
    found = gru_scan(ready, candidate, to_gates, to_candidate, h, memory, source)
    for t in range(STEPS):
        z, r, *o_s = (ready[t] + h @ to_gates.T).sigmoid().chunk(3 if output else 2, dim=1)
        passed = r * h
        if second == "sum":
            passed = r * (h + memory[t])
        elif second == "apart":
            passed = torch.cat([r * h, r * memory[t]], dim=1)
        h = (1 - z) * h + z * (candidate[t] + passed @ to_candidate.T).tanh() + (0 if source is None else o_s[0] * source[t])
        torch.testing.assert_close(found[t], h, rtol=0, atol=1e-12)
    assert found.shape == (STEPS, BATCH, SIZE)


@pytest.mark.parametrize(("second", "output"), GRU_FORMS)
def test_the_gradients_of_a_gru_scan(second: str | None, output: bool) -> None:
    own, (memory, source) = gru_inputs(second, output)

    def scan(*inputs: Tensor) -> Tensor:
        parts, sources = inputs[:5], list(inputs[5:])
        first = sources.pop(0) if second else None
        return gru_scan(*parts, first, sources.pop(0) if output else None)

    assert torch.autograd.gradcheck(scan, (*own, *(part for part in (memory, source) if part is not None)))


def test_a_cell_whose_state_serves_several_edges() -> None:
    ready, recurrent, cell = draw((2, 3, 4 * SIZE), (2, 1, 4 * SIZE), (2, 1, SIZE))
    h, c = lstm_cell(ready, recurrent, cell)
    u, f, i, o = (ready + recurrent).chunk(4, dim=-1)
    expected = f.sigmoid() * cell + i.sigmoid() * u.tanh()
    torch.testing.assert_close(c, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(h, o.sigmoid() * expected.tanh(), rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(lstm_cell, (ready, recurrent, cell))
