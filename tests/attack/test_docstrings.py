"""The uses in the docstrings of an attack's public classes run as they stand."""

from __future__ import annotations

import doctest
import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from sememekit.attack import AttackResources, Document, Example, Victim
from sememekit.attack.candidates import TableCandidates
from sememekit.attack.constraints.words import Protected
from sememekit.attack.goals import Untargeted
from sememekit.attack.plan import RunningSettings
from sememekit.attack.searches import Greedy
from sememekit.attack.space import Space

MODULES = ("candidates", "constraints", "documents", "engine", "goals", "searches", "space", "victim")


@pytest.mark.parametrize("name", MODULES)
def test_the_uses_in_docstrings(name: str, tmp_path: Path) -> None:
    substitutes = tmp_path / "substitutes.json"
    substitutes.write_text(json.dumps({"good": ["fine", "great"]}), encoding="utf-8")
    shared = (Document, Example, Greedy, Protected, RunningSettings, Space, TableCandidates, Untargeted)
    given = {
        "np": np,
        "resources": AttackResources(None, (), ("text",)),
        "substitutes": str(substitutes),
        "victim": Victim(lambda texts: np.array([[0.25, 0.75]] * len(texts)), ["negative", "positive"], name="mine"),
        **{shown.__name__: shown for shown in shared},
    }
    found = doctest.testmod(import_module(f"sememekit.attack.{name}"), extraglobs=given)
    assert found.attempted > 0
    assert found.failed == 0
