"""The perplexity protocol against arithmetic by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from sememekit.measure.perplexity import Scored, Tally, perplexity_metrics, perplexity_of, tallies, unigram_tally


def test_the_three_units_share_their_nats() -> None:
    """Six nats over three words, twelve characters, twenty bytes: one nat is 1 / ln 2 bits."""
    found = perplexity_of(Tally(6.0, 3), characters=12, num_bytes=20)
    assert (found.nats, found.tokens) == (6.0, 3)
    assert found.perplexity == pytest.approx(math.exp(2.0))
    assert found.per_character == pytest.approx(math.exp(0.5))
    assert found.bits_per_byte == pytest.approx(math.log2(math.exp(6.0)) / 20)


def test_what_was_not_counted_is_no_number() -> None:
    found = perplexity_of(Tally(6.0, 3))
    assert (found.per_character, found.bits_per_byte) == (None, None)
    assert perplexity_of(Tally(1e6, 5), 5, 5).perplexity == math.inf


def test_padding_counts_for_nothing_whatever_stands_there() -> None:
    mask = torch.tensor([[True, False], [True, True]])
    nats, part = torch.tensor([[1.0, float("nan")], [2.0, 3.0]]), torch.tensor([[0.5, 7.0], [0.5, 0.5]])
    chunk = Scored(torch.zeros(2, 2, dtype=torch.long), nats, mask, {"gate": part})
    assert tallies([chunk, chunk]) == (Tally(12.0, 6), {"gate": Tally(3.0, 6)})
    found = perplexity_metrics([chunk])
    assert (found["nats"], found["tokens"]) == (6.0, 3)
    assert (found["perplexity"], found["gate_perplexity"]) == pytest.approx((math.exp(2.0), math.exp(0.5)))


def test_the_unigram_baseline_adds_one_and_does_not_predict_the_first_word() -> None:
    """Counts 2, 1, 0 become 3, 2, 1 of 6: words 2 and 0 have 1/6 and 3/6."""
    found = unigram_tally(np.array([0, 0, 1]), np.array([1, 2, 0]), num_words=3)
    assert found.count == 2
    assert found.nats == pytest.approx(-math.log(1 / 6) - math.log(3 / 6))
