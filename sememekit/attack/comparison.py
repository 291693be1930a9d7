"""Paired differences between two finished attacks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sememekit.attack.examples import ExampleResult
from sememekit.attack.folder import AttackFolder
from sememekit.attack.report import AttackComparison
from sememekit.attack.victim import SAME
from sememekit.errors import DataError
from sememekit.measure.attack_rates import NOT_TURNED, UNDER_ATTACK, paired_differences


def compare_attacks(first: Path, second: Path) -> AttackComparison:
    """Paired differences between two finished attacks on the same data, the first minus the second. Raises CheckpointError: a
    folder is no attack, or an unfinished one: successes end first, so what is done already is no sample. Raises DataError: they
    are neither on one file nor on the same texts and labels, or have no example in common.
    """
    folders = [AttackFolder.open(path) for path in (first, second)]
    for folder in folders:
        folder.report()
    sides = [folder.results() for folder in folders]
    hashes = [folder.identity["data"]["sha256"] for folder in folders]
    both = sides[0].keys() & sides[1].keys()
    same = all((sides[0][one].fields, sides[0][one].label) == (sides[1][one].fields, sides[1][one].label) for one in both)
    if hashes[0] != hashes[1] and not same:  # texts of a list have another hash than those of a file
        if both and all(sides[0][one].fields == sides[1][one].fields for one in both):
            labels = [", ".join(sorted({side[one].label for one in both})) for side in sides]
            told = f"other label names: {labels[0]} against {labels[1]}" if labels[0] != labels[1] else "other true labels"
            raise DataError(f"{first} and {second}: same texts, {told}; attack again with one set of labels (names=, --labels)")
        names = " and ".join(str(folder.identity["data"]["path"]) for folder in folders)
        raise DataError(f"{first} and {second} attacked different data ({names}); pairs need the same examples")
    common = [
        index for index in sides[0] if index in sides[1] and "error" not in (sides[0][index].outcome, sides[1][index].outcome)
    ]
    if not common:
        raise DataError(f"{first} and {second} have no finished example in common")
    budgets = tuple(folder.query_budget for folder in folders)
    targeted = any(result.target is not None for side in sides for result in side.values())
    survived_as = NOT_TURNED if targeted else UNDER_ATTACK
    return AttackComparison(
        first=str(first),
        second=str(second),
        common=len(common),
        only_one=len({*sides[0], *sides[1]}) - len(common),
        unlike=_unlike(folders[0].identity, folders[1].identity) | _other_answers(*sides),
        rows=tuple(paired_differences(sides[0], sides[1], budgets=(budgets[0], budgets[1]), survived_as=survived_as)),
    )


def _other_answers(first: Mapping[int, ExampleResult], second: Mapping[int, ExampleResult]) -> dict[str, tuple[str, str]]:
    """A row where the victims answer the same texts unlike: two functions, or two objects of a notebook, can have one name."""
    pairs = [(first[one].probabilities, second[one].probabilities) for one in first.keys() & second.keys()]
    known = [(one, two) for one, two in pairs if one is not None and two is not None and len(one) == len(two)]
    moved = sum(any(abs(a - b) > SAME for a, b in zip(one, two, strict=True)) for one, two in known)
    return {"victim.probabilities": ("as stored", f"other ones for {moved:,} of {len(known):,} texts")} if moved else {}


def _unlike(first: Mapping[str, Any], second: Mapping[str, Any], name: str = "") -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for key in dict.fromkeys((*first, *second)):
        one, two, path = first.get(key), second.get(key), f"{name}.{key}" if name else key
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            found |= _unlike(one, two, path)
        elif one != two:
            found[path] = ("–" if one is None else str(one), "–" if two is None else str(two))
    return found
