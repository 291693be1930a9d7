"""The recursions over lattices, against a list of all paths."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from sememekit.layers.lattice import (
    backward_scores,
    best_path,
    edge_posteriors,
    ending_edges,
    forward_scores,
    log_marginal,
    sample_path,
    weighted_sum,
)

BATCH, TOKENS, LONGEST, COPIES = 4, 6, 3, 2
LENGTHS = torch.tensor([6, 1, 4, 2])

Edge = tuple[int, int, int]
"""(last token, length - 1, copy)."""


@dataclass(frozen=True)
class Path:
    edges: tuple[Edge, ...]
    score: float


def lattice(seed: int = 3) -> Tensor:
    """Scores of all edges, some of them missing; one token at a time is always a way."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(BATCH, TOKENS, LONGEST, COPIES, generator=generator, dtype=torch.float64)
    missing = torch.rand(scores.shape, generator=generator) < 0.2
    missing[:, :, 0, 0] = False
    scores = scores.masked_fill(missing, -torch.inf)
    for length in range(2, LONGEST + 1):
        scores[:, : length - 1, length - 1] = -torch.inf
    return scores


def all_paths(scores: Tensor, length: int) -> list[Path]:
    """Every path of one sentence, by writing out all compositions of its length and all choices of copies."""
    found = []
    for steps in range(1, length + 1):
        for sizes in itertools.product(range(1, LONGEST + 1), repeat=steps):
            if sum(sizes) != length:
                continue
            ends = list(itertools.accumulate(sizes))
            for copies in itertools.product(range(COPIES), repeat=steps):
                edges = tuple((end - 1, size - 1, copy) for end, size, copy in zip(ends, sizes, copies, strict=True))
                score = sum(float(scores[edge]) for edge in edges)
                if score > -float("inf"):
                    found.append(Path(edges, score))
    return found


def test_the_marginal_is_the_sum_over_all_paths() -> None:
    scores = lattice()
    found = log_marginal(scores, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        paths = torch.tensor([path.score for path in all_paths(scores[row], length)], dtype=torch.float64)
        torch.testing.assert_close(found[row], paths.logsumexp(0), rtol=0, atol=1e-12)


def test_posteriors_are_the_shares_of_the_paths_over_each_edge() -> None:
    scores = lattice()
    found = edge_posteriors(scores, LENGTHS)
    expected = torch.zeros_like(scores)
    for row, length in enumerate(LENGTHS.tolist()):
        paths = all_paths(scores[row], length)
        weights = torch.tensor([path.score for path in paths], dtype=torch.float64).softmax(0)
        for path, weight in zip(paths, weights, strict=True):
            for edge in path.edges:
                expected[(row, *edge)] += weight
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_forward_and_backward_meet_at_every_node() -> None:
    """Edges that cross from before a token to behind it have all of the probability between them."""
    scores = lattice()
    posteriors = edge_posteriors(scores, LENGTHS).sum(3)
    for row, length in enumerate(LENGTHS.tolist()):
        for token in range(length):
            crossing = sum(
                float(posteriors[row, last, size])
                for last in range(TOKENS)
                for size in range(LONGEST)
                if last - size <= token <= last
            )
            assert crossing == pytest.approx(1.0, abs=1e-12)
    alpha, total = forward_scores(scores, LENGTHS)
    torch.testing.assert_close(backward_scores(scores, LENGTHS)[:, 0], total, rtol=0, atol=1e-12)
    assert not alpha[:, 0].any()


def test_the_best_path_is_the_best_of_all() -> None:
    scores = lattice()
    value, taken = best_path(scores, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        best = max(all_paths(scores[row], length), key=lambda path: path.score)
        assert float(value[row]) == pytest.approx(best.score, abs=1e-12)
        assert {tuple(edge) for edge in taken[row].nonzero().tolist()} == set(best.edges)


def test_samples_come_as_often_as_the_posterior_says() -> None:
    scores, draws = lattice()[2:3], 4000
    many = scores.expand(draws, -1, -1, -1)
    taken = sample_path(many, LENGTHS[2].expand(draws), torch.Generator().manual_seed(1))
    paths = all_paths(scores[0], int(LENGTHS[2]))
    weights = torch.tensor([path.score for path in paths], dtype=torch.float64).softmax(0)
    seen = [frozenset(map(tuple, one.nonzero().tolist())) for one in taken]
    for path, weight in zip(paths, weights.tolist(), strict=True):
        share = seen.count(frozenset(path.edges)) / draws
        assert share == pytest.approx(weight, abs=4 * (weight / draws) ** 0.5 + 1e-3)


def test_gradients_agree_with_finite_differences() -> None:
    scores = lattice()
    there = torch.isfinite(scores)
    free = scores[there].clone().requires_grad_(True)

    def marginal(values: Tensor) -> Tensor:
        return log_marginal(torch.full_like(scores, -torch.inf).masked_scatter(there, values), LENGTHS)

    assert torch.autograd.gradcheck(marginal, free)


@pytest.mark.parametrize("behind", [7.0, torch.inf, torch.nan])
def test_what_stands_behind_the_end_is_never_looked_at(behind: float) -> None:
    scores = lattice()
    changed = scores.clone()
    for row, length in enumerate(LENGTHS.tolist()):
        changed[row, length:] = behind
    answers = []
    for given in (scores.requires_grad_(True), changed.requires_grad_(True)):
        (gradient,) = torch.autograd.grad(log_marginal(given, LENGTHS).sum(), given)
        sampled = sample_path(given, LENGTHS, torch.Generator().manual_seed(1))
        recursions = forward_scores(given, LENGTHS)[1], backward_scores(given, LENGTHS), edge_posteriors(given, LENGTHS)
        answers.append([gradient, log_marginal(given, LENGTHS), *recursions, *best_path(given, LENGTHS), sampled])
    for one, other in zip(*answers, strict=True):
        assert torch.equal(one, other)
    for row in range(BATCH):
        alone = log_marginal(scores[row : row + 1, : LENGTHS[row]], LENGTHS[row : row + 1])
        torch.testing.assert_close(alone[0], log_marginal(scores, LENGTHS)[row], rtol=0, atol=1e-13)


def test_edges_by_where_they_begin_become_edges_by_where_they_end() -> None:
    leaving = torch.arange(TOKENS * LONGEST * COPIES, dtype=torch.float64).view(1, TOKENS, LONGEST, COPIES)
    ending = ending_edges(leaving)
    for last, size in itertools.product(range(TOKENS), range(LONGEST)):
        begin = last - size
        expected = leaving[0, begin, size] if begin >= 0 else torch.full((COPIES,), -torch.inf, dtype=torch.float64)
        assert torch.equal(ending[0, last, size], expected)


def test_texts_without_tokens_have_no_edges() -> None:
    scores, lengths = torch.zeros(2, 0, 3, 1), torch.zeros(2, dtype=torch.long)
    assert log_marginal(scores, lengths).tolist() == [0.0, 0.0]
    assert edge_posteriors(scores, lengths).shape == (2, 0, 3, 1)
    value, taken = best_path(scores, lengths)
    assert (value.tolist(), taken.shape) == ([0.0, 0.0], (2, 0, 3, 1))
    assert sample_path(scores, lengths).shape == (2, 0, 3, 1)


def test_a_sentence_without_a_way_has_probability_zero() -> None:
    scores = torch.full((1, 3, 1, 1), -torch.inf, dtype=torch.float64).requires_grad_(True)
    value = log_marginal(scores, torch.tensor([3]))
    assert float(value.detach()) == -float("inf")
    value.backward()
    assert scores.grad is not None
    assert not scores.grad.any()


def test_states_are_summed_by_their_weights() -> None:
    weights_LCB, states_LCBH = torch.randn(3, 2, 4, dtype=torch.float64), torch.randn(3, 2, 4, 5, dtype=torch.float64)
    expected = (weights_LCB.unsqueeze(-1) * states_LCBH).sum((0, 1))
    torch.testing.assert_close(weighted_sum(weights_LCB, *states_LCBH.unbind(0)), expected)
