from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.corpora.division import StratifiedDivision, shuffled_division
from sememekit.errors import DataError


@given(count=st.integers(20, 500), seed=st.integers(0, 2**32))
def test_a_shuffle_places_every_sentence_once_in_exact_proportions(count: int, seed: int) -> None:
    parts = shuffled_division(count, (7, 1, 2), seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(count))
    assert all(abs(len(part) - count * share / 10) <= 1 for part, share in zip(parts, (7, 1, 2), strict=True))


def test_the_shuffle_of_a_seed_is_the_same_for_ever() -> None:
    train, valid, test = shuffled_division(12, (2, 1, 1), seed=1)
    assert train.tolist() == [9, 2, 4, 7, 5, 0]
    assert valid.tolist() == [11, 8, 10]
    assert test.tolist() == [6, 3, 1]


def test_the_released_proportions_come_out_exactly_at_their_size() -> None:
    parts = shuffled_division(26_386 + 3_770 + 7_539, (26_386, 3_770, 7_539), seed=5)
    assert [len(part) for part in parts] == [26_386, 3_770, 7_539]


def test_too_few_sentences_are_refused() -> None:
    with pytest.raises(DataError, match="2 sentences cannot be divided 90:5:5"):
        shuffled_division(2, (90, 5, 5), seed=1)


@given(takes=st.lists(st.integers(0, 70), min_size=1, max_size=8), seed=st.integers(0, 2**32))
def test_labels_do_not_depend_on_how_they_are_taken(takes: list[int], seed: int) -> None:
    division = StratifiedDivision((90, 5, 5), seed)
    labels = np.concatenate([division.take(count) for count in takes])
    assert labels.tolist() == StratifiedDivision((90, 5, 5), seed).take(sum(takes)).tolist()
    full = len(labels) // 20
    for block in labels[: full * 20].reshape(full, 20):
        assert np.bincount(block, minlength=3).tolist() == [18, 1, 1]


def test_labels_differ_between_seeds() -> None:
    assert StratifiedDivision((90, 5, 5), 1).take(200).tolist() != StratifiedDivision((90, 5, 5), 2).take(200).tolist()
