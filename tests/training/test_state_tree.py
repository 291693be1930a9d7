"""Nested state becomes JSON and tensors, and comes back as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor

from sememekit.training.snapshots import flatten, unflatten


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and torch.equal(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def test_state_comes_back_with_its_kinds() -> None:
    tree = {
        "state": {0: {"step": torch.tensor(3.0), "sum": torch.ones(2, 3)}, 7: {}},
        "groups": [{"lr": 0.1, "betas": (0.9, 0.999), "names": [], "on": True, "none": None, "empty": {}}],
        "text": "x",
    }
    tensors: dict[str, Tensor] = {}
    plain = json.loads(json.dumps(flatten(tree, tensors, "trainer")))
    assert set(tensors) == {"trainer.state.0.step", "trainer.state.0.sum"}
    assert same(unflatten(plain, tensors), tree)


def test_what_json_cannot_hold_is_refused_with_its_place() -> None:
    with pytest.raises(TypeError, match=r"trainer\.a\.1: a set cannot be stored"):
        flatten({"a": [1, {2}]}, {}, "trainer")
