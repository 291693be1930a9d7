"""Every recipe of an attack is read, survives its plan, and attacks a toy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sememekit.attack import (
    Attack,
    AttackResources,
    Example,
    Victim,
    build_constraints,
    is_attack,
    read_attack_plan,
)
from sememekit.attack.constraints import PRESETS
from sememekit.config import list_recipes, load_recipe, resources_folder
from tests.attack.toys import TABLE, TEXTS, predict

NAMES = [recipe.name for recipe in list_recipes() if is_attack(load_recipe(recipe.name))]
FILLER = " and so it goes on and on , you know"
PUBLISHED = {
    "attack/alzantot-paper-entailment": (60, 20, "best", 0.3),
    "attack/alzantot-paper-sentiment": (60, 20, "best", 0.3),
    "attack/released-nli": (128, 12, "random", 1.0),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_survives_its_plan(name: str) -> None:
    plan = read_attack_plan(load_recipe(name), name)
    assert read_attack_plan(plan.table(), name) == plan
    assert plan.attack.preset, "the report says what the settings stand for"
    added = PRESETS["standard" if name == "attack/worst-case" else "loose"]
    assert set(added) <= {part.name for part in plan.constraints}, "what changes the meaning stays"
    bare = load_recipe(name)
    bare["attack"]["constraints"] = "none"
    assert {part.name for part in read_attack_plan(bare, name).constraints} == set(bare.get("constraints", {}))


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_attacks(name: str) -> None:
    plan = read_attack_plan(load_recipe(name), name)
    pairs = plan.goal.name == "targeted"
    labels = ("contradiction", "neutral", "entailment") if pairs else ("no", "yes")

    def three(texts: list[tuple[str, str]]) -> np.ndarray:
        two = predict([text[1] for text in texts])
        return np.stack([two[:, 0] * 0.8, np.full(len(texts), 0.2), two[:, 1] * 0.8], axis=1)

    names = {"no": "contradiction", "yes": "entailment"} if pairs else {"no": "no", "yes": "yes"}
    examples = [
        Example(index, ("a premise", text + FILLER) if pairs else (text + FILLER,), names[label])
        for index, (text, label) in enumerate(TEXTS)
    ]
    resources = AttackResources(
        None, ("the",), ("premise", "hypothesis") if pairs else ("text",), lambda rows: [[0.0]] * len(rows)
    )
    function: Any = three if pairs else predict
    attack = Attack(
        Victim(function, labels, name="toy"),
        plan.goal.build(labels),
        plan.search.build(),
        build_constraints(plan, resources),
        TABLE,
        plan.attack,
    )
    results = list(attack.run(examples))
    assert {"success"} <= {result.outcome for result in results} <= {"success", "failed", "no_candidates", "skipped"}
    for result in results:
        assert all(change.field == len(result.fields) - 1 for change in result.changes)


@pytest.mark.parametrize("name", PUBLISHED)
def test_presets_are_what_was_published(name: str) -> None:
    search = load_recipe(name)["search"]
    assert (search["population"], search["generations"], search["replacement"], search["temperature"]) == PUBLISHED[name]


@pytest.mark.parametrize("path", sorted((resources_folder() / "recipes" / "attack").glob("*.toml")), ids=lambda path: path.stem)
def test_every_number_of_a_recipe_has_its_source_above_it(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    numbers = [n for n, line in enumerate(lines) if re.match(r"[\w.]+ = [\d.]+$", line) and not line.startswith("claim.")]
    assert len(numbers) >= 3
    for number in numbers:
        above = next(line for line in reversed(lines[:number]) if not re.match(r"[\w.]+ = ", line))
        assert re.match(r"# .*(paper:|[Cc]ode\b|ours\b)", above), f"{path.name}:{number + 1}: {lines[number]}"


def test_the_limits_of_change_are_those_of_the_papers() -> None:
    def share(name: str) -> float:
        plan = read_attack_plan(load_recipe(f"attack/{name}"), name)
        return next(part.settings.most for part in plan.constraints if part.name == "share")  # type: ignore[attr-defined]

    paper = {"alzantot-paper-sentiment": 0.2, "alzantot-paper-entailment": 0.25, "sememe-pso-sentiment": 0.25}
    code = {"released-nli": 1.0, "released-nli-bigru-cell": 1.0}
    assert {name: share(name) for name in paper | code} == paper | code
