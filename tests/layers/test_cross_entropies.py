"""Cross entropies that never hold all logits, and those within groups, against torch's own."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememekit.layers.grouped_cross_entropy import BLOCK, Groups, _in_padded_blocks, grouped_cross_entropy
from sememekit.layers.linear_cross_entropy import linear_cross_entropy

ROWS, WORDS, SIZE = 11, 9, 4
BLOCK_BYTES = 4 * WORDS * 8


def parts(rows: int = ROWS, words: int = WORDS) -> tuple[list[Tensor], Tensor, Tensor]:
    """Rows, words and bias; targets; and what the nats are multiplied by."""
    generator = torch.Generator().manual_seed(3)
    shapes = ((rows, SIZE), (words, SIZE), (words,))
    leaves = [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_(True) for shape in shapes]
    return leaves, torch.randint(words, (rows,), generator=generator), torch.rand(rows, generator=generator).double()


def assert_same(found: Tensor, expected: Tensor, weights: Tensor, leaves: list[Tensor]) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    gradients = [torch.autograd.grad((nats * weights).sum(), leaves) for nats in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("block", [4, 11, 256])
@pytest.mark.parametrize("kept_bytes", [0, BLOCK_BYTES, 2 * BLOCK_BYTES, 1 << 20])
@pytest.mark.parametrize("biased", [True, False])
def test_a_softmax_in_blocks_is_the_whole_one(block: int, kept_bytes: int, biased: bool) -> None:
    (rows, words, bias), target, weights = parts()
    leaves = [rows, words, *([bias] if biased else [])]
    found = linear_cross_entropy(rows, words, bias if biased else None, target, block, kept_bytes)
    expected = functional.cross_entropy(rows @ words.T + (bias if biased else 0), target, reduction="none")
    assert_same(found, expected, weights, leaves)


@pytest.mark.parametrize(
    ("kept_bytes", "kept"), [(0, 0), (BLOCK_BYTES - 1, 0), (BLOCK_BYTES, 1), (2 * BLOCK_BYTES, 2), (1 << 20, 3)]
)
def test_no_more_is_kept_than_allowed(kept_bytes: int, kept: int) -> None:
    (rows, words, _), target, _ = parts()
    nats: Any = linear_cross_entropy(rows, words, None, target, 4, kept_bytes)
    assert len(nats.grad_fn.saved_tensors) == 4 + kept


def test_products_in_half_precision_are_summed_in_single() -> None:
    leaves, target, weights = parts()
    rows, words, bias = (leaf.float().detach().requires_grad_(True) for leaf in leaves)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        nats = linear_cross_entropy(rows, words, bias, target, 4, 0)
    assert nats.dtype == torch.float32
    expected = functional.cross_entropy(rows @ words.T + bias, target, reduction="none")
    torch.testing.assert_close(nats, expected, rtol=0, atol=0.1)
    gradients = [torch.autograd.grad((one * weights.float()).sum(), (rows, words, bias)) for one in (nats, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0.1)


ITEMS = 40


def grouped(rows: int, ordered: bool, num_groups: int | None = 7) -> tuple[list[Tensor], Tensor, Tensor, Groups]:
    """Items in groups of which two are empty, one of them the last."""
    leaves, target, weights = parts(rows, ITEMS)
    group_of = np.random.default_rng(1).choice([0, 1, 3, 4, 5], ITEMS)
    return leaves, target, weights, Groups(np.sort(group_of) if ordered else group_of, num_groups)


def within_groups(rows: Tensor, items: Tensor, bias: Tensor | None, target: Tensor, groups: Groups) -> Tensor:
    logits = rows @ items.T + (0 if bias is None else bias)
    other = groups.group_of[None, :] != groups.group_of[target][:, None]
    return functional.cross_entropy(logits.masked_fill(other, -torch.inf), target, reduction="none")


@pytest.mark.parametrize("way", [grouped_cross_entropy, _in_padded_blocks])
@pytest.mark.parametrize("rows", [1, 3, 3 * BLOCK + 5, 10 * BLOCK])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("biased", [True, False])
def test_a_softmax_within_groups_is_a_masked_one(way: Any, rows: int, ordered: bool, biased: bool) -> None:
    (contexts, items, bias), target, weights, groups = grouped(rows, ordered)
    assert groups.in_order == ordered
    bias_or_none = bias if biased else None
    found = way(contexts, items, bias_or_none, target, groups)
    expected = within_groups(contexts, items, bias_or_none, target, groups)
    assert_same(found, expected, weights, [contexts, items, *([bias] if biased else [])])
    with torch.no_grad():
        torch.testing.assert_close(way(contexts, items, bias_or_none, target, groups), expected, rtol=0, atol=1e-10)


def test_groups_may_change_before_the_backward_pass() -> None:
    (rows, items, _), target, weights, groups = grouped(20, ordered=False)
    expected = torch.autograd.grad((within_groups(rows, items, None, target, groups) * weights).sum(), items)
    nats = grouped_cross_entropy(rows, items, None, target, groups)
    groups.set(torch.arange(ITEMS) % 7)
    torch.testing.assert_close(torch.autograd.grad((nats * weights).sum(), items), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("device", "sizes", "by_group"),
    [
        ("cpu", [9, 1], True),
        ("meta", [5, 5], False),
        ("meta", [64, *[1] * 8], False),
        ("meta", [65, *[1] * 8], True),
    ],
)
def test_groups_are_padded_where_that_pays(
    monkeypatch: pytest.MonkeyPatch, device: str, sizes: list[int], by_group: bool
) -> None:
    """Groups are padded on devices other than the CPU, unless the largest has over eight times the mean size."""
    module: Any = sys.modules["sememekit.layers.grouped_cross_entropy"]
    monkeypatch.setattr(module, "_in_padded_blocks", lambda *given: "padded")
    monkeypatch.setattr(module._GroupByGroup, "apply", lambda *given: "one by one")
    groups = Groups(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
    rows = torch.zeros(2, SIZE, device=device)
    found = grouped_cross_entropy(rows, torch.zeros(sum(sizes), SIZE), None, torch.zeros(2, dtype=torch.int64), groups)
    assert found == ("one by one" if by_group else "padded")


def test_groups() -> None:
    groups = Groups(np.array([7, 2, 7, 2, 7]))
    assert (groups.num_groups, groups.bounds, groups.largest) == (2, [0, 2, 5], 3), "numbers that no item has are left out"
    assert (groups.any_empty, groups.in_order, groups.lopsided) == (False, False, False)
    assert groups.members.tolist() == [1, 3, 0, 2, 4]
    assert groups.place_of.tolist() == [2, 0, 3, 1, 4]
    assert groups.sizes.tolist() == [2, 3]
    order, places = groups.sort_by_group(torch.tensor([4, 1, 0, 3]))
    assert (order.tolist(), places.tolist()) == ([1, 3, 0, 2], [0, 1, 2, 0])
    groups.set(torch.tensor([0, 0, 1, 1, 1]))
    assert (groups.bounds, groups.in_order) == ([0, 2, 5], True)
    kept = Groups(np.array([0, 2, 2]), 4)
    assert (kept.num_groups, kept.bounds, kept.any_empty) == (4, [0, 1, 1, 3, 3], True)
    assert kept.state_dict() == {}


def test_groups_that_change_travel_with_the_weights() -> None:
    class Holder(nn.Module):
        def __init__(self, group_of: list[int]) -> None:
            super().__init__()
            self.groups = Groups(np.array(group_of), 2, persistent=True)

    first, second = Holder([0, 1, 1]), Holder([1, 0, 0])
    assert list(first.state_dict()) == ["groups.group_of"]
    second.load_state_dict(first.state_dict())
    assert (second.groups.bounds, second.groups.members.tolist(), second.groups.in_order) == ([0, 1, 3], [0, 1, 2], True)


def test_eight_times_the_mean_size_is_not_lopsided_yet() -> None:
    assert not Groups(np.repeat(np.arange(9), [64, *[1] * 8]), 9).lopsided  # 64 * 9 = 8 * 72
    assert Groups(np.repeat(np.arange(9), [65, *[1] * 8]), 9).lopsided
