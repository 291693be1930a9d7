"""Damaged files of a run with sememes: damages that once were overlooked, and a sample. ``make faults`` has more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.child import Commands
from tests.faults.corrupt import FITTED, MUST_BE_ZERO, REFUSED, RIGHT, Damage, Fault, faults_of


def fault(damage: Damage, file: str, kind: str) -> Fault:
    found = [one for one in faults_of(damage.world, damage.foreign) if one.file.match(file) and one.kind == kind]
    assert found, f"no {kind} of {file}"
    return found[1] if kind == "truncated" else found[-1]  # cut in the middle; and the bit that leaves a word a word


@pytest.mark.parametrize(
    ("file", "kind", "command"),
    [
        ("data/test.bin", "a bit flipped", "evaluate-ppl"),
        ("data/train.bin", "a bit flipped", "train"),
        ("data/train.bin", "a bit flipped", "--resume"),
        ("data/test.bin", "swapped", "evaluate-ppl"),
        ("run/vocabulary.tsv", "a word renamed", "score"),
        ("run/vocabulary.tsv", "a word renamed", "generate"),
        ("run/graph.json", "another of its kind", "evaluate-ppl"),
        ("run/graph.json", "another of its kind", "explain"),
        ("run/data.json", "a digit changed", "--resume"),
        ("graph", "truncated", "train"),
        ("run/checkpoints/*/weights.safetensors", "a bit flipped", "evaluate-ppl"),
        ("run/checkpoints/*/trainer.safetensors", "a bit flipped", "--resume"),
        ("run/checkpoints/*/trainer.json", "a number changed", "--resume"),
        ("run/metrics.jsonl", "a digit changed", "card"),
        ("run/vocabulary.tsv", f"a word renamed{FITTED}", "score"),
        ("run/chunks.tsv", f"two lines swapped{FITTED}", "evaluate-ppl"),
        ("run/chunks.tsv", f"two lines swapped{FITTED}", "push"),
        ("run/graph.json", f"a digit changed{FITTED}", "explain"),
        ("data/vocabulary.tsv", f"a word renamed{FITTED}", "train"),
        ("data/signature.json", "a number changed", "train"),
    ],
)
def test_damage_that_changes_a_result_is_refused_by_name(damage: Damage, file: str, kind: str, command: str) -> None:
    trial = damage.trial(fault(damage, file, kind), command)
    assert trial.verdict == REFUSED, trial


def test_a_sample_of_all_damage(damage: Damage) -> None:
    tried = 0
    for trial in damage.trials(lambda number: number % 79 == 3):
        assert trial.verdict not in MUST_BE_ZERO, trial
        tried += 1
    assert tried > 15


def test_the_harness_tells_a_right_result_from_another(damage: Damage) -> None:
    """A page of words that is not damaged is right; one that no check guards is silently other."""
    nothing = Fault(Path("data/test.bin"), "nothing", 0, lambda folder: None)
    for command in damage.command_lines:
        assert damage.trial(nothing, command).verdict == RIGHT, command

    def other_lines(folder: Path) -> None:
        (damage.world.folder / "lines.txt").write_text("梨 吃 我\n", encoding="utf-8")

    lines = (damage.world.folder / "lines.txt").read_text(encoding="utf-8")
    try:
        assert damage.trial(Fault(Path("lines.txt"), "other", 0, other_lines), "score").verdict in MUST_BE_ZERO
    finally:
        (damage.world.folder / "lines.txt").write_text(lines, encoding="utf-8")


@pytest.mark.parametrize(("kind", "every"), [("pushed", 13), ("claims", 17), ("attack", 13)])
def test_a_sample_of_damage_to_other_folders(commands: Commands, tmp_path: Path, kind: str, every: int) -> None:
    damage = Damage(commands, tmp_path / kind, kind)
    trials = list(damage.trials(lambda number: number % every == 2))
    assert len(trials) > 10
    assert [trial for trial in trials if trial.verdict in MUST_BE_ZERO] == []
