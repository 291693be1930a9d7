"""A softmax for contexts that come block by block, against torch's own over all of them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sememekit.layers import ChosenLogits, chosen_logits

ROWS, WORDS, SIZE = 11, 9, 4


def parts() -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    rows = torch.randn(ROWS, SIZE, generator=generator, dtype=torch.float64).requires_grad_(True)
    words = torch.randn(WORDS, SIZE, generator=generator, dtype=torch.float64).requires_grad_(True)
    bias = torch.randn(WORDS, generator=generator, dtype=torch.float64).requires_grad_(True)
    targets = torch.randint(WORDS, (ROWS, 3), generator=generator)
    weights = torch.randn(ROWS, 4, generator=generator, dtype=torch.float64)
    return rows, words, bias, targets, weights


def value(logits: Tensor, normaliser: Tensor, weights: Tensor) -> Tensor:
    """Return a number in which logits and normalisers have gradients of their own."""
    return (torch.cat([logits, normaliser[:, None]], dim=1).square() * weights).sum()


@pytest.mark.parametrize("way", ["at once", "in blocks"])
@pytest.mark.parametrize("kept_bytes", [0, 5 * WORDS * 8, 1 << 20])
@pytest.mark.parametrize("biased", [True, False])
def test_values_and_gradients(monkeypatch: pytest.MonkeyPatch, way: str, kept_bytes: int, biased: bool) -> None:
    """Probabilities are kept, computed again, or some of each, in pools of four rows."""
    monkeypatch.setattr(chosen_logits, "_POOL_ROWS", 4)
    monkeypatch.setattr(chosen_logits, "_BLOCK", 4)
    rows, words, bias, targets, weights = parts()
    inputs = [rows, words, *([bias] if biased else [])]
    logits = rows @ words.T + (bias if biased else 0)
    expected = value(logits.gather(1, targets), logits.logsumexp(1), weights)
    chosen = ChosenLogits(words, bias if biased else None, kept_bytes)
    cuts = [slice(0, 2), slice(2, 7), slice(7, ROWS)]
    if way == "in blocks":
        blocks = [chosen.pick(rows[cut], targets[cut]) for cut in cuts]
        found = value(torch.cat([one for one, _ in blocks]), torch.cat([two for _, two in blocks]), weights)
    else:
        found = value(*chosen.pick(rows, targets), weights)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    for one, other in zip(torch.autograd.grad(found, inputs), torch.autograd.grad(expected, inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_no_more_is_kept_than_was_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools of four rows, and of what is left: ten rows are allowed, and the eleventh is computed again."""
    monkeypatch.setattr(chosen_logits, "_POOL_ROWS", 4)
    rows, words, bias, targets, _ = parts()
    chosen = ChosenLogits(words, bias, 10 * WORDS * 8)
    assert chosen.pick(rows[:0], targets[:0])[0].shape == (0, 3)
    for begin in range(0, ROWS, 2):
        chosen.pick(rows[begin : begin + 2], targets[begin : begin + 2])
    assert [(len(pool.rows), pool.used) for pool in chosen._shared.pools] == [(4, 4), (4, 4), (2, 2)]


@pytest.mark.parametrize("kept_bytes", [0, 5 * WORDS * 8, 1 << 20])
def test_a_second_backward_pass_gives_the_same(kept_bytes: int) -> None:
    rows, words, bias, targets, weights = parts()
    found = value(*ChosenLogits(words, bias, kept_bytes).pick(rows, targets), weights)
    first, second = (torch.autograd.grad(found, [rows, words, bias], retain_graph=True) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("kept_bytes", [0, 5 * WORDS * 8, 1 << 20])
def test_gradients_of_the_contexts_alone_count_for_nothing_afterwards(monkeypatch: pytest.MonkeyPatch, kept_bytes: int) -> None:
    monkeypatch.setattr(chosen_logits, "_BLOCK", 4)
    rows, words, bias, targets, weights = parts()
    found = value(*ChosenLogits(words, bias, kept_bytes).pick(rows, targets), weights)
    logits = rows @ words.T + bias
    expected = value(logits.gather(1, targets), logits.logsumexp(1), weights)
    torch.autograd.grad(found, rows, retain_graph=True)
    both = (torch.autograd.grad(one, [words, bias]) for one in (found, expected))
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kept_bytes", [0, 1 << 20])
def test_gradients_of_the_contexts_of_one_call_are_not_in_those_of_the_words_in_another(kept_bytes: int) -> None:
    rows, words, bias, targets, weights = parts()
    chosen = ChosenLogits(words, bias, kept_bytes)
    first, second = (value(*chosen.pick(rows[cut], targets[cut]), weights[cut]) for cut in (slice(0, 5), slice(5, ROWS)))
    torch.autograd.grad(first, rows)
    logits = rows[5:] @ words.T + bias
    expected = value(logits.gather(1, targets[5:]), logits.logsumexp(1), weights[5:])
    both = (torch.autograd.grad(one, [words, bias]) for one in (second, expected))
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_nothing_is_kept_without_gradients() -> None:
    rows, words, bias, targets, _ = parts()
    with torch.no_grad():
        chosen = ChosenLogits(words, bias)
        log_probs = chosen.log_probs(rows, targets)
        assert not chosen._shared.pools
        torch.testing.assert_close(log_probs, (rows @ words.T + bias).log_softmax(1).gather(1, targets))
        assert chosen.log_probs(rows[:0], targets[:0]).shape == (0, 3)


def test_far_logits_stay_finite() -> None:
    rows, words, bias, targets, weights = parts()
    far = (rows * 1e3).float().detach().requires_grad_(True)
    logits, normaliser = ChosenLogits(words.float(), bias.float()).pick(far, targets)
    assert torch.isfinite(normaliser).all()
    torch.testing.assert_close(normaliser, (far @ words.float().T + bias.float()).logsumexp(1), rtol=1e-5, atol=1e-3)
    value(logits, normaliser, weights.float()).backward()
    assert far.grad is not None
    assert torch.isfinite(far.grad).all()
