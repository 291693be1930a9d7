"""Names of functions in the files of folders, and a sample of hostile files. ``make faults`` has all of them."""

from __future__ import annotations

from tests.faults.child import Commands
from tests.faults.hostile import EXECUTED, MUST_BE_ZERO, NAME, Stage


def test_no_name_in_a_file_is_imported(stage: Stage) -> None:
    trials = list(stage.names())
    assert len(trials) > 15
    assert [trial for trial in trials if trial.verdict == EXECUTED] == []


def test_a_sample_of_hostile_files(stage: Stage) -> None:
    trials = list(stage.trials(lambda number: number % 97 == 5))
    assert len(trials) > 8
    assert [trial for trial in trials if trial.verdict in MUST_BE_ZERO] == []


def test_the_harness_sees_what_is_executed(commands: Commands, stage: Stage) -> None:
    """A name on the command line is imported: it was typed by whoever runs it."""
    data, out = stage.nli.folder / "attacked.tsv", stage.folder / "typed"
    commands("attack", NAME, "--labels", "a,b", "--data", data, "--source", "open", "--out", out, "-q")
    assert commands.executed()
    assert not commands.executed()
