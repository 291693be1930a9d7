"""Folders that commands make of runs, and the commands that read them."""

from __future__ import annotations

import json
import random
from pathlib import Path

from sememekit.errors import DataError
from sememekit.files import read_sealed, sealed
from sememekit.jobs.recipes import toml_text
from tests.faults.child import Commands
from tests.faults.kill import write_attack
from tests.faults.runs import World, make_world, settings

FOLDERS = ("attack", "seeds", "sweep", "pushed", "claims")
ALL_FOLDERS = (*FOLDERS, "quickstart")
"""With the one of which a file that is damaged is made again, in ten seconds."""
_RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results" / "claims"
_CLAIM = "lstm-one-layer-sdlm-small"
"""Results of one claim's models, of which the ledger makes a verdict."""
_WORDS = ("去年", "美国", "贸易", "中国", "政府", "坚持", "改革", "开放", "的", "他", "每天", "学习", "估计", "经济", "今天")


def make_folder(commands: Commands, folder: Path, kind: str) -> World:
    """A folder of one kind, called by its kind, beside what it was made from."""
    made = folder / kind
    if kind == "claims":
        made.mkdir(parents=True)
        for path in (*_RESULTS.glob(f"{_CLAIM}-*"), *_RESULTS.glob("lstm-one-layer-small-*")):
            (made / path.name).write_bytes(sealed(read_sealed(path, DataError)))
        assert len(list(made.iterdir())) == 6, "three seeds of two models"
        return World(kind, folder, [], {"report": ["reproduce", "report", "--from", str(made), "--json"]}, (kind,))
    if kind == "quickstart":
        folder.mkdir(parents=True)
        tour = write_tour(folder, made)
        commands.do(*tour, seconds=300)
        return World(kind, folder, [], {"again": tour}, (kind,), depth=1)
    world = make_world(commands, folder, "nli" if kind == "attack" else "softmax")
    if kind in ("attack", "pushed"):
        return folder_of(commands, world, kind)
    out = ["--out", str(made)]
    if kind == "seeds":
        seeds = [*world.train, "--seeds", "1,2", *out]
        commands.do(*seeds, seconds=300)
        readers = {
            "evaluate-ppl": ["evaluate-ppl", str(made), "--json"],
            "resume": ["train", "--seeds", "1,2", *out, "--resume", "--json", "-q"],
        }
    else:
        flags = [flag for flag in world.train[1:] if flag != "--json"]
        sweep = ["sweep", *flags, "--over", "optimizer.learning_rate=1.0,4.0", "--trials", "2", "--jobs", "1", *out, "--json"]
        commands.do(*sweep, seconds=300)
        readers = {"again": list(sweep)}
    return World(kind, folder, world.train, readers, (kind,), depth=2)


def write_tour(folder: Path, out: Path) -> list[str]:
    """A small text of our own, and the quickstart on it."""
    draw, text = random.Random(1), folder / "mine.txt"
    text.write_text("".join(" ".join(draw.choices(_WORDS, k=20)) + "\n" for _ in range(70)), encoding="utf-8")
    sizes = settings(schedule__epochs=1, task__embedding_size=8, encoder__hidden_size=8)
    return ["quickstart", "--text", str(text), "--out", str(out), "--json", "-q", *sizes]


def folder_of(commands: Commands, world: World, kind: str) -> World:
    """A folder of one kind beside the run of a world, made without training: of seeds and of a sweep the files that are read
    before anything is trained."""
    folder, made, out = world.folder, world.folder / kind, str(world.folder / "out")
    plan = json.loads((world.run / "plan.json").read_bytes())
    if kind == "attack":
        commands.do(*write_attack(world), "--out", made)
        readers = {
            "compare": ["attack", "--compare", str(made), str(made), "--json"],
            "resume": ["attack", "--out", str(made), "--resume", "--json", "-q"],
        }
    elif kind == "pushed":
        commands.do("push", world.run, made)
        readers = {"pull": ["pull", str(made), "--out", out, "--json"]}
    elif kind == "seeds":
        made.mkdir()
        (made / "seeds.json").write_bytes(sealed({"table": plan, "seeds": [], "runs": []}))
        readers = {"resume": ["train", "--seeds", "1", "--out", str(made), "--resume", "--set", "task.batch_size=5", "-q"]}
    else:
        made.mkdir()
        (made / "best.toml").write_text(toml_text(plan), encoding="utf-8")
        readers = {}
    return World(kind, folder, world.train, readers, (kind,))
