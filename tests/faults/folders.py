"""Folders that commands make of runs, and the commands that read them."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.faults.child import Commands
from tests.faults.kill import write_attack
from tests.faults.runs import World, make_world

FOLDERS = ("attack", "seeds", "sweep", "pushed", "claims")
_RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results" / "claims"
_CLAIM = "lstm-one-layer-sdlm-small"
"""Results of one claim's models, of which the ledger makes a verdict."""


def make_folder(commands: Commands, folder: Path, kind: str) -> World:
    """A folder of one kind, called by its kind, beside what it was made from."""
    made = folder / kind
    if kind == "claims":
        made.mkdir(parents=True)
        for path in (*_RESULTS.glob(f"{_CLAIM}-*"), *_RESULTS.glob("lstm-one-layer-small-*")):
            shutil.copy(path, made)
        assert len(list(made.iterdir())) == 6, "three seeds of two models"
        return World(kind, folder, [], {"report": ["reproduce", "report", "--from", str(made), "--json"]}, (kind,))
    world = make_world(commands, folder, "nli" if kind == "attack" else "softmax")
    out = ["--out", str(made)]
    if kind == "attack":
        commands.do(*write_attack(world), *out)
        readers = {
            "compare": ["attack", "--compare", str(made), str(made), "--json"],
            "resume": ["attack", *out, "--resume", "--json", "-q"],
        }
    elif kind == "seeds":
        seeds = [*world.train, "--seeds", "1,2", *out]
        commands.do(*seeds)
        readers = {
            "evaluate-ppl": ["evaluate-ppl", str(made), "--json"],
            "resume": ["train", "--seeds", "1,2", *out, "--resume", "--json", "-q"],
        }
    elif kind == "sweep":
        flags = [flag for flag in world.train[1:] if flag != "--json"]
        sweep = ["sweep", *flags, "--over", "optimizer.learning_rate=1.0,4.0", "--trials", "2", "--jobs", "1", *out, "--json"]
        commands.do(*sweep)
        readers = {"again": list(sweep)}
    else:
        commands.do("push", world.run, made)
        pulled = str(folder / "out")
        readers = {"pull": ["pull", str(made), "--out", pulled, "--json"]}
    return World(kind, folder, world.train, readers, (kind,), depth=99 if kind in ("attack", "pushed") else 2)
