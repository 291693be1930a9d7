"""The results of the faults as a table in Markdown, and the parts that are run."""

from __future__ import annotations

import random
import shutil
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from sememekit.errors import SememekitError
from tests.faults import corrupt, groups, hostile, kill
from tests.faults.child import Commands
from tests.faults.folders import ALL_FOLDERS, FOLDERS, make_folder
from tests.faults.names import names
from tests.faults.runs import KINDS, make_world

MUTANTS, FEWER = 1000, 100
"""Mutants of a file whose reader is quick, and of one whose reader is not."""
NAMED = ("sdlm", "nli", "lattice")
"""Kinds of runs whose files differ in what they name."""
KILLS = 4
"""Kills of a command that trains in processes of its own."""
CRASHED = "tracebacks"
NOT_RUN = "ended by an error of the harness"


@dataclass
class Row:
    """A line of the table.

    Attributes:
        what: was done.
        counts: verdict -> trials.
        bad: verdicts that must not occur.
        details: of the trials with such a verdict.
        commands: command lines that were run.
    """

    what: str
    counts: Counter[str] = field(default_factory=Counter)
    bad: tuple[str, ...] = ()
    details: list[str] = field(default_factory=list)
    commands: int = 0

    @property
    def faults(self) -> int:
        """Number of trials with a verdict that must not occur."""
        return sum(self.counts[verdict] for verdict in self.bad)

    def add(self, verdict: str, detail: object) -> None:
        """Count a trial."""
        self.counts[verdict] += 1
        if verdict in self.bad:
            self.details.append(f"{verdict}: {detail}")


Part = tuple[str, str]
"""The name of a part, and of a piece of it."""


def all_parts() -> list[Part]:
    """Pieces that can be run beside each other, long ones first."""
    scenes = [
        "train",
        "attack",
        "cluster-update",
        "push",
        "build-sememe-graph",
        *(f"preprocess {kind}" for kind in kill.PACKED),
    ]
    pieces = [("corrupt", kind) for kind in (*KINDS, *FOLDERS)] + [("hostile", "all")]
    pieces += [("names", kind) for kind in (*NAMED, *ALL_FOLDERS)] + [("kill", name) for name in scenes]
    return [*pieces, *(("groups", kind) for kind in groups.KINDS), ("fuzz", "all")]


def run_part(part: Part, commands: Commands, folder: Path, every: int = 1) -> list[Row]:
    """Run one piece; every n-th trial of it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    begun = commands.count
    rows = list(_RUN[part[0]](part[1], commands, folder, every))
    rows[0].commands = commands.count - begun
    shutil.rmtree(folder, ignore_errors=True)
    return rows


def _kill(name: str, commands: Commands, folder: Path, every: int) -> Iterable[Row]:
    for scene in kill.scenes(commands, folder, [name]):
        row = Row(f"killed before each event: {scene.name}", bad=kill.MUST_BE_ZERO)
        chosen = None if every == 1 else (lambda events: range(1, events + 1, every))
        for point in kill.points(commands, scene, chosen):
            row.add(point.verdict, f"before event {point.number}: {point.detail}")
        yield row


def _corrupt(kind: str, commands: Commands, folder: Path, every: int) -> Iterable[Row]:
    row = Row(f"damaged files of a {'run' if kind in KINDS else 'folder'}: {kind}", bad=corrupt.MUST_BE_ZERO)
    for trial in corrupt.Damage(commands, folder, kind).trials(lambda number: number % every == 0):
        row.add(trial.verdict, f"{trial.file}, {trial.fault}, then {trial.command}: {trial.said}")
    yield row


def _hostile(name: str, commands: Commands, folder: Path, every: int) -> Iterable[Row]:
    row = Row("hostile files", bad=hostile.MUST_BE_ZERO)
    stage = hostile.Stage(commands, folder)
    for trial in stage.trials(lambda number: number % every == 0):
        row.add(trial.verdict, f"{trial.place}, {trial.payload}: {trial.said}")
    yield row


def _names(kind: str, commands: Commands, folder: Path, every: int) -> Iterable[Row]:
    row, number = Row(f"names of code in each file, checksums made to fit: {kind}", bad=hostile.MUST_BE_ZERO), count()
    world = (make_world if kind in KINDS else make_folder)(commands, folder / "world", kind)
    for trial in names(commands, world, folder / "kept", lambda place: next(number) % every == 0):
        row.add(trial.verdict, f"{trial.place}, {trial.payload}: {trial.said}")
    yield row


def _groups(kind: str, commands: Commands, folder: Path, every: int) -> Iterable[Row]:
    row = Row(f"killed with its processes: {kind}", bad=kill.MUST_BE_ZERO)
    for point in groups.trials(commands, folder / "world", kind, max(1, KILLS // every)):
        row.add(point.verdict, f"{point.scene}, at {point.number} files: {point.detail}")
    yield row


def _fuzz(name: str, commands: Commands, folder: Path, every: int) -> Iterable[Row]:
    from tests.faults import parsers

    parsers.KEPT[:] = [parsers.Kept(folder / "kept")]
    row, roots = Row("mutants of what each reader reads", bad=(CRASHED,)), Counter[str]()
    for parser in parsers.parsers():
        place, source = folder / "mutant", random.Random(parser.name)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        parser.make(place)
        whole = (place / parser.file).read_bytes()
        for _ in range((FEWER if parser.slow else MUTANTS) // every):
            changes = parsers.random_edits(source)
            (place / parser.file).write_bytes(parsers.mutate(whole, changes))
            root = crash(lambda parser=parser, place=place: parser.read(place))  # type: ignore[misc]
            row.add(CRASHED if root else "read or refused", f"{parser.name}: {root}: {changes}")
            roots[root] += bool(root)
    row.what += f" ({len(+roots)} places in the code)"
    yield row


def crash(read: Callable[[], object]) -> str:
    """Read, and return an error that is not ours with its place in the package; empty without one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read()
    except SememekitError:
        return ""
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/sememekit/" in frame.filename]
        where = next((frame for frame in reversed(frames) if "/tests/" not in frame.filename), frames[-1])
        return f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}"
    return ""


def work(part: Part, folder: Path, every: int) -> list[Row]:
    """Run one piece in a process of its own."""
    name = "-".join(part).replace(" ", "-")
    with Commands(folder / f"{name}-commands") as commands:
        return run_part(part, commands, folder / name, every)


_RUN = {"kill": _kill, "corrupt": _corrupt, "hostile": _hostile, "names": _names, "groups": _groups, "fuzz": _fuzz}


def markdown(rows: Iterable[Row]) -> str:
    """Return the table, with verdicts that must not occur in bold."""
    lines = ["| what | trials | result |", "|---|---|---|"]
    total: Counter[str] = Counter()
    for row in rows:
        shown = [
            f"**{count} {verdict}**" if verdict in row.bad else f"{count} {verdict}"
            for verdict, count in row.counts.most_common()
        ]
        lines.append(f"| {row.what} | {row.counts.total():,} | {', '.join(shown)} |")
        total["trials"] += row.counts.total()
        total["commands"] += row.commands
        total["faults"] += row.faults
    lines.append(f"| all ({total['commands']:,} command lines) | {total['trials']:,} | {total['faults']} that must not be |")
    return "\n".join(lines)
