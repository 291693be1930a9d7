"""Blocks of senses, out of which the sememe-driven layer is computed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sememekit.decoders import sense_logits, sense_structure
from sememekit.decoders.sense_structure import SenseStructure
from tests.decoders.small_sdlm import WIDTH, make
from tests.small import small_graph


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_blocks_hold_every_sense_once_and_the_senses_of_a_rank_together(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sense_structure, "SENSES_PER_BLOCK", 6)
    monkeypatch.setattr(sense_structure, "RANKS", ranks)
    graph, structure = small_graph(), make(num_bases=2).structure
    order = structure.blocks(torch.float64)
    assert len(order.blocks) > 1
    assert sorted(order.sense_at.tolist()) == list(range(graph.num_senses))
    assert torch.equal(order.sense_at[order.place_of], torch.arange(graph.num_senses))
    assert torch.equal(order.word_at[order.word_place], torch.arange(graph.num_words))
    for size, parts in ((graph.num_words, "words"), (graph.num_senses, "places")):
        slices = [getattr(block, parts) for block in order.blocks]
        assert [place for part in slices for place in range(part.start, part.stop)] == list(range(size))
    assert any(len(block.word_of_tail) for block in order.blocks) == (ranks < np.diff(graph.sense_offsets).max())
    for block in order.blocks:
        words, senses = order.word_at[block.words], order.sense_at[block.places]
        first = torch.from_numpy(graph.sense_offsets.copy())[words]
        *having, tail = block.by_rank(senses) if len(block.word_of_tail) else (*block.by_rank(senses), senses[:0])
        for number, (size, having_number) in enumerate(zip(block.ranks, having, strict=True)):
            assert having_number.tolist() == (first[:size] + number).tolist()
        assert graph.word_of_sense[tail.numpy()].tolist() == words[block.word_of_tail].tolist()
        assert graph.word_of_sense[senses.numpy()].tolist() == block.of_senses(words[:, None])[:, 0].tolist()
    assert structure.blocks(torch.float64) is structure.blocks(torch.float64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_constants_of_frequent_sememes_fit_half_precision(dtype: torch.dtype) -> None:
    """One over the root of 7,000 senses times 10 sememes is 0.004, and 70,000 is no number of half precision."""
    one, two = torch.tensor([0, 1]), torch.tensor([0, 2])
    structure = SenseStructure(one, torch.tensor([0]), two, torch.tensor([0, 1]), torch.tensor([70_000, 70_000]), 2, 1)
    constant = structure.blocks(dtype).blocks[0].constant
    assert constant.dtype == dtype
    torch.testing.assert_close(constant.double(), torch.full((2,), 70_000.0).double().rsqrt(), rtol=4e-3, atol=0)


def test_more_senses_than_half_precision_counts() -> None:
    """70,000 equal senses: their sum is no number of half precision, its logarithm is."""
    size, dtype = 70_000, torch.float16
    sense, one = torch.arange(size + 1), torch.tensor([0])
    structure = SenseStructure(sense, torch.zeros(size, dtype=torch.long), torch.tensor([0, 1]), one, one + 1, 1, 1)
    words, gates, mixing = (torch.ones(rows, columns, dtype=dtype) for rows, columns in ((size, 1), (1, 2), (1, 1)))
    words.requires_grad_(True)
    contexts, target = torch.ones(2, 1, dtype=dtype), torch.tensor([0, 5])
    inputs = sense_logits.SenseInputs(structure, contexts[None], words, gates, mixing, None)
    normaliser, score = sense_logits.normaliser_and_score(inputs, target, 2)
    torch.testing.assert_close((normaliser - score).double(), torch.full((2,), np.log(size)).double(), rtol=1e-3, atol=0)
    (grad,) = torch.autograd.grad((normaliser - score).sum(), words)
    torch.testing.assert_close(grad[:7, 0].double(), torch.tensor([-1.0, 0, 0, 0, 0, -1.0, 0]).double(), rtol=0, atol=1e-3)


def test_blocks_made_in_inference_mode_serve_training() -> None:
    decoder, hidden, target = make(num_bases=2), torch.randn(4, WIDTH, dtype=torch.float64), torch.arange(4)
    with torch.inference_mode():
        values = [decoder.nll(hidden, target), decoder.log_probs(hidden)]
    again = [decoder.nll(hidden, target), decoder.log_probs(hidden)]
    torch.testing.assert_close([value.detach() for value in again], [value.clone() for value in values], rtol=0, atol=0)
    for value in again:
        assert all(grad.isfinite().all() for grad in torch.autograd.grad(value.sum(), list(decoder.parameters())))
