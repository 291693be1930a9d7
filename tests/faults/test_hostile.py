"""Names of functions in the files of folders, and a sample of hostile files. ``make faults`` has more."""

from __future__ import annotations

from pathlib import Path

from tests.faults.child import Commands
from tests.faults.fitted import fit
from tests.faults.hostile import MUST_BE_ZERO, NAME, REFUSED, Stage
from tests.faults.names import names
from tests.faults.runs import contents

LOOKED_UP = ("name", "dataset", "segmenter", "key", "kind")
"""Last parts of the places in which variants are named."""
READ_BY = ("evaluate-ppl", "--resume", "--from", "--vocabulary", "train", "pull", "resume", "--recipe")


def is_looked_up(place: str) -> bool:
    """Return whether a place of ``names`` says what is looked up, and the command is one of a few."""
    _, file, at, command = place.split(": ")
    return (at.split(".")[-1] in LOOKED_UP or file.endswith(".toml")) and command in READ_BY and "metrics" not in file


def test_no_name_in_a_file_is_imported_though_its_checksums_fit(commands: Commands, stage: Stage, tmp_path: Path) -> None:
    trials = []
    for world in (stage.nli, stage.sdlm, *stage.folders):
        wanted = is_looked_up if world is not stage.nli else lambda place: place.endswith("data.json: dataset: attack")
        for trial in names(commands, world, tmp_path, wanted):
            assert trial.verdict not in MUST_BE_ZERO, trial
            trials.append(trial)
    assert len(trials) > 60
    refused = [trial for trial in trials if trial.verdict == REFUSED]
    assert {trial.place.split(":")[0] for trial in refused} > {
        "sdlm run/plan.json",
        "sdlm run/data.json",
        "seeds seeds/seeds.json",
    }
    assert not [trial for trial in refused if "checksum" in trial.said], "a checksum that does not fit hides what is behind it"


def test_checksums_that_were_made_to_fit_are_those_that_were_there(stage: Stage, tmp_path: Path) -> None:
    for world in (stage.sdlm, stage.nli, *stage.folders):
        for part in world.parts:
            before = contents(world.folder / part)
            fit(world.folder / part)
            assert contents(world.folder / part) == before, part


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
