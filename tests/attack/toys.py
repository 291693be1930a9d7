"""Victims small enough to reason about, and examples for them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sememekit.attack import (
    Attack,
    AttackResources,
    Example,
    Victim,
    build_constraints,
    read_attack_plan,
)

LABELS = ("no", "yes")
TABLE = {
    "good": ("fine", "nice", "okay"),
    "film": ("movie", "picture"),
    "very": ("quite", "rather"),
    "bad": ("poor", "weak", "dull"),
    "slow": ("lame", "long"),
    "end": ("finish", "close"),
}
TEXTS = (
    ("the film was very good in the end .", "yes"),
    ("a bad slow film", "no"),
    ("good good good film , very good", "yes"),
    ("a bad end to a bad film", "no"),
    ("very slow but good", "yes"),
    ("nothing here can change", "yes"),
    ("the end was bad .", "no"),
    ("a slow slow slow film .", "no"),
)
EXAMPLES = [Example(index, (text,), label) for index, (text, label) in enumerate(TEXTS)]
RESOURCES = AttackResources(None, ("the", "a", "film"), ("text",))


def weight(word: str) -> float:
    """A fixed weight for each word; synonyms pull the other way, neighbours in a text interact a little."""
    base = {"good": 1.3, "bad": -1.3, "very": 0.2, "slow": -0.5, "film": 0.1}.get(word)
    return base if base is not None else (zlib.crc32(word.encode()) % 1000 / 1000.0 - 0.5) * 1.2


def logit(text: str) -> float:
    words = text.split()
    pairs = sum(((zlib.crc32(f"{a} {b}".encode()) % 100) / 100.0 - 0.5) * 0.3 for a, b in pairwise(words))
    return sum(weight(word) for word in words) + pairs


def predict(texts: list[str]) -> np.ndarray:
    yes = np.array([1.0 / (1.0 + math.exp(-logit(text))) for text in texts])
    return np.stack([1.0 - yes, yes], axis=1)


class Counting:
    """A victim that notes the texts of each call."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.texts: list[str] = []

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.batches.append(len(texts))
        self.texts.extend(texts)
        return predict(texts)


def make_attack(
    search: str = "greedy",
    *,
    function: Any = predict,
    labels: Sequence[str] = LABELS,
    resources: AttackResources = RESOURCES,
    **tables: Any,
) -> Attack:
    """An attack on a toy; ``search__width=3`` and the like change a key, ``constraints={...}`` a whole table."""
    plan_table: dict[str, Any] = {
        "search": {"name": search},
        "candidates": {"name": "table", "path": "unused"},
        "attack": {"constraints": "none"},
    }
    for path, value in tables.items():
        slot, _, key = path.partition("__")
        if key:
            plan_table.setdefault(slot, {})[key] = value
        else:
            plan_table[slot] = value
    plan = read_attack_plan(plan_table, "a test")
    victim = Victim(function, labels, name="toy", batch_size=plan.attack.batch_size)
    return Attack(
        victim,
        plan.goal.build(labels),
        plan.search.build(),
        build_constraints(plan, resources),
        TABLE,
        plan.attack,
    )
