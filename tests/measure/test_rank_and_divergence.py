"""The rank by the stated rule, and the mean divergence of all pairs, against the plain definitions."""

from __future__ import annotations

import numpy as np
import pytest

from sememekit.measure import PairwiseDivergence
from sememekit.measure.rank import TriangularFactor, rows_that_fit, spectrum_of


def mean_pairwise_divergence(log_probs: np.ndarray) -> float:
    total = PairwiseDivergence(log_probs.shape[1])
    total.add(log_probs)
    return total.mean()


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("shape", [(40, 90), (90, 40), (60, 60)])
def test_log_probabilities_of_a_softmax_have_the_rank_of_its_contexts_and_two_more(shape: tuple[int, int]) -> None:
    """Five dimensions, one for the word bias, one for the normaliser of each row."""
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(shape[0], 5)) @ generator.normal(size=(5, shape[1]))
    assert spectrum_of(log_softmax(logits)).rank == 6
    assert spectrum_of(log_softmax(logits + generator.normal(size=shape[1]))).rank == 7


def test_a_mixture_of_softmaxes_has_full_rank() -> None:
    generator = np.random.default_rng(0)
    each = [log_softmax(generator.normal(size=(40, 5)) @ generator.normal(size=(5, 60)) * 3) for _ in range(2)]
    assert spectrum_of(np.logaddexp(*each)).rank == 40


def test_the_round_off_is_that_of_the_rule() -> None:
    values = np.diag([4.0, 2.0, 1e-14, 0.0])
    spectrum = spectrum_of(values)
    assert spectrum.round_off == pytest.approx(0.5 * 3.0 * 2.220446049250313e-16 * 4.0)
    assert spectrum.rank == 3, "1e-14 is above 1.3e-15"
    np.testing.assert_allclose(spectrum.values, [4.0, 2.0, 1e-14, 0.0], atol=1e-20)
    np.testing.assert_allclose(spectrum.cumulative(np.array([0.0, 1e-10, 0.5, 0.9, 1.0])), [0.25, 0.5, 0.75, 0.75, 1.0])


def test_all_pairs_of_contexts_are_compared() -> None:
    generator = np.random.default_rng(1)
    log_probs = log_softmax(generator.normal(size=(7, 11)) * 2)
    pairs = [
        float((np.exp(one) * (one - other)).sum())
        for i, one in enumerate(log_probs)
        for j, other in enumerate(log_probs)
        if i != j
    ]
    assert mean_pairwise_divergence(log_probs) == pytest.approx(np.mean(pairs), rel=1e-12)
    assert mean_pairwise_divergence(np.repeat(log_probs[:1], 4, axis=0)) == pytest.approx(0.0, abs=1e-12)
    two = (np.exp(log_probs[0]) - np.exp(log_probs[1])) @ (log_probs[0] - log_probs[1])
    assert mean_pairwise_divergence(log_probs[:2]) == pytest.approx(two / 2), "two contexts make a pair"
    assert np.isnan(mean_pairwise_divergence(log_probs[:1]))


def test_memory_is_counted_in_rows() -> None:
    assert rows_that_fit(10_000, 2**30) == 2**30 // 240_000


@pytest.mark.parametrize(
    ("rows", "columns", "rank"), [(300, 40, 40), (700, 150, 150), (700, 150, 12), (17, 40, 17), (40, 40, 3)]
)
def test_singular_values_by_blocks_are_those_of_the_whole_matrix(
    rows: int, columns: int, rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values down to 1e-11 of the largest, of which a Gram matrix loses those below 1e-8; blocks that do not divide N."""
    monkeypatch.setattr("sememekit.measure.rank.BLOCK_ROWS", 64)
    source = np.random.default_rng(rows + rank)
    left, _ = np.linalg.qr(source.normal(size=(rows, rank)))
    right, _ = np.linalg.qr(source.normal(size=(columns, rank)))
    matrix = left * np.logspace(3, -8, rank) @ right.T
    factor = TriangularFactor(columns)
    for begin in range(0, rows, 101):
        factor.add(matrix[begin : begin + 101])
    found, expected = factor.spectrum(), spectrum_of(matrix)
    assert found.shape == expected.shape == (rows, columns)
    assert found.rank == expected.rank == rank
    assert len(found.values) == len(expected.values)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=expected.round_off)


def test_the_divergence_by_blocks_is_that_of_all_rows() -> None:
    log_probs = np.log(np.random.default_rng(1).dirichlet(np.ones(6), size=50))
    total = PairwiseDivergence(6)
    for begin in range(0, 50, 7):
        total.add(log_probs[begin : begin + 7])
    assert total.mean() == pytest.approx(mean_pairwise_divergence(log_probs), rel=1e-12)
