"""SIGKILL before every file-system event of a command; then the command again. Is the result equal to a quiet run's?"""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.child import Commands
from tests.faults.runs import (
    World,
    contents,
    make_data,
    make_world,
    put,
    run_state,
    settings,
    shown,
    without_times,
    write_lexicon,
)

EQUAL, WHOLE, DIGITS, LEFT, WEDGED, OTHER, TORN = (
    "equal after the repetition",
    "whole at once",
    "equal but for last digits",
    "something left behind",
    "wedged",
    "another result",
    "torn output",
)
MUST_BE_ZERO = (LEFT, WEDGED, OTHER, TORN)
LONGEST = 2000
"""Kill points of a scene at most: one that has more never ends."""


@dataclass(frozen=True)
class Scene:
    """A command, the place that it writes to, and how to go on after it was killed.

    Attributes:
        name: for the table.
        work: the folder that holds ``out`` and nothing else.
        start: what ``out`` is a copy of before each trial; a path that does not exist for nothing.
        command: what is killed.
        again: commands that go on, tried in order until one succeeds.
        state: what must be equal in the end.
        atomic: whether ``out`` must be as before, as after or absent at every moment.
        meddle: what else happens between the kill and the repetition.
        judge: in place of ``again`` and ``state``: whether ``out`` is good as it is.
        once: whether the command may refuse to go on when everything is there.
    """

    name: str
    work: Path
    out: Path
    start: Path
    command: list[object]
    again: list[list[object]]
    state: Callable[[Path], Any]
    atomic: bool = False
    meddle: Callable[[Path], None] = lambda out: None
    judge: Callable[[Path], bool] | None = None
    once: bool = False


@dataclass(frozen=True)
class Point:
    """One kill: before which event, what came of it, and a word on it."""

    scene: str
    number: int
    verdict: str
    detail: str


def trial(commands: Commands, scene: Scene, number: int, before: Any, whole: Any, quiet: set[str]) -> Point | None:
    """Kill before one event and go on; None when the command ended before it."""
    reset(scene)
    done = commands(*scene.command, watch=scene.out, kill=number)
    if not done.killed:
        return None
    if scene.judge is not None:
        good = scene.judge(scene.out)
        return Point(scene.name, number, EQUAL if good else OTHER, "")
    found = state_of(scene)
    if scene.atomic and found is not None and found not in (before, whole):
        return Point(scene.name, number, TORN, "neither what was there nor what was to come")
    scene.meddle(scene.out)
    said = ""
    for command in scene.again:
        after = commands(*command)
        said = after.err.strip()[-300:]
        if after.code == 0:
            break
    else:
        if scene.once and found == whole:
            return Point(scene.name, number, WHOLE, "")
        return Point(scene.name, number, WEDGED, said)
    found = state_of(scene)
    if found != whole:
        same = found is not None and rounded(found) == rounded(whole)
        return Point(scene.name, number, DIGITS if same else OTHER, " ".join(map(str, command))[:80])
    left = hidden(scene.work) - quiet
    return Point(scene.name, number, LEFT, ", ".join(sorted(left))) if left else Point(scene.name, number, EQUAL, "")


def points(commands: Commands, scene: Scene, chosen: Callable[[int], Iterable[int]] | None = None) -> Iterator[Point]:
    """Every kill point of a scene, or those that ``chosen`` picks given how many there are."""
    reset(scene)
    before = state_of(scene)
    events = commands.do(*scene.command, watch=scene.out).events
    assert events, scene.name
    whole, quiet = state_of(scene), hidden(scene.work)
    assert whole is not None, scene.name
    numbers = chosen(events) if chosen is not None else range(1, LONGEST)
    for number in numbers:
        found = trial(commands, scene, number, before, whole, quiet)
        if found is None:
            return
        yield found


def reset(scene: Scene) -> None:
    shutil.rmtree(scene.work, ignore_errors=True)
    scene.work.mkdir(parents=True)
    put(scene.start, scene.out)


def state_of(scene: Scene) -> Any:
    """Return the state of ``out``, or None if it holds nothing that can be read."""
    try:
        return scene.state(scene.out) if scene.out.exists() else None
    except (OSError, ValueError, KeyError):
        return None


def hidden(work: Path) -> set[str]:
    """Names of what programs leave behind: hidden, or of a work in progress; numbers of processes left out."""
    names = {str(path.relative_to(work)) for path in work.rglob("*")}
    return {re.sub(r"\d+", "0", name) for name in names if any(part.startswith(".") for part in Path(name).parts)}


def rounded(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: rounded(value) for key, value in state.items()}
    if isinstance(state, list):
        return [rounded(value) for value in state]
    return round(state, 5) if isinstance(state, float) else state


def scenes(commands: Commands, folder: Path, only: Iterable[str] = ()) -> Iterator[Scene]:
    """All scenes, each made when it is asked for; ``only`` names those that are wanted."""
    wanted = set(only)
    makers = {"train": _train, **{f"preprocess {kind}": _preprocess for kind in PACKED}}
    makers |= {"build-sememe-graph": _graph, "cluster-update": _clusters, "attack": _attack, "push": _share}
    for number, (name, make) in enumerate(makers.items()):
        if not wanted or name in wanted:
            yield from make(commands, folder / f"scene-{number}", name)


def _train(commands: Commands, folder: Path, name: str) -> Iterator[Scene]:
    noise = {"encoder__dropout": 0.3, "task__output_dropout": 0.2, "optimizer__name": "adam", "optimizer__learning_rate": 0.02}
    world = make_world(commands, folder, "softmax", task__chunk_length=60, **noise)  # all that a snapshot has to keep
    out = folder / "work" / "run"
    command: list[object] = [*world.train, *settings(run__checkpoint_every=1), "--out", out]
    resume: list[object] = ["train", "--out", out, "--resume", "-q"]
    yield Scene(name, folder / "work", out, folder / "nothing", command, [resume, command], run_state)


PACKED = ("plain", "xz", "sentencepiece", "snli", "pairs")


def _preprocess(commands: Commands, folder: Path, name: str) -> Iterator[Scene]:
    kind = name.split()[1]
    make_data(commands, folder, {"snli": "nli", "pairs": "headline"}.get(kind, "plain"))
    text, out = folder / "text", folder / "work" / "out"
    dataset, flags = {"snli": "snli", "pairs": "gigaword"}.get(kind, "plain"), ["--segmenter", "none"]
    if kind == "xz":
        (folder / "all.txt.xz").write_bytes(lzma.compress((text / "train.txt").read_bytes()))
        text = folder / "all.txt.xz"
    elif kind == "sentencepiece":
        flags = ["--segmenter", "sentencepiece", "--pieces", "17"]
    elif kind == "snli":
        flags = []
    command: list[object] = ["preprocess", dataset, text, *flags, "--out", out, "-q"]
    (folder / "other.txt").write_text("人 吃 梨\n" * 40, encoding="utf-8")
    commands.do("preprocess", "plain", folder / "other.txt", "--segmenter", "none", "--out", folder / "other", "-q")
    again = [*command, "--force"]
    yield Scene(f"{name}, new", folder / "work", out, folder / "nothing", command, [command], contents, atomic=True, once=True)
    yield Scene(f"{name}, replacing", folder / "work", out, folder / "other", again, [again], contents, atomic=True)


def _graph(commands: Commands, folder: Path, name: str) -> Iterator[Scene]:
    folder.mkdir(parents=True)
    make_data(commands, folder, "plain")
    out = folder / "work" / "small.graph"
    source = f"hownet2000:{write_lexicon(folder / 'lexicon.tsv')}"
    command: list[object] = ["build-sememe-graph", "--source", source, "--data", folder / "data", "--out", out]
    commands.do(*command[:-1], folder / "old.graph", "--drop-edges", "0.5")
    for how, start in (("new", "nothing"), ("replacing", "old.graph")):
        yield Scene(f"{name}, {how}", folder / "work", out, folder / start, command, [command], contents, atomic=True)


def _clusters(commands: Commands, folder: Path, name: str) -> Iterator[Scene]:
    world = make_world(commands, folder, "self_organized", decoder__update_every=1000)
    work = folder / "work"

    def figure(run: Path) -> str:
        return shown(commands("evaluate-ppl", run, "--json"))

    shutil.copytree(world.run, folder / "after")
    commands.do("cluster-update", folder / "after", "-q")
    good = {re.sub(r'"checkpoint":"[^"]*"', "", figure(run)) for run in (world.run, folder / "after")}
    assert len(good) == 2, "an update that changes nothing tests nothing"

    def is_good(run: Path) -> bool:
        return re.sub(r'"checkpoint":"[^"]*"', "", figure(run)) in good

    here: list[object] = ["cluster-update", work / "run", "-q"]
    yield Scene(f"{name} in place", work, work / "run", world.run, here, [], run_state, judge=is_good)
    out = work / "new"
    command: list[object] = ["cluster-update", world.run, "--out", out, "-q"]
    resume: list[object] = ["train", "--out", out, "--resume", "-q"]
    yield Scene(f"{name} --out", work, out, folder / "nothing", command, [command, resume], run_state, once=True)
    trained = [*command, "--epochs", 2]
    yield Scene(f"{name} --out --epochs", work, out, folder / "nothing", trained, [resume, trained], run_state)


def _share(commands: Commands, folder: Path, name: str) -> Iterator[Scene]:
    world = make_world(commands, folder, "softmax")
    commands.do("push", world.run, folder / "pushed")

    def without_lock(out: Path) -> dict[str, bytes]:
        return {name: content for name, content in contents(out).items() if name != ".lock"}

    for how, source in ((name, world.run), ("pull", folder / "pushed")):
        out = folder / "work" / "out"
        command: list[object] = [how, source, *(["--out"] if how == "pull" else []), out]
        yield Scene(how, folder / "work", out, folder / "nothing", command, [command], without_lock, atomic=True, once=True)


def write_attack(world: World) -> list[object]:
    """An attack on a run of pairs, but for its --out: a data file and a table of substitutes are written."""
    words = ["park", "rain", "man", "girl", "dogs", "sleeps", "runs", "eat", "nice", "outside"]
    table = {word: [other for other in words if other != word][:4] for word in words}
    (world.folder / "table.json").write_text(json.dumps(table), encoding="utf-8")
    lines = [json.loads(line) for line in (world.folder / "text" / "snli_1.0_test.jsonl").read_text().splitlines()]
    rows = [f"{row['sentence1']}\t{row['sentence2']}\t{row['gold_label']}\n" for row in lines if row["gold_label"] != "-"]
    (world.folder / "attacked.tsv").write_text("".join(rows[:8]), encoding="utf-8")
    flags = ["--search", "greedy", "--candidates", "table", "--device", "cpu"]
    flags += ["--set", f"candidates.path={world.folder / 'table.json'}", "--set", "attack.together=3"]
    return ["attack", world.run, "--data", world.folder / "attacked.tsv", *flags, "-q"]


def attack_state(out: Path) -> dict[str, Any]:
    lines = [json.loads(line) for line in (out / "examples.jsonl").read_bytes().splitlines()]
    report = without_times(json.loads((out / "report.json").read_bytes()))
    assert isinstance(report, dict)
    # Texts and calls of this call alone: a resumed attack asks fewer.
    left_out = {"texts_asked", "calls", "written", "sha256"}
    return {"examples": lines, "report": {key: value for key, value in report.items() if key not in left_out}}


def _attack(commands: Commands, folder: Path, name: str) -> Iterator[Scene]:
    world = make_world(commands, folder, "nli", schedule__epochs=6)
    out = folder / "work" / "out"
    command = [*write_attack(world), "--out", out]
    resume: list[object] = ["attack", "--out", out, "--resume", "-q"]

    def tear(folder: Path) -> None:
        path = folder / "examples.jsonl"
        if path.exists() and not (folder / "report.json").exists():
            lines = path.read_bytes().splitlines(keepends=True)
            os.truncate(path, path.stat().st_size - len(lines[-1]) // 2 if lines else 0)

    for how, meddle in (("", lambda out: None), (", last line torn", tear)):
        yield Scene(
            f"{name}{how}", folder / "work", out, folder / "nothing", command, [resume, command], attack_state, meddle=meddle
        )


def counted(found: Iterable[Point]) -> dict[str, Counter[str]]:
    """Verdicts by scene."""
    table: dict[str, Counter[str]] = {}
    for point in found:
        table.setdefault(point.scene, Counter())[point.verdict] += 1
    return table
