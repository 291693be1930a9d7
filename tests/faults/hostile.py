"""Hostile files in every place that takes a file: is anything imported or executed, and is the refusal a clean one?

The code that would be executed is ``canary/fault_canary.py``: importing it leaves a trace, and so does calling its function.
"""

from __future__ import annotations

import gzip
import io
import pickle
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.faults.child import Commands, Outcome
from tests.faults.folders import folder_of
from tests.faults.kill import write_attack
from tests.faults.runs import make_world, put, write_lexicon

REFUSED, TAKEN, BUG, EXECUTED = "refused", "taken, nothing executed", '"this is a bug"', "EXECUTED"
MUST_BE_ZERO = (BUG, EXECUTED)
NAME = "fault_canary:act"


@dataclass(frozen=True)
class Trial:
    """A payload in a place, and what came of it."""

    place: str
    payload: str
    verdict: str
    said: str


def verdict_of(done: Outcome, *, executed: bool) -> str:
    """Return the verdict on a command."""
    return EXECUTED if executed else BUG if done.bug else TAKEN if done.code == 0 else REFUSED


class _Calls:
    """Unpickled with the standard library, this imports the canary and calls it."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, ...]]:
        return __import__, ("fault_canary",)


def pickles() -> dict[str, bytes]:
    """Pickles in six wrappings."""
    plain = pickle.dumps(_Calls(), protocol=4)
    found = {
        "pickle, protocol 0": pickle.dumps(_Calls(), protocol=0),
        "pickle, protocol 4": plain,
        "gzip": gzip.compress(plain),
    }
    stream = io.BytesIO()
    np.save(stream, np.array([_Calls()], dtype=object), allow_pickle=True)
    found["numpy"] = stream.getvalue()
    stream = io.BytesIO()
    np.savez(stream, weights=np.array([_Calls()], dtype=object))
    found["numpy, packed"] = stream.getvalue()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:  # what torch.save writes
        archive.writestr("archive/data.pkl", pickle.dumps(_Calls(), protocol=2))
        archive.writestr("archive/version", "3\n")
        archive.writestr("resources/HowNet_dict_complete", plain)
    found["torch"] = stream.getvalue()
    return found


def texts() -> dict[str, bytes]:
    """Return hostile contents that are no pickles, by name."""
    return {
        "deep lists": b"[" * 200_000,
        "deep objects": b'{"format": 1, "a": ' + b'{"a":' * 50_000,
        "a huge number": b'{"format": ' + b"9" * 6000 + b"}",
        "NUL bytes": b"a\0b\t1\n" * 50,
        "half a surrogate": b'{"format": 1, "text": "\\ud800", "label": "yes", "summary": "\\udfff"}\n',
        "a binary": bytes(range(256)) * 20,
        "no number": b'{"format": NaN}',
    }


@dataclass(frozen=True)
class Place:
    """A named file, and the commands that read it."""

    name: str
    file: Path
    commands: list[list[object]]


class Stage:
    """A classifier, a language model with a graph, an attack, and everything that a command line can be given."""

    def __init__(self, commands: Commands, folder: Path) -> None:
        self.commands, self.folder = commands, folder
        self.nli = make_world(commands, folder / "nli", "nli")
        self.sdlm = make_world(commands, folder / "sdlm", "sdlm")
        self.folders = [folder_of(commands, self.nli, "attack")]
        self.attack = self.nli.folder / "attack"
        self.folders += [folder_of(commands, self.sdlm, kind) for kind in ("pushed", "seeds", "sweep")]
        self.given = folder / "given"
        self.given.mkdir()
        (folder / "lines.txt").write_text("a man\n", encoding="utf-8")
        commands.executed()

    def places(self) -> Iterator[Place]:
        """Every place, and how it is read."""
        for world in (self.nli, self.sdlm):
            readers: list[list[object]] = [list(command) for command in world.readers.values()]
            resume: list[object] = ["train", "--out", world.run, "--resume", "--set", "schedule.epochs=3", "-q"]
            for file in world.files():
                if file.parts[0] in ("data", "run"):
                    yield Place(f"{world.kind} {_short(file)}", world.folder / file, [*readers[:2], resume])
        for file in ("attack.json", "examples.jsonl", "report.json"):
            again: list[object] = ["attack", "--out", self.attack, "--resume", "-q"]
            yield Place(file, self.attack / file, [again, ["attack", "--compare", self.attack, self.attack]])
        yield from self._options()

    def _options(self) -> Iterator[Place]:
        file, data = self.given / "x", self.sdlm.data
        out: list[object] = ["--out", self.folder / "out", "-q"]
        graph: list[object] = ["build-sememe-graph", "--data", data, "--out", self.folder / "out.graph"]
        train = [*self.sdlm.train, "--out", self.folder / "out"]
        for name in ("hownet", "hownet2000", "list", "table", "dictionary", "openhownet"):
            yield Place(f"--source {name}", file, [[*graph, "--source", f"{name}:{file}"]])
        lexicon = f"hownet2000:{write_lexicon(self.folder / 'lexicon.tsv')}"
        yield Place("--lemmas", file, [[*graph, "--source", lexicon, "--lemmas", file]])
        yield Place("--graph", file, [[*train, "--graph", file]])
        yield Place("--clusters", file, [["train", "--decoder", "class_hsm", "--data", data, "--clusters", file, *out]])
        yield Place("--recipe", self.given / "r.toml", [["train", "--recipe", self.given / "r.toml", "--data", data, *out]])
        yield Place("--vectors", file, [[*self.nli.train, "--vectors", file, "--out", self.folder / "out"]])
        yield Place("--augment", file, [[*self.nli.train, "--augment", file, "--out", self.folder / "out"]])
        for ending in ("tsv", "jsonl"):
            attacked = self.given / f"d.{ending}"
            command = write_attack(self.nli)
            yield Place(f"--data x.{ending}", attacked, [[*command[:3], attacked, *command[4:], "--out", self.folder / "out"]])
        table = self.given / "t.json"
        yield Place("candidates", table, [[*write_attack(self.nli), "--set", f"candidates.path={table}", *out]])
        for dataset, ending in (("plain", "txt"), ("classification", "jsonl"), ("gigaword", "jsonl"), ("switchboard", "jsonl")):
            source = self.given / f"s.{ending}"
            yield Place(f"preprocess {dataset}", source, [["preprocess", dataset, source, *out]])
        for ending in ("xz", "gz"):
            source = self.given / f"s.txt.{ending}"
            yield Place(f"preprocess plain .{ending}", source, [["preprocess", "plain", source, *out]])
        yield Place("predict", file, [["predict", self.nli.run, file]])
        yield Place("compare", self.given / "c.jsonl", [["compare", self.given / "c.jsonl", self.given / "c.jsonl"]])

    def trials(self, wanted: Callable[[int], bool] = lambda number: True) -> Iterator[Trial]:
        """Every payload in every place."""
        payloads = {**pickles(), **texts()}
        number = -1
        for place in self.places():
            for name, data in payloads.items():
                number += 1
                if wanted(number):
                    yield from self._try(place, name, data)

    def _try(self, place: Place, name: str, data: bytes) -> Iterator[Trial]:
        kept = place.file.read_bytes() if place.file.exists() else None
        attack = self.folder / "kept-attack"
        runs = [world.run for world in (self.nli, self.sdlm)]
        put(self.attack, attack)
        for run in runs:
            put(run, self.folder / f"kept-{run.parent.name}")
        for command in place.commands:
            place.file.write_bytes(data)
            done = self.commands(*command)
            for scrap in ("out", "out.graph"):
                put(self.folder / "nothing", self.folder / scrap)
            verdict = verdict_of(done, executed=self.commands.executed())
            yield Trial(f"{place.name}: {command[0]}", name, verdict, done.err.strip()[-300:])
            put(attack, self.attack)
            for run in runs:
                put(self.folder / f"kept-{run.parent.name}", run)
        if kept is None:
            place.file.unlink()
        else:
            place.file.write_bytes(kept)


def _short(file: Path) -> str:
    return f"{file.parts[0]}/{file.name}"
