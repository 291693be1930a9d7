"""The most probable items of groups against the whole distribution, and what is not looked at."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from torch import Tensor

from sememekit.layers import grouped_topk
from sememekit.layers.grouped_cross_entropy import Groups

ITEMS, GROUPS, ROWS, SIZE = 60, 13, 11, 4


def make(sharpness: float) -> tuple[Tensor, Tensor, Tensor, Tensor, Groups]:
    """Rows, items, bias, log-probabilities of the groups, and groups of which two are empty."""
    generator = torch.Generator().manual_seed(2)
    draw = torch.randn(ROWS + ITEMS, SIZE, generator=generator, dtype=torch.float64)
    group_of = torch.randint(0, GROUPS - 2, (ITEMS,), generator=generator)
    groups = Groups(group_of.numpy(), GROUPS)
    among = sharpness * torch.randn(ROWS, GROUPS, generator=generator, dtype=torch.float64)
    among = among.masked_fill(groups.sizes == 0, -torch.inf).log_softmax(dim=1)
    return draw[:ROWS], draw[ROWS:], torch.randn(ITEMS, generator=generator, dtype=torch.float64), among, groups


@pytest.mark.parametrize("sharpness", [0.0, 1.0, 8.0])
@pytest.mark.parametrize("count", [1, 7, ITEMS])
@pytest.mark.parametrize("few_rows", [0, 64])
def test_they_are_those_of_the_whole_distribution(
    sharpness: float, count: int, few_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search goes group by group to the end, or takes the unsure rows at once."""
    module = sys.modules["sememekit.layers.grouped_topk"]
    monkeypatch.setattr(module, "FEW_ROWS", few_rows)
    monkeypatch.setattr(module, "PATIENCE", 4)
    monkeypatch.setattr(module, "_at_once_is_quicker", lambda *given: False)
    rows, items, bias, among, groups = make(sharpness)
    values, found = grouped_topk(rows, items, bias, among, groups, count)
    logits, whole = rows @ items.T + bias, torch.zeros(ROWS, ITEMS, dtype=torch.float64)
    for group in groups.group_of.unique():
        own = groups.group_of == group
        whole[:, own] = logits[:, own].log_softmax(dim=1) + among[:, group, None]
    torch.testing.assert_close(values, whole.topk(count).values, rtol=0, atol=1e-12)
    torch.testing.assert_close(whole.gather(1, found), values, rtol=0, atol=1e-12)
    assert all(len(set(row)) == count for row in found.tolist())


def test_all_at_once_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, items, bias, among, groups = make(1.0)
    found = {}
    for at_once in (True, False):
        module = sys.modules["sememekit.layers.grouped_topk"]
        monkeypatch.setattr(module, "_at_once_is_quicker", lambda *given, way=at_once: way)
        found[at_once] = grouped_topk(rows, items, bias, among, groups, 9)
    torch.testing.assert_close(found[True][0], found[False][0], rtol=0, atol=1e-12)
    assert torch.equal(found[True][1], found[False][1])


@pytest.mark.parametrize(
    ("num_rows", "num_items", "size", "num_groups", "at_once"),
    [
        (1, 10_000, 200, 100, True),  # reading all vectors costs less than 24 groups do
        (20, 1_000, 200, 100, True),  # few rows ask for all groups, and the groups are small
        (100, 10_000, 2, 100, False),  # short vectors: what each row and item costs decides
        (1_000, 10_000, 200, 100, False),
    ],
)
def test_the_quicker_way_is_taken(num_rows: int, num_items: int, size: int, num_groups: int, at_once: bool) -> None:
    groups = Groups(np.arange(num_items) % num_groups, num_groups)
    quicker = sys.modules["sememekit.layers.grouped_topk"]._at_once_is_quicker
    assert quicker(num_rows, torch.empty(num_items, size), groups) is at_once


def test_groups_that_cannot_hold_one_are_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectors of such groups may be anything."""
    monkeypatch.setattr(sys.modules["sememekit.layers.grouped_topk"], "_at_once_is_quicker", lambda *given: False)
    rows, items, bias, among, groups = make(0.0)
    among = torch.full_like(among, -30.0)
    among[:, :4] = 0.0
    values, found = grouped_topk(rows, items, bias, among, groups, 5)
    spoilt = items.masked_fill((groups.group_of >= 4)[:, None], torch.nan)
    again, same = grouped_topk(rows, spoilt, bias, among, groups, 5)
    assert torch.equal(values, again)
    assert torch.equal(found, same)


def test_no_rows_give_nothing() -> None:
    rows, items, bias, among, groups = make(1.0)
    values, found = grouped_topk(rows[:0], items, bias, among[:0], groups, 3)
    assert values.shape == found.shape == (0, 3)
