"""Names of code in every JSON and TOML of every kind of folder, with checksums that fit: is anything imported?

A stranger who hands on a folder can make its checksums fit. So each text of each file, and each key that may name a variant,
is replaced by the name of the canary, one at a time, the checksums are made to fit, and every command that reads the folder is
run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.faults.child import Commands
from tests.faults.fitted import fit, places_in, shape_of, value_at, with_value
from tests.faults.hostile import NAME, Trial, verdict_of
from tests.faults.kill import write_attack
from tests.faults.runs import World, put

Edit = tuple[str, bytes]
"""The place in a file, and the file with the name there."""
_READ = (".json", ".jsonl", ".toml")
_TABLES = ("constraints",)
"""Tables whose keys are looked up as variants."""


def edits(file: Path) -> list[Edit]:
    """Every way of putting the name into a JSON, a JSON Lines or a TOML file: of a list, and of tables with keys of the user's
    own (words, splits, seeds), the first alone."""
    raw = file.read_bytes()
    if file.suffix == ".toml":
        texts = [match.span() for match in re.finditer(rb'(?<== )"[^"\n]*"', raw)]
        return [(f"byte {begin}", raw[:begin] + json.dumps(NAME).encode() + raw[end:]) for begin, end in texts]
    whole, _, rest = raw.partition(b"\n") if file.suffix == ".jsonl" else (raw, b"", b"")
    tree, found = json.loads(whole), dict[str, bytes]()
    for place in places_in(tree, (str, type(None), list)):
        edited = with_value(tree, place, [NAME] if value_at(tree, place) == [] else NAME)
        found.setdefault(shape_of(place), json.dumps(edited, ensure_ascii=False).encode() + b"\n" + rest)
    for table in _TABLES:
        for place in places_in(tree, (dict,)):
            if place and place[-1] == table and (keys := value_at(tree, place)):
                renamed = {NAME if key == next(iter(keys)) else key: value for key, value in keys.items()}
                edited = with_value(tree, place, renamed)
                found[f"{shape_of(place)}.key"] = json.dumps(edited, ensure_ascii=False).encode() + b"\n" + rest
    return list(found.items())


def commands_on(world: World, part: str) -> dict[str, list[str]]:
    """The commands that read a part of a world: its readers, and for runs those that take settings out of one."""
    found, out = dict(world.readers) if part != "graph" else {}, str(world.folder / "out")
    if part == "run":
        run = str(world.run)
        found["--resume"] = ["train", "--out", run, "--resume", "--set", "schedule.epochs=3", "-q"]
        found["--from"] = ["train", "--from", run, "--out", out, "--set", "schedule.epochs=1", "-q"]
        if world.kind == "nli":
            found["attack"] = [*map(str, write_attack(world)), "--out", out]
        dataset = json.loads((world.run / "data.json").read_bytes())["dataset"]
        found["--vocabulary"] = ["preprocess", dataset, str(world.folder / "text"), "--vocabulary", run, "--out", out, "-q"]
    if part in ("data", "graph"):
        found["train"] = [*world.train, "--out", out]
    if world.kind == "seeds" and "evaluate-ppl" in found:  # where there are runs, one beside them
        found["--seeds"] = ["train", "--seeds", "3", "--out", str(world.folder / "seeds"), "--resume", "-q"]
    if world.kind == "sweep":
        best = str(world.folder / "sweep" / "best.toml")
        found["--recipe"] = ["train", "--recipe", best, "--out", out, "-q"]
    return found


def names(commands: Commands, world: World, kept: Path, wanted: Callable[[str], bool] = lambda place: True) -> Iterator[Trial]:
    """Every name in every file of a folder, or those whose place is ``wanted``, with every command. ``kept`` is for a copy."""
    for part in world.parts:
        put(world.folder / part, kept / part)
    for file in [file for file in world.files() if file.suffix in _READ or file.name == "graph"]:
        for place, data in edits(world.folder / file):
            for name, command in commands_on(world, file.parts[0]).items():
                if wanted(f"{world.kind}: {file}: {place}: {name}"):
                    (world.folder / file).write_bytes(data)
                    fit(world.folder / file.parts[0], but=world.folder / file)
                    done = commands(*command)
                    verdict = verdict_of(done, executed=commands.executed())
                    yield Trial(f"{world.kind} {file}: {name}", f"{place} = {NAME}", verdict, done.err.strip()[-300:])
                    for changed in (*world.parts, "out", "page.html"):
                        put(kept / changed, world.folder / changed)
