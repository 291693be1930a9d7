"""Every file of data, graph and run damaged in every way, and then read. Refused, right, or silently another result?"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sememekit.files import to_json
from tests.faults.child import Commands, Outcome
from tests.faults.fitted import fit, places_in, shape_of, value_at, with_value
from tests.faults.folders import make_folder
from tests.faults.runs import KINDS, World, make_world, put, settings, shown

REFUSED, UNNAMED, RIGHT, SILENT, BUG = (
    "refused, the file named",
    "refused, the file not named",
    "right",
    "SILENT other result",
    '"this is a bug"',
)
TAKEN = "another result, as its checksum says"
MUST_BE_ZERO = (SILENT, BUG)
FITTED = ", checksums made to fit"
"""After the kind of a damage: an edit on purpose, which only what ties the files to each other can tell."""
TIED = ("vocabulary.tsv", "chunks.tsv", "graph.json", "lexicon.txt", "sentencepiece.model", "pieces.json")
"""Files with a fingerprint in another one, or in themselves, beside the checksum in a manifest."""
ODD = ("a pipe", "a link to nothing", "a folder", "a link to itself")
"""Kinds of things in the place of a file of a folder that a stranger packed."""


@dataclass(frozen=True)
class Fault:
    """One damage.

    Attributes:
        file: relative to the folder of the world.
        kind: truncated, bit, digit, lines, swapped, removed, renamed word, other graph.
        number: of several of a kind.
        apply: does it, given the folder.
    """

    file: Path
    kind: str
    number: int
    apply: Callable[[Path], None]


@dataclass(frozen=True)
class Trial:
    """A damage, a command after it, and what came of it."""

    world: str
    file: str
    fault: str
    command: str
    verdict: str
    said: str


def faults_of(world: World, foreign: dict[str, Path]) -> Iterator[Fault]:
    """All damages to all files, the same every time.

    Args:
        world: with whole files.
        foreign: name of a file -> a whole file of the same kind with other content.
    """
    files = world.files()
    for file in [file for file in files if "tensorboard" not in file.parts]:
        data = (world.folder / file).read_bytes()
        source = random.Random(f"{world.kind}/{_plain(file)}")
        for kind, number, damaged in (*_damages(data, source), *_edits(file, data, source)):
            yield Fault(file, kind, number, _write(file, damaged))
            if file.name in TIED or number == 0:  # of others, any edit is as good as another
                yield Fault(file, kind + FITTED, number, _fitted(file, _write(file, damaged)))
        if world.kind != "claims":  # there, fewer results are fewer seeds, and the ledger counts them
            yield Fault(file, "removed", 0, lambda folder, file=file: (folder / file).unlink())  # type: ignore[misc]
        for kind in ODD:
            yield Fault(file, kind, 0, _replace(file, kind))
        for other in files:
            same_kind = other.parent == file.parent or other.name == file.name
            if file < other and _suffixes(file) == _suffixes(other) and same_kind and file.parts[0] == other.parts[0]:
                yield Fault(file, "swapped", 0, _swap(file, other))
        if file.name == "vocabulary.tsv":
            renamed = re.sub(rb"(?m)^([^<\t]+)\t", rb"\1x\t", data, count=1)
            yield Fault(file, "a word renamed", 0, _write(file, renamed))
            yield Fault(file, f"a word renamed{FITTED}", 0, _fitted(file, _write(file, renamed)))
        if file.name in foreign:
            yield Fault(file, "another of its kind", 0, _write(file, foreign[file.name].read_bytes()))


def _damages(data: bytes, source: random.Random) -> Iterator[tuple[str, int, bytes]]:
    if not data:
        return
    for number, keep in enumerate((0, len(data) // 2, len(data) - 1)):
        yield "truncated", number, data[:keep]
    for number in range(4):
        place = source.randrange(len(data))
        changed = bytes([data[place] ^ (1 << source.randrange(8))])
        yield "a bit flipped", number, data[:place] + changed + data[place + 1 :]
    if b"\0" in data:  # a table of numbers: the small change that stays a number
        for number in range(2):
            place = source.randrange(len(data) // 2) * 2
            yield "a bit flipped", 4 + number, data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        return
    digits = [place for place, byte in enumerate(data) if chr(byte).isdigit() and byte < 128]
    for number in range(min(4, len(digits))):
        place = source.choice(digits)
        changed = str((int(chr(data[place])) + source.randrange(1, 10)) % 10).encode()
        yield "a digit changed", number, data[:place] + changed + data[place + 1 :]
    lines = data.splitlines(keepends=True)
    if len(lines) > 2:
        for number in range(2):
            one, other = source.sample(range(len(lines)), 2)
            if lines[one] != lines[other]:
                swapped = list(lines)
                swapped[one], swapped[other] = lines[other], lines[one]
                yield "two lines swapped", number, b"".join(swapped)


def _edits(file: Path, data: bytes, source: random.Random) -> Iterator[tuple[str, int, bytes]]:
    """JSON that is what it was but for one number, at eight places at most, or for two names exchanged."""
    if file.suffix != ".json":
        return
    tree = json.loads(data)
    numbers = [place for place in places_in(tree, (int, float)) if not isinstance(value_at(tree, place), bool)]
    places = list({shape_of(place): place for place in numbers}.values())
    for number, place in enumerate(source.sample(places, min(8, len(places)))):
        yield "a number changed", number, to_json(with_value(tree, place, value_at(tree, place) + 1))
    if isinstance(tree, dict) and tree.get("best") != tree.get("last"):
        yield "two names exchanged", 0, to_json({**tree, "best": tree.get("last"), "last": tree.get("best")})


def _fitted(file: Path, damage: Callable[[Path], None]) -> Callable[[Path], None]:
    def damage_and_fit(folder: Path) -> None:
        damage(folder)
        fit(folder / file.parts[0], but=folder / file)

    return damage_and_fit


def _write(file: Path, data: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / file).write_bytes(data)

    return write


def _replace(file: Path, kind: str) -> Callable[[Path], None]:
    def replace(folder: Path) -> None:
        path = folder / file
        path.unlink()
        if kind == "a pipe":
            os.mkfifo(path)
        elif kind == "a folder":
            path.mkdir()
        else:
            path.symlink_to(path.name if kind == "a link to itself" else "nothing")

    return replace


def _swap(one: Path, other: Path) -> Callable[[Path], None]:
    def swap(folder: Path) -> None:
        (folder / one).rename(folder / "swapping")
        (folder / other).rename(folder / one)
        (folder / "swapping").rename(folder / other)

    return swap


def _suffixes(file: Path) -> str:
    return file.name[file.name.find(".") :]


def _plain(file: Path) -> str:
    return file.as_posix()


class Damage:
    """A world beside its whole copy, its commands, and what they say about the whole one."""

    def __init__(self, commands: Commands, folder: Path, kind: str) -> None:
        self.commands = commands
        self.world = (make_world if kind in KINDS else make_folder)(commands, folder / "world", kind)
        self.whole = folder / "whole"
        for part in self.world.parts:
            put(self.world.folder / part, self._kept(part))
        self.fresh = folder / "fresh"
        self.command_lines = dict(self.world.readers)
        if kind in KINDS:
            extended = ["train", "--out", str(self.world.run), "--resume", *settings(schedule__epochs=3), "-q", "--json"]
            self.command_lines |= {"--resume": extended, "train": [*self.world.train, "--out", str(self.fresh)]}
        self.foreign: dict[str, Path] = {}
        if kind == "sdlm":
            dropped = folder / "graph.json"
            source = ["--source", f"hownet2000:{self.world.folder / 'lexicon.tsv'}", "--data", self.world.data]
            commands.do("build-sememe-graph", *source, "--out", dropped, "--drop-edges", "0.5")
            self.foreign = {"graph.json": dropped}
        self.expected: dict[str, str] = {}
        for name in self.command_lines:
            done, self.expected[name] = self.result(name)
            assert done.code == 0, f"{kind}: {name} fails on whole files, and would try nothing: {done.err}"
            self.restore()

    def _kept(self, part: str) -> Path:
        return self.whole.parent / f"whole-{part}"

    def restore(self) -> None:
        """Make the world whole; what a command wrote goes."""
        for part in self.world.parts:
            put(self._kept(part), self.world.folder / part)
        for scrap in ("out", "page.html"):
            put(self.whole, self.world.folder / scrap)

    def result(self, name: str) -> tuple[Outcome, str]:
        """Run a command; its outcome and what must be equal: what it prints, and for training the weights, too."""
        shutil.rmtree(self.fresh, ignore_errors=True)
        done = self.commands(*self.command_lines[name])
        text = shown(done)
        trained = {"--resume": self.world.run, "train": self.fresh}.get(name)
        if trained is not None and done.code == 0:
            last = sorted((trained / "checkpoints").glob("step-*/weights.safetensors"))[-1]
            text += last.read_bytes().hex()
        return done, text

    def names_for(self, fault: Fault) -> list[str]:
        """The commands that may read the damaged file."""
        part = fault.file.parts[0]
        if part == "graph":
            return ["train"]
        return [name for name in self.command_lines if part == "data" or name != "train"]

    def trials(self, wanted: Callable[[int], bool] = lambda number: True) -> Iterator[Trial]:
        """Every damage with every command, or those whose number is wanted."""
        number = -1
        for fault in list(faults_of(self.world, self.foreign)):
            for name in self.names_for(fault):
                number += 1
                if wanted(number):
                    yield self.trial(fault, name)

    def trial(self, fault: Fault, name: str) -> Trial:
        """One damage, one command."""
        self.restore()
        fault.apply(self.world.folder)
        done, text = self.result(name)
        verdict = self.verdict(fault, done, text == self.expected[name])
        self.restore()
        said = done.err.strip()[-300:]
        return Trial(self.world.kind, fault.file.as_posix(), f"{fault.kind} {fault.number}", name, verdict, said)

    def verdict(self, fault: Fault, done: Outcome, same: bool) -> str:
        if done.bug:
            return BUG
        if done.code == 0:
            fitted = fault.kind.endswith(FITTED) and fault.file.name not in TIED
            return RIGHT if same else TAKEN if fitted else SILENT
        if not done.clean:
            return BUG
        return REFUSED if fault.file.name in done.err else UNNAMED
